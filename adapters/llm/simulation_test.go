package llm_test

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"math"
	"math/rand/v2"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/adapters/llm"
	"github.com/penstock-go/penstock/adapters/llm/llmtest"
	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/fleet"
	"github.com/penstock-go/penstock/fleet/memory"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/rule"
	"github.com/penstock-go/penstock/rules"
)

// The scene: eight instances share a limit of a million tokens a minute, and a hundred clients have
// one stream after the other. Nobody knows how long an answer will be.
const (
	simLimit     = 1_000_000
	simInstances = 8
	simStreams   = 100
	simMost      = 4096 // that a request allows
	simMean      = 800
	simPrompt    = 200
	simSpeed     = 300 // tokens a second of one stream: together nearly twice the limit
)

// simChunk is how many tokens an event has: few if PENSTOCK_LONG is set, since all events together take long.
func simChunk() int {
	if os.Getenv("PENSTOCK_LONG") != "" {
		return 4
	}
	return 16
}

// farStore is a store behind a network.
type farStore struct{ *memory.Store }

func (s farStore) Exchange(ctx context.Context, requests []fleet.Request, replies []fleet.Reply) {
	time.Sleep(time.Millisecond)
	s.Store.Exchange(ctx, requests, replies)
	time.Sleep(time.Millisecond)
}

// usedTokens counts the tokens of each minute when they are used.
type usedTokens struct {
	mu      sync.Mutex
	begin   time.Time
	minutes []int
	calls   int
	stopped int
}

func (u *usedTokens) add(tokens int) {
	u.mu.Lock()
	defer u.mu.Unlock()
	minute := int(time.Since(u.begin) / time.Minute)
	for len(u.minutes) <= minute {
		u.minutes = append(u.minutes, 0)
	}
	u.minutes[minute] += tokens
}

func (u *usedTokens) ended(r llm.Report) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if r.Status == http.StatusOK {
		u.calls++
	}
	if r.Stopped {
		u.stopped++
	}
}

// simulate runs the scene for some minutes. connect returns the transport of an instance.
func simulate(t *testing.T, minutes int, connect func(*core.Engine, *llmtest.Provider, *usedTokens) http.RoundTripper) *usedTokens {
	t.Helper()
	used := new(usedTokens)
	synctest.Test(t, func(t *testing.T) {
		used.begin = time.Now()
		store := farStore{memory.New(clock.System())}
		var mu sync.Mutex
		random := rand.New(rand.NewPCG(1, 2))
		provider := &llmtest.Provider{Chunk: simChunk(), Speed: simSpeed, Served: used.add, Answer: func(llmtest.Request) int {
			mu.Lock()
			defer mu.Unlock()
			const sigma = 0.8
			return max(1, int(simMean*math.Exp(sigma*random.NormFloat64()-sigma*sigma/2)))
		}}
		ctx, cancel := context.WithTimeout(t.Context(), time.Duration(minutes)*time.Minute-time.Millisecond)
		defer cancel()
		var clients sync.WaitGroup
		engines := make([]*core.Engine, simInstances)
		transports := make([]http.RoundTripper, simInstances)
		for i := range engines {
			engines[i] = core.New(core.Config{Logger: slog.New(slog.DiscardHandler), Fleet: fleet.Config{Backend: store, Instance: fmt.Sprint("instance ", i)}})
			require.NoError(t, engines[i].Load(rules.Set{Flow: []flow.Rule{{
				Name: "provider", Resource: llm.TokensResource, Limit: simLimit, Window: time.Minute, Algorithm: flow.FixedWindow,
				Scope: "fleet", Fleet: rule.Fleet{Mode: fleet.ModeAsk},
			}}}))
			transports[i] = connect(engines[i], provider, used)
		}
		for i := range simStreams {
			clients.Go(func() { client(ctx, transports[i%simInstances], uint64(i)) })
		}
		clients.Wait()
		for _, e := range engines {
			e.Close()
		}
	})
	return used
}

// client has one stream after the other.
func client(ctx context.Context, transport http.RoundTripper, seed uint64) {
	random := rand.New(rand.NewPCG(seed, 3))
	body := `{"model":"m","stream":true,"max_tokens":` + fmt.Sprint(simMost) + `,"messages":[{"role":"user","content":"` +
		strings.Repeat(llmtest.Word, simPrompt) + `"}]}`
	for ctx.Err() == nil {
		r, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://provider/v1/chat/completions", strings.NewReader(body))
		if err != nil {
			panic(err)
		}
		response, err := transport.RoundTrip(r)
		if err != nil { // it is refused
			time.Sleep(time.Duration(100+random.IntN(200)) * time.Millisecond)
			continue
		}
		_, _ = io.Copy(io.Discard, response.Body) // it may be cut at the end of the simulation
		_ = response.Body.Close()
	}
}

// byMeter is how the module does it.
func byMeter(t *testing.T) func(*core.Engine, *llmtest.Provider, *usedTokens) http.RoundTripper {
	return func(e *core.Engine, p *llmtest.Provider, used *usedTokens) http.RoundTripper {
		meter, err := llm.New(llm.Options{Engine: e, StopStreams: true, Ended: used.ended})
		require.NoError(t, err)
		return meter.Transport(llmtest.Local(p))
	}
}

// byMost reserves as many tokens as a request allows, and keeps them.
func byMost(e *core.Engine, p *llmtest.Provider, used *usedTokens) http.RoundTripper {
	return roundTrip(func(r *http.Request) (*http.Response, error) {
		guard, err := e.Entry(r.Context(), llm.TokensResource, core.Tokens(simPrompt+simMost))
		if err != nil {
			return nil, err
		}
		defer guard.Exit()
		response, err := llmtest.Local(p).RoundTrip(r)
		if err == nil {
			used.ended(llm.Report{Status: response.StatusCode})
		}
		return response, err
	})
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// figures are what a simulation shows.
type figures struct {
	most, mean, stopped float64
	calls               int
}

func (u *usedTokens) figures(minutes int) (f figures) {
	for _, n := range u.minutes[1:minutes] { // the first one learns
		f.most = max(f.most, float64(n)/simLimit)
		f.mean += float64(n) / simLimit / float64(minutes-1)
	}
	f.most = max(f.most, float64(u.minutes[0])/simLimit)
	f.calls, f.stopped = u.calls, float64(u.stopped)/float64(max(1, u.calls))
	return f
}

func (f figures) String() string {
	return fmt.Sprintf("used %.1f %% on average, %.2f %% in the worst minute, %d calls, %.1f %% of them stopped",
		100*f.mean, 100*f.most, f.calls, 100*f.stopped)
}

func TestStreamsOfUnknownLengthUseTheLimitAndKeepIt(t *testing.T) {
	if testing.Short() {
		t.Skip("one goroutine, and long")
	}
	const minutes = 2
	f := simulate(t, minutes, byMeter(t)).figures(minutes)
	t.Log(f)
	// Each stream may have an event or two more than the limit: those that are under way.
	assert.LessOrEqual(t, f.most, 1+2.5*float64(simStreams*simChunk())/simLimit)
	assert.GreaterOrEqual(t, f.mean, 0.95)
	assert.LessOrEqual(t, f.stopped, 0.1)
}

func TestReservingTheMostThatARequestAllowsWastesTheLimit(t *testing.T) {
	if testing.Short() {
		t.Skip("one goroutine, and long")
	}
	const minutes = 2
	f := simulate(t, minutes, byMost).figures(minutes)
	t.Log(f)
	assert.LessOrEqual(t, f.mean, 0.4)
}
