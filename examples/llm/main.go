// LLM shows eight instances of a service that share a limit of tokens, while a hundred clients have
// one stream after the other whose lengths nobody knows. It counts the tokens of each window when
// they are used: first with as many tokens reserved as each request allows, then with the meter of
// adapters/llm.
//
//	go run ./examples/llm
//
// The provider is one in this process: nothing is installed, and no network is used.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"math/rand/v2"
	"net/http"
	"os"
	"os/signal"
	"strings"
	"sync"
	"time"

	"github.com/penstock-go/penstock/adapters/llm"
	"github.com/penstock-go/penstock/adapters/llm/llmtest"
	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/fleet"
	"github.com/penstock-go/penstock/fleet/memory"
	"github.com/penstock-go/penstock/rules"
)

// document is the rule of every instance. A provider would say so much a minute; here a window is five
// seconds, so that there is something to see.
const document = `flow:
  - name: provider
    resource: "llm:tokens"
    limit: 100000
    window: 5s
    algorithm: fixedWindow
    scope: fleet
    fleet: {mode: ask}
`

const (
	limit     = 100_000 // of the document
	window    = 5 * time.Second
	windows   = 2
	instances = 8
	streams   = 100
	prompt    = 20   // tokens
	most      = 1024 // that a request allows for the answer
	mean      = 80   // tokens of the answers
	speed     = 300  // tokens a second of one stream: together more than the limit
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := show(ctx, os.Stdout)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "llm:", err)
		os.Exit(1)
	}
}

func show(ctx context.Context, out io.Writer) error {
	for _, way := range []struct {
		name    string
		connect connect
	}{{"As many tokens reserved as each request allows", reserveMost}, {"By the meter", byMeter}} {
		fmt.Fprintf(out, "%s:\n", way.name)
		used, err := run(ctx, way.connect)
		if err != nil {
			return err
		}
		for i, n := range used[1 : windows+1] { // whole windows
			fmt.Fprintf(out, "  window %d: %6d tokens, %5.1f %% of the limit\n", i+1, n, 100*float64(n)/limit)
		}
	}
	return nil
}

// connect returns the transport of an instance.
type connect func(*core.Engine, http.RoundTripper) (http.RoundTripper, error)

// byMeter is what a service does.
func byMeter(engine *core.Engine, provider http.RoundTripper) (http.RoundTripper, error) {
	meter, err := llm.New(llm.Options{Engine: engine, StopStreams: true, FirstAnswer: 2 * mean})
	if err != nil {
		return nil, err
	}
	return meter.Transport(provider), nil
}

// reserveMost is what it would do without.
func reserveMost(engine *core.Engine, provider http.RoundTripper) (http.RoundTripper, error) {
	return transport(func(r *http.Request) (*http.Response, error) {
		guard, err := engine.Entry(r.Context(), llm.TokensResource, core.Tokens(prompt+most))
		if err != nil {
			return nil, err
		}
		defer guard.Exit()
		return provider.RoundTrip(r)
	}), nil
}

type transport func(*http.Request) (*http.Response, error)

// RoundTrip implements [http.RoundTripper].
func (f transport) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// run has all clients ask for some windows, and returns the tokens that each window used.
func run(ctx context.Context, connect connect) (used [windows + 2]int, err error) {
	set, err := rules.Parse("llm.yaml", []byte(document))
	if err != nil {
		return used, err
	}
	store := memory.New(clock.System())
	begin := time.Now().Truncate(window)
	var mu sync.Mutex
	provider := &llmtest.Provider{
		Speed: speed, Chunk: 10,
		Answer: func(llmtest.Request) int { return lengthOfAnswer() },
		Served: func(tokens int) {
			mu.Lock()
			defer mu.Unlock()
			if i := int(time.Since(begin) / window); i < len(used) {
				used[i] += tokens
			}
		},
	}
	ctx, cancel := context.WithDeadline(ctx, begin.Add((windows+1)*window))
	defer cancel()
	var clients sync.WaitGroup
	defer clients.Wait()
	for i := range instances {
		engine := core.New(core.Config{
			Logger: slog.New(slog.DiscardHandler),
			Fleet:  fleet.Config{Backend: store, Instance: fmt.Sprint("instance-", i)},
		})
		defer engine.Close()
		if err := engine.Load(set); err != nil {
			return used, err
		}
		instance, err := connect(engine, llmtest.Local(provider))
		if err != nil {
			return used, err
		}
		for n := i; n < streams; n += instances {
			clients.Go(func() { client(ctx, instance) })
		}
	}
	clients.Wait()
	return used, nil
}

// lengthOfAnswer returns a random length.
func lengthOfAnswer() int {
	const sigma = 0.8
	return max(1, int(mean*math.Exp(sigma*rand.NormFloat64()-sigma*sigma/2))) //nolint:gosec // guards no secret
}

// client has one stream after the other.
func client(ctx context.Context, instance http.RoundTripper) {
	body := fmt.Sprintf(`{"model":"m","stream":true,"max_tokens":%d,"messages":[{"role":"user","content":%q}]}`,
		most, strings.Repeat(llmtest.Word, prompt))
	for ctx.Err() == nil {
		if err := stream(ctx, instance, body); errors.Is(err, core.ErrBlocked) {
			time.Sleep(time.Duration(50+rand.IntN(100)) * time.Millisecond) //nolint:gosec // guards no secret
		}
	}
}

func stream(ctx context.Context, instance http.RoundTripper, body string) error {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://provider/v1/chat/completions", strings.NewReader(body))
	if err != nil {
		return err
	}
	response, err := instance.RoundTrip(r)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	_, err = io.Copy(io.Discard, response.Body)
	return err
}
