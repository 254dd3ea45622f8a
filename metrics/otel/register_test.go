package penstockotel_test

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/penstock-go/penstock/breaker"
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/isolation"
	penstockotel "github.com/penstock-go/penstock/metrics/otel"
	"github.com/penstock-go/penstock/rules"
)

func TestMetricsOfCallsAndRules(t *testing.T) {
	t.Parallel()
	s := newService(t, rules.Set{
		Flow: []flow.Rule{
			{Name: "orders-limit", Resource: "orders", Limit: 3},
			{Name: "stricter", Resource: "orders", Limit: 1, Shadow: true},
		},
		Isolation: []isolation.Rule{{Name: "pool", Resource: "pay", Limit: 10}},
		Breaker: []breaker.Rule{{
			Name: "pay-errors", Resource: "pay", Strategy: breaker.ErrorCount, Threshold: 1,
			Window: 10 * time.Second, OpenFor: time.Second,
		}},
	}, penstockotel.Options{}, core.Config{})
	assert.Equal(t, 3, s.calls("orders", 5))
	underWay, err := s.Entry(t.Context(), "pay")
	require.NoError(t, err)
	failing, err := s.Entry(t.Context(), "pay")
	require.NoError(t, err)
	failing.Fail(errors.New("declined"))
	failing.Exit()
	s.calls("pay", 2)

	lines := s.collect(t)
	assert.Subset(t, lines, []string{
		"penstock.requests{resource=orders result=acquired} 3",
		"penstock.requests{resource=orders result=refused} 2",
		"penstock.requests{resource=pay result=acquired} 2",
		"penstock.requests{resource=pay result=refused} 2",
		"penstock.failed_requests{resource=pay} 1",
		"penstock.active_requests{resource=pay} 1",
		"penstock.queued_requests{resource=pay} 0",
		"penstock.rule.refusals{reason=rateLimited resource=orders rule.kind=flow rule.name=orders-limit} 2",
		"penstock.rule.refusals{reason=unavailable resource=pay rule.kind=breaker rule.name=pay-errors} 2",
		"penstock.rule.shadow_refusals{resource=orders rule.kind=flow rule.name=stricter} 2",
		"penstock.rule.limit{resource=orders rule.kind=flow rule.name=orders-limit} 3",
		"penstock.rule.used{resource=orders rule.kind=flow rule.name=orders-limit} 1",
		"penstock.rule.remaining{resource=orders rule.kind=flow rule.name=orders-limit} 0",
		"penstock.rule.state{resource=pay rule.kind=breaker rule.name=pay-errors state=open} 1",
		"penstock.rule.state{resource=pay rule.kind=breaker rule.name=pay-errors state=closed} 0",
		"penstock.rule.transitions{resource=pay rule.kind=breaker rule.name=pay-errors state.from=closed state.to=open} 1",
		"penstock.isolation.in_flight{resource=pay rule.kind=isolation rule.name=pool} 1",
		"penstock.rule.in_force 4",
		"penstock.rule.unmatched 0",
		"penstock.document.rejections 0",
	}, strings.Join(lines, "\n"))
	underWay.Exit()
}

// Each kind of rule has its metrics, whatever it shows, with names as OpenTelemetry has them.
func TestNamesOfMetrics(t *testing.T) {
	t.Parallel()
	s := newService(t, rules.Set{}, penstockotel.Options{}, core.Config{})
	for _, kind := range s.Kinds() {
		for _, gauge := range kind.Gauges() {
			assert.Regexp(t, `^penstock\.[a-z_]+\.[a-z_]+$`, penstockotel.KindMetric(kind.Kind(), gauge.Name))
		}
	}
	assert.Equal(t, "penstock.hot_param.tracked", penstockotel.KindMetric("hotParam", "tracked"))
}

func TestResourcesBeyondTheBoundAreSummedUp(t *testing.T) {
	t.Parallel()
	s := newService(t, rules.Set{Flow: []flow.Rule{
		{Name: "known", Resource: "z", Limit: 1}, {Name: "each", Match: "r*", Limit: 2}, {Name: "strict", Resource: "r4", Limit: 1},
	}}, penstockotel.Options{MaxResources: 3}, core.Config{})
	for i := range 5 {
		s.calls("r"+strconv.Itoa(i), 1)
	}
	s.calls("r3", 3)
	s.calls("z", 2)
	lines := s.collect(t)
	assert.Equal(t, []string{
		"penstock.requests{resource=(other) result=acquired} 4",
		"penstock.requests{resource=(other) result=refused} 2",
		"penstock.requests{resource=r0 result=acquired} 1",
		"penstock.requests{resource=r0 result=refused} 0",
		"penstock.requests{resource=r4 result=acquired} 1",
		"penstock.requests{resource=r4 result=refused} 0",
		"penstock.requests{resource=z result=acquired} 1",
		"penstock.requests{resource=z result=refused} 1",
	}, named(lines, "penstock.requests{"), "those that rules name come first, and count too")
	assert.Equal(t, []string{
		"penstock.rule.refusals{reason=rateLimited resource=(other) rule.kind=flow rule.name=each} 2",
		"penstock.rule.refusals{reason=rateLimited resource=r0 rule.kind=flow rule.name=each} 0",
		"penstock.rule.refusals{reason=rateLimited resource=r4 rule.kind=flow rule.name=each} 0",
		"penstock.rule.refusals{reason=rateLimited resource=r4 rule.kind=flow rule.name=strict} 0",
		"penstock.rule.refusals{reason=rateLimited resource=z rule.kind=flow rule.name=known} 1",
	}, named(lines, "penstock.rule.refusals{"))
}

func TestThousandResourcesHaveSeriesByDefault(t *testing.T) {
	t.Parallel()
	var set rules.Set
	for i := range 1500 {
		set.Flow = append(set.Flow, flow.Rule{Resource: "r" + strconv.Itoa(i), Limit: 1})
	}
	s := newService(t, set, penstockotel.Options{}, core.Config{})
	for i := range 1500 {
		s.calls("r"+strconv.Itoa(i), 1)
	}
	lines := named(s.collect(t), "penstock.active_requests{")
	assert.Len(t, lines, 1001)
	assert.Contains(t, s.collect(t), "penstock.requests{resource=(other) result=acquired} 500")
}

func TestTokensOfCalls(t *testing.T) {
	t.Parallel()
	s := newService(t, rules.Set{Flow: []flow.Rule{{Name: "tokens", Resource: "llm", Limit: 100}}}, penstockotel.Options{}, core.Config{})
	for _, tokens := range []int{60, 30, 20, 15} {
		if guard, err := s.Entry(t.Context(), "llm", core.Tokens(tokens)); err == nil {
			guard.Exit()
		}
	}
	assert.Equal(t, []string{
		"penstock.tokens{resource=llm result=acquired} 90",
		"penstock.tokens{resource=llm result=refused} 35",
	}, named(s.collect(t), "penstock.tokens{"))
}

// Calls of resources that are forgotten between two collections are counted, too.
func TestCallsOfForgottenResourcesAreSummedUp(t *testing.T) {
	t.Parallel()
	s := newService(t, rules.Set{}, penstockotel.Options{}, core.Config{})
	s.calls("old", 3)
	s.clock.Advance(2 * time.Minute)
	s.calls("new", 1)
	assert.Equal(t, []string{
		"penstock.requests{resource=(other) result=acquired} 3",
		"penstock.requests{resource=(other) result=refused} 0",
		"penstock.requests{resource=new result=acquired} 1",
		"penstock.requests{resource=new result=refused} 0",
	}, named(s.collect(t), "penstock.requests{"))
}

// For any sequence of calls, waits and collections: every call is counted once, and there are
// never more series than the bound.
func TestProperty_EveryCallIsCountedOnceInABoundedNumberOfSeries(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(r *rapid.T) {
		const most = 3
		s := newService(t, rules.Set{}, penstockotel.Options{MaxResources: most}, core.Config{MaxResources: 6})
		total, forgotten := 0, false
		for range rapid.IntRange(1, 30).Draw(r, "steps") {
			switch rapid.IntRange(0, 3).Draw(r, "step") {
			case 0:
				s.clock.Advance(time.Minute + time.Second) // resources that are not called are forgotten
				forgotten = true
			case 1:
				s.collect(t)
			default:
				name := "r" + strconv.Itoa(rapid.IntRange(0, 9).Draw(r, "resource"))
				total += s.calls(name, rapid.IntRange(1, 5).Draw(r, "calls"))
			}
		}
		lines := named(s.collect(t), "penstock.requests{")
		if len(lines) > 2*(most+1) {
			r.Fatalf("%d series: %v", len(lines), lines)
		}
		shown := 0
		for _, line := range lines {
			var n int
			_, err := fmt.Sscan(line[strings.LastIndex(line, " "):], &n)
			require.NoError(r, err)
			shown += n
		}
		if shown > total || shown < total && !forgotten {
			r.Fatalf("%d calls are shown of %d", shown, total)
		}
	})
}

func TestNamesThatAreNotUTF8AreMended(t *testing.T) {
	t.Parallel()
	s := newService(t, rules.Set{}, penstockotel.Options{}, core.Config{})
	s.calls("a\xff", 1)
	s.calls("a\xfe", 1)
	assert.Contains(t, s.collect(t), "penstock.requests{resource=a\uFFFD result=acquired} 2")
}

func TestConcurrentCollectionsCountOnce(t *testing.T) {
	t.Parallel()
	s := newService(t, rules.Set{}, penstockotel.Options{}, core.Config{})
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 50 {
				s.calls("r", 10)
				s.collect(t)
			}
		})
	}
	all.Wait()
	assert.Contains(t, s.collect(t), "penstock.requests{resource=r result=acquired} 4000")
}

func TestStateOfSources(t *testing.T) {
	t.Parallel()
	s := newService(t, rules.Set{}, penstockotel.Options{}, core.Config{})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	require.NoError(t, s.Follow(ctx, lostSource{}))
	require.Eventually(t, func() bool { return len(named(s.collect(t), "penstock.source.connected")) > 0 }, 2*time.Minute, time.Millisecond)
	s.clock.Advance(time.Minute)
	lines := s.collect(t)
	assert.Contains(t, lines, "penstock.source.connected{source=lost} 0")
	assert.Contains(t, lines, "penstock.source.staleness{source=lost} 60")
}

func TestLoadIsThereOnceAGuardWasAskedAboutIt(t *testing.T) {
	t.Parallel()
	s := newService(t, rules.Set{Isolation: []isolation.Rule{{Resource: "r", Limit: 1}}}, penstockotel.Options{}, core.Config{})
	guard, err := s.Entry(t.Context(), "r")
	require.NoError(t, err)
	defer guard.Exit()
	assert.Empty(t, named(s.collect(t), "penstock.load"))
	guard.Load()
	s.clock.Advance(10 * time.Second)
	assert.Contains(t, s.collect(t), "penstock.load.level 2")
	assert.NotEmpty(t, named(s.collect(t), "penstock.load"))
}

// lostSource is a source that is never reached.
type lostSource struct{}

func (lostSource) Name() string { return "lost" }

func (lostSource) Run(ctx context.Context, _ core.Sink) error {
	<-ctx.Done()
	return ctx.Err()
}
