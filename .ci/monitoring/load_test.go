package monitoring_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/fleet"
	"github.com/penstock-go/penstock/fleet/memory"
	"github.com/penstock-go/penstock/list"
	penstockprom "github.com/penstock-go/penstock/metrics/prometheus"
	"github.com/penstock-go/penstock/rule"
)

const (
	lasts    = 12 * time.Minute
	interval = 10 * time.Second // of scrapes
)

// document has rules of every kind.
const document = `
flow:
  - {name: orders-rate, resource: "GET:/orders/{id}", limit: 40}
  - {name: mail-pace, resource: mail:send, limit: 4, algorithm: throttle, maxWait: 5s}
  - {name: search-shadow, resource: search, limit: 8, shadow: true}
  - {name: search-memory, resource: search, limit: 60, follow: {signal: memory, from: 0.5, to: 0.9, least: 10}}
  - {name: llm-tokens, resource: llm:complete, limit: 150, algorithm: tokenBucket}
  - {name: partner-quota, resource: partners:call, limit: 50, scope: fleet}
  - {name: nobody, resource: "GET:/ordrs/{id}", limit: 1}
isolation:
  - {name: render-pool, resource: reports:render, limit: 6, maxWait: 3s, maxQueue: 20}
breaker:
  - {name: pay-errors, resource: pay:charge, strategy: errorRatio, threshold: 0.5, minCalls: 10, openFor: 20s, probes: 3}
hotParam:
  - {name: per-user, resource: "GET:/orders/{id}", param: user, limit: 3, maxValues: 100, penalty: {after: 50, within: 10s, for: 30s}}
access:
  - {name: no-scrapers, resource: search, attribute: ip, list: scrapers, deny: [192.0.2.0/24]}
adaptive:
  - {name: shed, resource: "POST:/checkout"}
fault:
  - {name: slow-search, resource: search, percent: 10, delay: 200ms, until: 2000-01-02T00:00:00Z}
`

// stream is calls of one resource.
type stream struct {
	resource string
	rate     func(minute float64) float64 // per second
	options  func(minute float64, random *rand.Rand) []core.Option
	serve    func(in *instance, minute float64, random *rand.Rand) error // nil: takes 20 ms
}

// steady, wave and during are rates of calls.
func steady(rate float64) func(float64) float64 { return func(float64) float64 { return rate } }

func wave(from, to, period float64) func(float64) float64 {
	return func(minute float64) float64 { return from + (to-from)*(1-math.Cos(2*math.Pi*minute/period))/2 }
}

func during(from, to, rate, otherwise float64) func(float64) float64 {
	return func(minute float64) float64 {
		if from <= minute && minute < to {
			return rate
		}
		return otherwise
	}
}

var errDown = errors.New("the payment provider is down")

// streams returns the load of an instance, whose parts get into trouble one after the other.
func streams() []stream {
	takes := func(mean time.Duration) func(*instance, float64, *rand.Rand) error {
		return func(_ *instance, _ float64, random *rand.Rand) error {
			time.Sleep(time.Duration(random.ExpFloat64() * float64(mean)))
			return nil
		}
	}
	return []stream{
		{resource: "GET:/orders/{id}", rate: wave(15, 55, 6), options: func(minute float64, random *rand.Rand) []core.Option {
			if 5 < minute && minute < 7 && random.IntN(3) == 0 {
				return []core.Option{core.String("user", "mallory")}
			}
			return []core.Option{core.String("user", fmt.Sprint("user", random.IntN(150)))}
		}, serve: takes(8 * time.Millisecond)},
		{resource: "mail:send", rate: during(3, 6, 6, 2)},
		{resource: "search", rate: wave(6, 14, 4), options: func(minute float64, random *rand.Rand) []core.Option {
			if minute > 4 && random.IntN(4) == 0 {
				return []core.Option{core.String(rule.KeyIP, "192.0.2.7")}
			}
			return []core.Option{core.String(rule.KeyIP, "198.51.100.1")}
		}, serve: takes(60 * time.Millisecond)},
		{resource: "llm:complete", rate: steady(3), options: func(_ float64, random *rand.Rand) []core.Option {
			return []core.Option{core.Tokens(10 + random.IntN(110))}
		}, serve: takes(time.Second)},
		{resource: "partners:call", rate: wave(15, 35, 5)},
		{resource: "reports:render", rate: during(2, 5, 5, 1), serve: takes(1500 * time.Millisecond)},
		{resource: "pay:charge", rate: steady(8), serve: func(_ *instance, minute float64, random *rand.Rand) error {
			if 3 < minute && minute < 5 && random.IntN(10) > 0 {
				time.Sleep(300 * time.Millisecond)
				return errDown
			}
			time.Sleep(40 * time.Millisecond)
			if random.IntN(12) == 0 {
				return errDown
			}
			return nil
		}},
		{resource: "POST:/checkout", rate: during(6, 9, 100, 30), options: func(_ float64, random *rand.Rand) []core.Option {
			priorities := []rule.Priority{rule.PriorityHigh, rule.PriorityNormal, rule.PriorityNormal, rule.PriorityLow, rule.PrioritySheddable}
			return []core.Option{core.Inbound(), core.Priority(priorities[random.IntN(len(priorities))])}
		}, serve: func(in *instance, _ float64, _ *rand.Rand) error {
			in.workers <- struct{}{}
			time.Sleep(80 * time.Millisecond)
			<-in.workers
			return nil
		}},
		{resource: "", rate: during(9, 11, 3, 0)}, // a scanner, whose names nobody knows
	}
}

// scrape is what an instance answered.
type scrape struct {
	at          time.Time
	instance    string
	contentType string
	body        []byte
}

// run runs two instances of a service for some minutes of virtual time and scrapes them. One
// exposes classic histograms, the other one native ones. All of it is in a bubble of
// testing/synctest: whatever sleeps there takes no time.
func run(t *testing.T) (scrapes []scrape) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		store := &faultyStore{Store: memory.New(clock.System())}
		time.AfterFunc(8*time.Minute+30*time.Second, func() { store.away.Store(true) })
		time.AfterFunc(9*time.Minute+30*time.Second, func() { store.away.Store(false) })
		var instances sync.WaitGroup
		var mu sync.Mutex // guards scrapes
		for i, histograms := range []penstockprom.Histograms{penstockprom.ClassicHistograms, penstockprom.NativeHistograms} {
			in := newInstance(t, fmt.Sprintf("shop-%d", i+1), store, histograms)
			for n, s := range streams() {
				instances.Go(func() { in.stream(s, rand.New(rand.NewPCG(uint64(i), uint64(n)))) })
			}
			instances.Go(func() {
				for in.minute() < lasts.Minutes() {
					answer := in.scrape()
					mu.Lock()
					scrapes = append(scrapes, answer)
					mu.Unlock()
					time.Sleep(interval)
				}
				problems, err := testutil.GatherAndLint(in.registry)
				assert.NoError(t, err)
				assert.Empty(t, problems, "what promtool check metrics says")
			})
		}
		instances.Wait()
	})
	return scrapes
}

// instance is one process of the service.
type instance struct {
	t        *testing.T
	name     string
	begin    time.Time
	engine   *core.Engine
	registry *prometheus.Registry
	metrics  http.Handler
	workers  chan struct{} // what serves checkouts
}

func newInstance(t *testing.T, name string, store fleet.Store, histograms penstockprom.Histograms) *instance {
	in := &instance{t: t, name: name, begin: time.Now(), workers: make(chan struct{}, 4)}
	in.engine = core.New(core.Config{
		Logger: slog.New(slog.DiscardHandler), Signals: signals{in}, MaxResources: 40, Seed: 7,
		Fleet: fleet.Config{Backend: store, Instance: name},
	})
	t.Cleanup(in.engine.Close)
	var scrapers list.Builder
	require.NoError(t, scrapers.AddText("203.0.113.0/24"))
	made, err := scrapers.Build(t.Context())
	require.NoError(t, err)
	in.engine.Lists().Set("scrapers", made)
	require.NoError(t, in.engine.Follow(t.Context(), source{}))
	inTime, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	require.NoError(t, in.engine.Ready(inTime))
	time.AfterFunc(11*time.Minute, func() {
		_ = in.engine.Control(core.Scope{Kind: "fault"}, "off")
		_ = in.engine.Switch(core.Scope{Kind: "access"}, core.SwitchOff)
		in.engine.Lists().Set("scrapers", nil)
	})

	in.registry = prometheus.NewPedanticRegistry()
	in.registry.MustRegister(penstockprom.NewCollector(in.engine, penstockprom.Options{MaxResources: 20, Histograms: histograms}))
	in.metrics = promhttp.HandlerFor(in.registry, promhttp.HandlerOpts{DisableCompression: true})
	return in
}

// minute returns how long the instance has been running.
func (in *instance) minute() float64 { return time.Since(in.begin).Minutes() }

// stream makes the calls of a stream, at even intervals, and waits until they have ended.
func (in *instance) stream(s stream, random *rand.Rand) {
	var calls sync.WaitGroup
	defer calls.Wait()
	for n := 0; in.minute() < lasts.Minutes(); n++ {
		minute := in.minute()
		rate := s.rate(minute)
		if rate == 0 {
			time.Sleep(time.Second)
			continue
		}
		time.Sleep(time.Duration(float64(time.Second) / rate))
		var options []core.Option
		if s.options != nil {
			options = s.options(minute, random)
		}
		name := s.resource
		if name == "" {
			name = fmt.Sprintf("GET:/unknown/%d", n)
		}
		own := rand.New(rand.NewPCG(random.Uint64(), 0))
		calls.Go(func() { in.call(name, options, s, own) })
	}
}

func (in *instance) call(resource string, options []core.Option, s stream, random *rand.Rand) {
	guard, err := in.engine.Entry(in.t.Context(), resource, options...)
	if err != nil {
		return
	}
	defer guard.Exit()
	if s.serve == nil {
		time.Sleep(20 * time.Millisecond)
		return
	}
	guard.Fail(s.serve(in, in.minute(), random))
}

func (in *instance) scrape() scrape {
	request := httptest.NewRequest(http.MethodGet, "/metrics", nil)
	request.Header.Set("Accept", "application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=delimited")
	answer := httptest.NewRecorder()
	in.metrics.ServeHTTP(answer, request)
	return scrape{time.Now(), in.name, answer.Header().Get("Content-Type"), answer.Body.Bytes()}
}

// signals is how busy the machine of an instance is.
type signals struct{ *instance }

// Read implements [core.SignalSource].
func (s signals) Read(context.Context, rule.Signal) (float64, error) {
	return wave(0.4, 0.85, 10)(s.minute()), nil
}

// source delivers the document, later one with a mistake as well, and is lost for a while.
type source struct{}

// Name implements [core.Source].
func (source) Name() string { return "etcd" }

// Run implements [core.Source].
func (source) Run(ctx context.Context, sink core.Sink) error {
	documents := []core.Document{{Name: "shop", Data: []byte(document)}}
	sink.Apply(core.Change{Complete: true, Documents: documents, Revision: 1})
	time.Sleep(2 * time.Minute)
	faulty := core.Document{Name: "faulty", Data: []byte("flow: [{resource: a, limit: -1}]")}
	sink.Apply(core.Change{Documents: []core.Document{faulty}, Revision: 2})
	time.Sleep(2 * time.Minute)
	sink.Disconnected(errors.New("no endpoint answers"))
	time.Sleep(3 * time.Minute)
	sink.Apply(core.Change{Complete: true, Documents: documents, Revision: 3})
	<-ctx.Done()
	return ctx.Err()
}

// faultyStore is a store of a fleet that answers within two to four milliseconds, and is away
// for a while.
type faultyStore struct {
	fleet.Store
	away     atomic.Bool
	requests atomic.Int64
}

// Exchange implements [fleet.Store].
func (s *faultyStore) Exchange(ctx context.Context, requests []fleet.Request, replies []fleet.Reply) {
	time.Sleep(2*time.Millisecond + time.Duration(s.requests.Add(1)%200)*10*time.Microsecond)
	if s.away.Load() {
		for i := range replies {
			replies[i] = fleet.Reply{Err: fleet.ErrUnavailable}
		}
		return
	}
	s.Store.Exchange(ctx, requests, replies)
}

// Announce implements [fleet.Backend].
func (s *faultyStore) Announce(ctx context.Context, self fleet.Instance, withInstances bool) (fleet.Fleet, error) {
	if s.away.Load() {
		return fleet.Fleet{}, fleet.ErrUnavailable
	}
	return s.Store.Announce(ctx, self, withInstances)
}
