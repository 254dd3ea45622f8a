package main

import (
	"bufio"
	"context"
	"io"
	"math"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A real server, with real HTTP over connections in memory, does on virtual time what the
// simulation says.
func TestSimulationSaysWhatARealServerDoes(t *testing.T) {
	sleeping, _ := serviceNamed("sleep")
	capacity := float64(sleeping.workers) / meanService.Seconds()
	for _, load := range []float64{0.9, 3} {
		expected, err := simulateService(t.Context(), sleeping, capacity, load)
		require.NoError(t, err)
		synctest.Test(t, func(t *testing.T) {
			engine, err := engineUnder(sleeping.rule)
			require.NoError(t, err)
			defer engine.Close()
			network := newPipes()
			server := &http.Server{Handler: handlerOf(sleeping, engine), ReadHeaderTimeout: time.Minute}
			go func() { _ = server.Serve(network) }()
			defer func() { assert.NoError(t, server.Close()) }()
			g := newGenerator(generatorSettings{
				Path: pathGuarded, Rate: load * capacity, WarmUp: 4 * time.Second, Duration: 10 * time.Second,
			}, "", network.dial)
			o, err := g.run(t.Context())
			require.NoError(t, err)
			assert.InEpsilon(t, expected.Goodput, o.Goodput, 0.1, "at %g ×", load)
			assert.InEpsilon(t, load*capacity, o.Offered, 0.1)
			assert.InDelta(t, expected.Refused, o.Refused, 0.05)
		})
	}
}

func TestClientsOneAfterTheOtherMeasureTheCapacity(t *testing.T) {
	sleeping, _ := serviceNamed("sleep")
	synctest.Test(t, func(t *testing.T) {
		engine, err := engineUnder(sleeping.rule)
		require.NoError(t, err)
		defer engine.Close()
		network := newPipes()
		server := &http.Server{Handler: handlerOf(sleeping, engine), ReadHeaderTimeout: time.Minute}
		go func() { _ = server.Serve(network) }()
		defer func() { assert.NoError(t, server.Close()) }()
		g := newGenerator(generatorSettings{Path: pathFree, Clients: 16, WarmUp: time.Second, Duration: 5 * time.Second}, "", network.dial)
		o, err := g.run(t.Context())
		require.NoError(t, err)
		assert.InEpsilon(t, 800, o.Goodput, 0.05)
		assert.Zero(t, o.Refused)
	})
}

func TestServiceTimesHaveTheirMean(t *testing.T) {
	times := newServiceTimes()
	sum, squares, count := 0.0, 0.0, 1000
	for range count {
		s := times.next().Seconds()
		sum += s
		squares += s * s
	}
	mean := sum / float64(count)
	assert.InEpsilon(t, meanService.Seconds(), mean, 0.001)
	assert.InEpsilon(t, 2*mean*mean, squares/float64(count), 0.05, "as of exponential ones")
}

func TestAnswersAreRead(t *testing.T) {
	read := func(text string) (int, string, error) {
		status, body, err := readAnswer(bufio.NewReader(strings.NewReader(text)))
		return status, string(body), err
	}
	status, body, err := read("HTTP/1.1 503 Service Unavailable\r\nA: b\r\ncontent-length: 3\r\n\r\nyes")
	require.NoError(t, err)
	assert.Equal(t, 503, status)
	assert.Equal(t, "yes", body)
	for _, wrong := range []string{"", "x\r\n\r\n", "HTTP/1.1 ok\r\n\r\n", "HTTP/1.1 200\r\n\r\n", "HTTP/1.1 200\r\nContent-Length: 3\r\n\r\nno"} {
		_, _, err := read(wrong)
		require.Error(t, err, wrong)
	}
}

func TestCommandLineIsChecked(t *testing.T) {
	for _, args := range [][]string{
		{"-services", "nonsense"},
		{"-loads", "0"},
		{"-loads", "x"},
		{"-rounds", "0"},
		{"-for", "1ms"},
		{"-rules", "missing.yaml"},
	} {
		_, err := parseSettings(args)
		require.Error(t, err, args)
	}
	s, err := parseSettings([]string{"-services", "cpu", "-loads", "3,10"})
	require.NoError(t, err)
	assert.Equal(t, []float64{3, 10}, s.loads)
}

func TestTableHasTheMedianOfTheRounds(t *testing.T) {
	of := func(goodput float64) result {
		return result{load: 3, capacity: 100, real: outcome{Goodput: goodput}, simulated: outcome{Goodput: 100}}
	}
	table := tableOf([][]result{{of(90), of(10), of(50)}})
	require.Len(t, table.Rows, 1)
	assert.Contains(t, table.Rows[0], "0.500")
	assert.False(t, math.IsNaN(percentile(nil, 99)))
}

// pipes is a network in memory: connections of one listener.
type pipes struct {
	connections chan net.Conn
	closed      chan struct{}
}

func newPipes() *pipes { return &pipes{make(chan net.Conn), make(chan struct{})} }

func (p *pipes) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	client, server := net.Pipe()
	select {
	case p.connections <- server:
		return client, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.connections:
		return c, nil
	case <-p.closed:
		return nil, io.EOF
	}
}

func (p *pipes) Close() error {
	close(p.closed)
	return nil
}

func (p *pipes) Addr() net.Addr { return &net.TCPAddr{} }
