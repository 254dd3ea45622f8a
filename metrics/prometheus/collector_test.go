package penstockprom_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock"
	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/flow"
	penstockprom "github.com/penstock-go/penstock/metrics/prometheus"
)

// source delivers its documents once.
type source struct {
	name      string
	documents map[string]string
	lost      error
	copied    clock.Instant // when set: the documents are a copy
}

func (s source) Name() string { return s.name }

func (s source) Run(ctx context.Context, sink core.Sink) error {
	change := core.Change{Complete: true, Revision: 42, CopiedAt: s.copied}
	for name, text := range s.documents {
		change.Documents = append(change.Documents, core.Document{Name: name, Data: []byte(text)})
	}
	sink.Apply(change)
	if s.lost != nil {
		sink.Disconnected(s.lost)
	}
	<-ctx.Done()
	return ctx.Err()
}

// busyService returns a service with a value other than 0 for every metric.
func busyService(t *testing.T) service {
	s := newService(t, core.Config{},
		flow.Rule{Name: "orders-qps", Resource: "orders", Limit: 3},
		flow.Rule{Name: "orders-per-minute", Resource: "orders", Limit: 600, Window: time.Minute},
		flow.Rule{Name: "mail-pace", Resource: "mail", Limit: 2, Algorithm: flow.Throttle, MaxWait: time.Minute},
	)
	t.Cleanup(s.Close)
	for _, took := range []time.Duration{50 * time.Microsecond, 3 * time.Millisecond, 40 * time.Millisecond} {
		require.True(t, s.call("orders", took, nil))
	}
	s.calls("orders", 2) // refused
	s.call("search", time.Minute/4, errors.New("no index"))

	s.calls("mail", 1)
	waited := make(chan bool)
	go func() { waited <- s.call("mail", 0, nil) }()
	require.Eventually(t, func() bool { return s.clock.Timers() == 1 }, 2*time.Minute, time.Millisecond)
	s.clock.Advance(500 * time.Millisecond)
	require.True(t, <-waited)
	return s
}

const busyExposition = `
# HELP penstock_blocked_tokens_total Tokens that calls asked for that were refused.
# TYPE penstock_blocked_tokens_total counter
penstock_blocked_tokens_total{resource="mail"} 0
penstock_blocked_tokens_total{resource="orders"} 2
penstock_blocked_tokens_total{resource="search"} 0
# HELP penstock_blocked_total Calls that were refused.
# TYPE penstock_blocked_total counter
penstock_blocked_total{resource="mail"} 0
penstock_blocked_total{resource="orders"} 2
penstock_blocked_total{resource="search"} 0
# HELP penstock_documents_rejected_total Rule documents that could not be applied.
# TYPE penstock_documents_rejected_total counter
penstock_documents_rejected_total 0
# HELP penstock_failed_total Calls that ended with a failure.
# TYPE penstock_failed_total counter
penstock_failed_total{resource="mail"} 0
penstock_failed_total{resource="orders"} 0
penstock_failed_total{resource="search"} 1
# HELP penstock_flow_ceiling_tokens_per_second Effective limit of a flow rule: lower than its limit during warm-up, or while a signal that it follows is high.
# TYPE penstock_flow_ceiling_tokens_per_second gauge
penstock_flow_ceiling_tokens_per_second{resource="mail",rule="mail-pace"} 2
penstock_flow_ceiling_tokens_per_second{resource="orders",rule="orders-per-minute"} 10
penstock_flow_ceiling_tokens_per_second{resource="orders",rule="orders-qps"} 3
# HELP penstock_flow_remaining_tokens Tokens that are left of the limit of a flow rule: of a window, a bucket or a balance.
# TYPE penstock_flow_remaining_tokens gauge
penstock_flow_remaining_tokens{resource="orders",rule="orders-per-minute"} 597
penstock_flow_remaining_tokens{resource="orders",rule="orders-qps"} 3
# HELP penstock_flow_used_ratio Which part of the limit of a flow rule is used: of a window, a bucket or a balance; of a limit of the whole fleet by all instances.
# TYPE penstock_flow_used_ratio gauge
penstock_flow_used_ratio{resource="orders",rule="orders-per-minute"} 0.005
penstock_flow_used_ratio{resource="orders",rule="orders-qps"} 0
# HELP penstock_in_flight Calls under way.
# TYPE penstock_in_flight gauge
penstock_in_flight{resource="mail"} 0
penstock_in_flight{resource="orders"} 0
penstock_in_flight{resource="search"} 0
# HELP penstock_passed_tokens_total Tokens that calls asked for that were let through.
# TYPE penstock_passed_tokens_total counter
penstock_passed_tokens_total{resource="mail"} 2
penstock_passed_tokens_total{resource="orders"} 3
penstock_passed_tokens_total{resource="search"} 1
# HELP penstock_passed_total Calls that were let through.
# TYPE penstock_passed_total counter
penstock_passed_total{resource="mail"} 2
penstock_passed_total{resource="orders"} 3
penstock_passed_total{resource="search"} 1
# HELP penstock_resources Resources that the engine keeps statistics of.
# TYPE penstock_resources gauge
penstock_resources 3
# HELP penstock_resources_overflow_calls_total Calls, passed or refused, of names beyond the bound of the engine, which share statistics and limits.
# TYPE penstock_resources_overflow_calls_total counter
penstock_resources_overflow_calls_total 0
# HELP penstock_resources_without_series Resources without series of their own, which are summed up as the resource (other).
# TYPE penstock_resources_without_series gauge
penstock_resources_without_series 0
# HELP penstock_response_time_seconds Response times of the calls that ended, without their time in a queue.
# TYPE penstock_response_time_seconds histogram
penstock_response_time_seconds_bucket{resource="mail",le="0.001"} 2
penstock_response_time_seconds_bucket{resource="mail",le="0.1"} 2
penstock_response_time_seconds_bucket{resource="mail",le="1"} 2
penstock_response_time_seconds_bucket{resource="mail",le="+Inf"} 2
penstock_response_time_seconds_sum{resource="mail"} 0
penstock_response_time_seconds_count{resource="mail"} 2
penstock_response_time_seconds_bucket{resource="orders",le="0.001"} 1
penstock_response_time_seconds_bucket{resource="orders",le="0.1"} 3
penstock_response_time_seconds_bucket{resource="orders",le="1"} 3
penstock_response_time_seconds_bucket{resource="orders",le="+Inf"} 3
penstock_response_time_seconds_sum{resource="orders"} 0.04305
penstock_response_time_seconds_count{resource="orders"} 3
penstock_response_time_seconds_bucket{resource="search",le="0.001"} 0
penstock_response_time_seconds_bucket{resource="search",le="0.1"} 0
penstock_response_time_seconds_bucket{resource="search",le="1"} 0
penstock_response_time_seconds_bucket{resource="search",le="+Inf"} 1
penstock_response_time_seconds_sum{resource="search"} 15
penstock_response_time_seconds_count{resource="search"} 1
# HELP penstock_rule_blocked_total Calls that a rule in force refused.
# TYPE penstock_rule_blocked_total counter
penstock_rule_blocked_total{kind="flow",resource="mail",rule="mail-pace"} 0
penstock_rule_blocked_total{kind="flow",resource="orders",rule="orders-per-minute"} 0
penstock_rule_blocked_total{kind="flow",resource="orders",rule="orders-qps"} 2
# HELP penstock_rules Rules in force.
# TYPE penstock_rules gauge
penstock_rules 3
# HELP penstock_rules_applied_timestamp_seconds When the rule set was put in force, 0 before the first.
# TYPE penstock_rules_applied_timestamp_seconds gauge
penstock_rules_applied_timestamp_seconds 1000
# HELP penstock_rules_revision Revision of the rule set, counted by the engine.
# TYPE penstock_rules_revision gauge
penstock_rules_revision 1
# HELP penstock_rules_unmatched Rules in force that no call has matched.
# TYPE penstock_rules_unmatched gauge
penstock_rules_unmatched 0
# HELP penstock_wait_seconds Times in a queue, however they ended.
# TYPE penstock_wait_seconds summary
penstock_wait_seconds_sum{resource="mail"} 0.5
penstock_wait_seconds_count{resource="mail"} 1
penstock_wait_seconds_sum{resource="orders"} 0
penstock_wait_seconds_count{resource="orders"} 0
penstock_wait_seconds_sum{resource="search"} 0
penstock_wait_seconds_count{resource="search"} 0
# HELP penstock_waiting Calls that wait in a queue.
# TYPE penstock_waiting gauge
penstock_waiting{resource="mail"} 0
penstock_waiting{resource="orders"} 0
penstock_waiting{resource="search"} 0
`

func coarse() penstockprom.Options {
	return penstockprom.Options{Buckets: []time.Duration{time.Second, time.Millisecond, time.Second, 100 * time.Millisecond}}
}

func TestCollectorExposesAllMetricsOfTheEngine(t *testing.T) {
	collector := penstockprom.NewCollector(busyService(t).Engine, coarse())
	for range 2 { // the second scrape returns the same
		assert.NoError(t, testutil.CollectAndCompare(collector, strings.NewReader(busyExposition)))
	}
}

func TestMetricsFollowTheConventions(t *testing.T) {
	problems, err := testutil.CollectAndLint(penstockprom.NewCollector(busyService(t).Engine, penstockprom.Options{}))
	require.NoError(t, err)
	assert.Empty(t, problems)
}

func TestCollectorServesARealScrape(t *testing.T) {
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(penstockprom.NewCollector(busyService(t).Engine, coarse()))
	server := httptest.NewServer(promhttp.HandlerFor(registry, promhttp.HandlerOpts{}))
	defer server.Close()
	require.NoError(t, testutil.ScrapeAndCompare(server.URL, strings.NewReader(busyExposition)))
	http.DefaultClient.CloseIdleConnections()
}

func TestScrapeShowsCallsInFlightAndWaiting(t *testing.T) {
	s := newService(t, core.Config{}, flow.Rule{Resource: "mail", Limit: 1, Algorithm: flow.Throttle, MaxWait: time.Minute})
	defer s.Close()
	collector := penstockprom.NewCollector(s.Engine, penstockprom.Options{})
	guard, err := s.Entry(t.Context(), "mail")
	require.NoError(t, err)
	ended := make(chan bool)
	go func() { ended <- s.call("mail", 0, nil) }()
	require.Eventually(t, func() bool { return s.clock.Timers() == 1 }, 2*time.Minute, time.Millisecond)

	now := scrape(t, collector)
	assert.InDelta(t, 1, now[`penstock_in_flight{resource="mail"}`], 0)
	assert.InDelta(t, 1, now[`penstock_waiting{resource="mail"}`], 0)
	guard.Exit()
	s.clock.Advance(time.Second)
	require.True(t, <-ended)
	now = scrape(t, collector)
	assert.Zero(t, now[`penstock_in_flight{resource="mail"}`])
	assert.Zero(t, now[`penstock_waiting{resource="mail"}`])
}

func TestEffectiveLimitFollowsTheWarmUp(t *testing.T) {
	s := newService(t, core.Config{}, flow.Rule{
		Name: "warm", Resource: "orders", Limit: 300, WarmUp: flow.WarmUp{Period: 10 * time.Second, ColdFactor: 3},
	})
	defer s.Close()
	const ceiling = `penstock_flow_ceiling_tokens_per_second{resource="orders",rule="warm"}`
	collector := penstockprom.NewCollector(s.Engine, penstockprom.Options{})
	assert.InDelta(t, 100, scrape(t, collector)[ceiling], 1)
	for range 30_000 { // 30 s under full load
		s.calls("orders", 1)
		s.clock.Advance(time.Millisecond)
	}
	assert.InDelta(t, 300, scrape(t, collector)[ceiling], 1)
}

func TestCollectorExposesTheStateOfSources(t *testing.T) {
	s := newService(t, core.Config{})
	defer s.Close()
	require.NoError(t, s.Follow(t.Context(), source{name: "sound", documents: map[string]string{
		"orders.yaml": "flow: [{resource: orders, limit: 5}]",
	}}))
	require.NoError(t, s.Follow(t.Context(), source{name: "lost", lost: errors.New("no route"), documents: map[string]string{
		"a.yaml": "flow: [{resource: a, limit: -1}]", "b.yaml": "flow: [{resource: b, limit: 1}]", "c.yaml": "flew:",
	}}))
	require.Eventually(t, func() bool {
		sources := s.Status().Sources
		return s.Ready(t.Context()) == nil && sources[1].Err != nil
	}, 2*time.Minute, time.Millisecond)

	now := scrape(t, penstockprom.NewCollector(s.Engine, penstockprom.Options{}))
	for key, want := range map[string]float64{
		`penstock_source_connected{source="sound"}`:          1,
		`penstock_source_connected{source="lost"}`:           0,
		`penstock_source_revision{source="sound"}`:           42,
		`penstock_source_rejected_documents{source="sound"}`: 0,
		`penstock_source_rejected_documents{source="lost"}`:  2,
		`penstock_documents_rejected_total`:                  2,
		`penstock_rules`:                                     2,
	} {
		require.Contains(t, now, key)
		assert.InDelta(t, want, now[key], 0, key)
	}
}

// silent is a source that never delivers or fails.
type silent struct{}

func (silent) Name() string { return "silent" }

func (silent) Run(ctx context.Context, _ core.Sink) error {
	<-ctx.Done()
	return ctx.Err()
}

func TestCollectorExposesTheStalenessOfSources(t *testing.T) {
	s := newService(t, core.Config{})
	defer s.Close()
	now := s.clock.Now()
	for _, followed := range []core.Source{
		source{name: "sound"},
		source{name: "lost", lost: errors.New("no route")},
		source{name: "copied", copied: now.Add(-time.Hour), lost: errors.New("no route")},
		source{name: "fast", copied: now.Add(time.Hour)},
		silent{},
	} {
		require.NoError(t, s.Follow(t.Context(), followed))
	}
	require.Eventually(t, func() bool {
		sources := s.Status().Sources
		return sources[0].Ready && sources[1].Err != nil && sources[2].Err != nil && sources[3].Ready
	}, 2*time.Minute, time.Millisecond)
	s.clock.Advance(90 * time.Second)

	found := scrape(t, penstockprom.NewCollector(s.Engine, penstockprom.Options{}))
	for name, want := range map[string][2]float64{
		"sound": {0, 0}, "lost": {90, 0}, "copied": {3690, 1}, "fast": {0, 1}, "silent": {90, 0},
	} {
		assert.InDelta(t, want[0], found[`penstock_source_staleness_seconds{source="`+name+`"}`], 0, name)
		assert.InDelta(t, want[1], found[`penstock_source_on_copy{source="`+name+`"}`], 0, name)
		assert.Contains(t, found, `penstock_source_on_copy{source="`+name+`"}`)
	}
}

// shrinking is a source that removes its rules.
type shrinking struct{}

func (shrinking) Name() string { return "shrinking" }

func (shrinking) Run(ctx context.Context, sink core.Sink) error {
	document := core.Document{Name: "a", Data: []byte("flow: [{resource: a, limit: 1}]")}
	sink.Apply(core.Change{Complete: true, Documents: []core.Document{document}})
	sink.Apply(core.Change{Complete: true})
	<-ctx.Done()
	return ctx.Err()
}

func TestCollectorExposesHeldBackSources(t *testing.T) {
	s := newService(t, core.Config{MaxRemoval: 0.5})
	defer s.Close()
	require.NoError(t, s.Follow(t.Context(), source{name: "sound"}))
	require.NoError(t, s.Follow(t.Context(), shrinking{}))
	require.Eventually(t, func() bool { // it is counted last
		now := s.Snapshot()
		return now.Status.Sources[1].HeldBack != nil && now.Rejected == 1
	}, 2*time.Minute, time.Millisecond)
	found := scrape(t, penstockprom.NewCollector(s.Engine, penstockprom.Options{}))
	assert.InDelta(t, 1, found[`penstock_source_held_back{source="shrinking"}`], 0)
	assert.InDelta(t, 1, found[`penstock_source_rejected_documents{source="shrinking"}`], 0)
	assert.Contains(t, found, `penstock_source_held_back{source="sound"}`)
	assert.InDelta(t, 0, found[`penstock_source_held_back{source="sound"}`], 0)
}

func TestEnginesInOneRegistryNeedLabels(t *testing.T) {
	a, b := newService(t, core.Config{}), newService(t, core.Config{})
	defer a.Close()
	defer b.Close()
	registry := prometheus.NewPedanticRegistry()
	collect := func(s service, labels prometheus.Labels) error {
		return registry.Register(penstockprom.NewCollector(s.Engine, penstockprom.Options{ConstLabels: labels}))
	}
	require.NoError(t, collect(a, prometheus.Labels{"engine": "a"}))
	require.NoError(t, collect(b, prometheus.Labels{"engine": "b"}))
	require.ErrorAs(t, collect(b, prometheus.Labels{"engine": "b"}), new(prometheus.AlreadyRegisteredError))
	require.ErrorContains(t, collect(b, prometheus.Labels{"resource": "b"}), "duplicate label names")
	require.ErrorContains(t, collect(b, prometheus.Labels{"engine": "\xff"}), "UTF-8")

	a.calls("r", 1)
	b.calls("r", 2)
	require.NoError(t, testutil.GatherAndCompare(registry, strings.NewReader(`
		# HELP penstock_passed_tokens_total Tokens that calls asked for that were let through.
# TYPE penstock_passed_tokens_total counter
penstock_passed_tokens_total{resource="mail"} 2
penstock_passed_tokens_total{resource="orders"} 3
penstock_passed_tokens_total{resource="search"} 1
# HELP penstock_passed_total Calls that were let through.
		# TYPE penstock_passed_total counter
		penstock_passed_total{engine="a",resource="r"} 1
		penstock_passed_total{engine="b",resource="r"} 2
	`), "penstock_passed_total"))
}

func TestNilEngineIsTheDefaultEngine(t *testing.T) {
	const name = "of the default engine"
	collector := penstockprom.NewCollector(nil, penstockprom.Options{})
	before := scrape(t, collector)[passed(name)]
	guard, err := penstock.Entry(t.Context(), name)
	require.NoError(t, err)
	guard.Exit()
	assert.InDelta(t, before+1, scrape(t, collector)[passed(name)], 0)
}

func TestClosedEngineCanBeScraped(t *testing.T) {
	s := newService(t, core.Config{}, flow.Rule{Resource: "r", Limit: 5})
	collector := penstockprom.NewCollector(s.Engine, penstockprom.Options{})
	s.calls("r", 3)
	assert.InDelta(t, 3, scrape(t, collector)[passed("r")], 0)
	s.Close()
	assert.InDelta(t, 3, scrape(t, collector)[passed("r")], 0)
}

func TestDefaultBucketsReachFromMicrosecondsToSeconds(t *testing.T) {
	s := newService(t, core.Config{})
	defer s.Close()
	s.calls("r", 1)
	registry := prometheus.NewRegistry()
	registry.MustRegister(penstockprom.NewCollector(s.Engine, penstockprom.Options{}))
	families, err := registry.Gather()
	require.NoError(t, err)
	var bounds []float64
	for _, family := range families {
		for _, metric := range family.GetMetric() {
			for _, b := range metric.GetHistogram().GetBucket() {
				bounds = append(bounds, b.GetUpperBound())
			}
		}
	}
	extended := append([]float64{.0001, .00025, .0005, .001, .0025}, prometheus.DefBuckets...)
	assert.Equal(t, extended, bounds)
}

func TestCountersNeverGoDownUnderTraffic(t *testing.T) {
	s := newService(t, core.Config{}, flow.Rule{Resource: "r", Limit: 500})
	defer s.Close()
	registry := prometheus.NewPedanticRegistry()
	collector := penstockprom.NewCollector(s.Engine, penstockprom.Options{})
	registry.MustRegister(collector)
	server := httptest.NewServer(promhttp.HandlerFor(registry, promhttp.HandlerOpts{}))
	defer server.Close()

	var traffic, scrapes sync.WaitGroup
	done := make(chan struct{})
	for _, resource := range []string{"r", "r", "free"} {
		traffic.Go(func() {
			for {
				select {
				case <-done:
					return
				default:
					s.call(resource, time.Millisecond, nil)
				}
			}
		})
	}
	for range 3 {
		scrapes.Go(func() {
			before := series{}
			for range 30 {
				now := seriesOf(gather(t, collector))
				assertGrowth(t, before, now)
				before = now
				response, err := server.Client().Get(server.URL)
				if !assert.NoError(t, err) {
					return
				}
				_, err = io.Copy(io.Discard, response.Body)
				assert.NoError(t, err)
				assert.NoError(t, response.Body.Close())
				assert.Equal(t, http.StatusOK, response.StatusCode)
			}
		})
	}
	scrapes.Wait()
	close(done)
	traffic.Wait()
}
