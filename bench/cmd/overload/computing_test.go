package main

import (
	"fmt"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/adapters/nethttp"
)

// Requests that share one processor, in turns of 10 ms as goroutines do: all of them become
// slow together, and handlers go on for clients that have left.
func TestComputingServiceIsUsefulInOverload(t *testing.T) {
	const capacity, turn = 100.0, 10 * time.Millisecond
	computing, _ := serviceNamed("cpu")
	expected, err := simulateService(t.Context(), computing, capacity, 3)
	require.NoError(t, err)
	synctest.Test(t, func(t *testing.T) {
		engine, err := engineUnder(computing.rule)
		require.NoError(t, err)
		defer engine.Close()
		times, processor := newServiceTimes(), make(chan struct{}, 1)
		guarded := http.NewServeMux()
		guarded.HandleFunc("GET "+pathGuarded, func(http.ResponseWriter, *http.Request) {
			for left := times.next(); left > 0; left -= turn {
				processor <- struct{}{}
				time.Sleep(min(left, turn))
				<-processor
			}
		})
		mux := http.NewServeMux()
		mux.HandleFunc("GET "+pathCPU, func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, 0) })
		mux.Handle("/", nethttp.Middleware(engine, nethttp.Options{})(guarded))
		network := newPipes()
		server := &http.Server{Handler: mux, ReadHeaderTimeout: time.Minute}
		go func() { _ = server.Serve(network) }()
		defer func() { assert.NoError(t, server.Close()) }()
		g := newGenerator(generatorSettings{
			Path: pathGuarded, Rate: 3 * capacity, WarmUp: 15 * time.Second, Duration: 15 * time.Second,
		}, "", network.dial)
		o, err := g.run(t.Context())
		require.NoError(t, err)
		assert.InEpsilon(t, expected.Goodput, o.Goodput, 0.1)
		time.Sleep(time.Second) // handlers end whose clients have left
	})
}
