package simulate_test

import (
	"cmp"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/penstock-go/penstock/breaker"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/isolation"
	"github.com/penstock-go/penstock/rule"
	"github.com/penstock-go/penstock/rules"
	"github.com/penstock-go/penstock/simulate"
)

// tracedCallsOf returns the calls of a load in the order of their arrival.
func tracedCallsOf(load simulate.Load, end time.Duration) (calls []*tracedCall) {
	byResource := map[string]*oracleServer{}
	for _, s := range load.Servers {
		server := &oracleServer{of: s}
		for _, name := range s.Resources {
			byResource[name] = server
		}
	}
	for _, s := range load.Streams {
		for k := 0; ; k++ {
			at := int64(s.From) + int64(math.Round(float64(k)*1e9/s.Rate))
			if len(s.Times) > 0 {
				if k == len(s.Times) {
					break
				}
				at = int64(s.Times[k])
			}
			if at >= int64(end) {
				break
			}
			calls = append(calls, newTracedCall(s, k, at, byResource[s.Resource]))
		}
	}
	slices.SortStableFunc(calls, func(a, b *tracedCall) int { return cmp.Compare(a.at, b.at) })
	return calls
}

func newTracedCall(s simulate.Stream, k int, at int64, server *oracleServer) *tracedCall {
	c := &tracedCall{
		at: at, resource: s.Resource, origin: s.Origin, timeout: int64(s.Timeout), server: server,
		service: int64(s.ServiceTime), fails: failsAt(k, s.Fails), priority: s.Priority.String(),
	}
	for _, p := range s.Phases {
		if p.Until == 0 || at < int64(p.Until) {
			if p.ServiceTime != nil {
				c.service = int64(*p.ServiceTime)
			}
			if p.Fails != nil {
				c.fails = failsAt(k, *p.Fails)
			}
			break
		}
	}
	return c
}

// requireLikeCallOracle compares what becomes of each call, and each change of state,
// to what the oracle says. Everything is exact.
func requireLikeCallOracle(t T, set rules.Set, load simulate.Load, duration time.Duration) {
	t.Helper()
	got := run(t, set, load, duration)
	calls, o := tracedCallsOf(load, duration), &callOracle{}
	for _, r := range set.Isolation {
		o.isolation = append(o.isolation, isolation.Kind().WithDefaults(r))
	}
	for _, r := range set.Breaker {
		o.breakers = append(o.breakers, breaker.Kind().WithDefaults(r))
	}
	for _, r := range set.Flow {
		o.flow = append(o.flow, flow.Kind().WithDefaults(r))
	}
	states := o.follow(calls)
	require.Len(t, got.Events, len(calls))
	for i, e := range got.Events {
		c := calls[i]
		want := simulate.Event{
			T: float64(c.at) / 1e9, Resource: c.resource, Outcome: simulate.Block, Wait: float64(c.wait) / 1e9,
			Rule: c.rule, Kind: c.kind, Failed: c.failed, Priority: c.priority,
		}
		if c.pass {
			want.Outcome, want.End = simulate.Pass, number(float64(c.end)/1e9)
		}
		require.Equal(t, want, e, "call %d", i)
	}
	// At one instant, breakers of different rules and resources may change in any order.
	for _, list := range [][]simulate.StateChange{states, got.States} {
		slices.SortStableFunc(list, func(a, b simulate.StateChange) int {
			return cmp.Or(cmp.Compare(a.T, b.T), cmp.Compare(a.Rule, b.Rule), cmp.Compare(a.Resource, b.Resource))
		})
	}
	require.ElementsMatch(t, states, got.States)
	require.True(t, slices.Equal(states, got.States), "the order differs")
}

// milliseconds draws a time of whole milliseconds: on so coarse a grid, many events
// fall on one instant.
func milliseconds(t *rapid.T, label string, choices ...int) time.Duration {
	return time.Duration(rapid.SampledFrom(choices).Draw(t, label)) * time.Millisecond
}

// drawCalls draws streams of calls that last for a time, fail or time out.
func drawCalls(t *rapid.T, duration time.Duration) simulate.Load {
	var load simulate.Load
	resources := []string{"r", "r", "s"}
	if rapid.Bool().Draw(t, "served") {
		server := simulate.Server{
			Resources: rapid.SampledFrom([][]string{{"r"}, {"r", "s"}}).Draw(t, "served resources"),
			Workers:   rapid.IntRange(1, 5).Draw(t, "workers"),
			Service:   simulate.Service{Mean: milliseconds(t, "service", 1, 10, 30, 100)},
			Slowdown:  rapid.SampledFrom([]float64{0, 0, 0.1, 0.5}).Draw(t, "slowdown"),
		}
		for i := range rapid.IntRange(0, 2).Draw(t, "changes") {
			server.Changes = append(server.Changes, simulate.ServiceChange{
				At:      duration * time.Duration(i+1) / 3,
				Service: simulate.Service{Mean: milliseconds(t, "changed service", 5, 20, 200)},
			})
		}
		load.Servers = append(load.Servers, server)
		resources = []string{"r", server.Resources[len(server.Resources)-1]}
	}
	for i := range rapid.IntRange(1, 4).Draw(t, "streams") {
		s := simulate.Stream{
			Resource: rapid.SampledFrom(resources).Draw(t, "resource"),
			Origin:   rapid.SampledFrom([]string{"", "a"}).Draw(t, "origin"),
			Fails:    drawShare(t),
			Timeout:  milliseconds(t, "timeout", 0, 0, 10, 50, 100, 300),
		}
		if i == 0 {
			s.Resource = "r" // the one that a server serves
		}
		if rapid.IntRange(0, 3).Draw(t, "burst") == 0 {
			for range rapid.IntRange(1, 4).Draw(t, "bursts") {
				at := time.Duration(rapid.IntRange(0, int(duration/time.Millisecond)/10).Draw(t, "at")) * 10 * time.Millisecond
				s.Times = append(s.Times, slices.Repeat([]time.Duration{at}, rapid.IntRange(1, 20).Draw(t, "size"))...)
			}
			slices.Sort(s.Times)
		} else {
			s.Rate = rapid.SampledFrom([]float64{1, 5, 10, 20, 50, 100, 7, 33}).Draw(t, "rate")
			s.From = milliseconds(t, "from", 0, 0, 5, 10, 500)
		}
		served := len(load.Servers) > 0 && slices.Contains(load.Servers[0].Resources, s.Resource)
		if !served {
			s.ServiceTime = milliseconds(t, "serviceTime", 0, 1, 10, 50, 100, 400)
		}
		s.Phases = drawPhases(t, duration, served)
		load.Streams = append(load.Streams, s)
	}
	return load
}

// drawPriorities gives each stream one of up to three priorities.
func drawPriorities(t *rapid.T, load simulate.Load) {
	all := rule.Priorities()
	some := rapid.Permutation(all[:]).Draw(t, "priorities")[:rapid.IntRange(1, 3).Draw(t, "how many priorities")]
	for i := range load.Streams {
		load.Streams[i].Priority = rapid.SampledFrom(some).Draw(t, "priority")
	}
}

func drawShare(t *rapid.T) float64 {
	return rapid.SampledFrom([]float64{0, 0, 0.1, 0.3, 0.5, 0.7, 1}).Draw(t, "fails")
}

func drawPhases(t *rapid.T, duration time.Duration, served bool) (phases []simulate.Phase) {
	for i := range rapid.IntRange(0, 3).Draw(t, "phases") {
		p := simulate.Phase{Until: duration * time.Duration(i+1) / 4}
		if !served && rapid.Bool().Draw(t, "other serviceTime") {
			length := milliseconds(t, "serviceTime of phase", 0, 5, 20, 100, 700)
			p.ServiceTime = &length
		}
		if rapid.Bool().Draw(t, "other fails") {
			p.Fails = number(drawShare(t))
		}
		phases = append(phases, p)
	}
	return phases
}

// drawTarget draws which calls a rule is for.
func drawTarget(t *rapid.T) (resource, match string, shared bool, origin string) {
	resource = rapid.SampledFrom([]string{"r", "r", ""}).Draw(t, "rule's resource")
	if resource == "" {
		match, shared = "*", rapid.Bool().Draw(t, "shared")
	}
	return resource, match, shared, rapid.SampledFrom([]string{"", "", "a"}).Draw(t, "rule's origin")
}

func drawIsolation(t *rapid.T, name string) isolation.Rule {
	r := isolation.Rule{
		Name:    name,
		Limit:   rapid.SampledFrom([]int{0, 1, 1, 2, 3, 5, 10}).Draw(t, "limit"),
		MaxWait: milliseconds(t, "maxWait", 0, 5, 10, 50, 100, 500, 2000),
		Shadow:  rapid.IntRange(0, 5).Draw(t, "shadow") == 0,
	}
	if r.MaxWait > 0 {
		r.MaxQueue = rapid.SampledFrom([]int{0, 1, 2, 5, 20}).Draw(t, "maxQueue")
		r.Order = rapid.SampledFrom([]isolation.Order{"", isolation.FIFO, isolation.LIFO}).Draw(t, "order")
	}
	r.Resource, r.Match, r.Shared, r.Origin = drawTarget(t)
	return r
}

func drawBreaker(t *rapid.T, name string) breaker.Rule {
	r := breaker.Rule{
		Name: name,
		Strategy: rapid.SampledFrom([]breaker.Strategy{
			"", breaker.SlowRatio, breaker.ErrorRatio, breaker.ErrorCount, breaker.Consecutive,
		}).Draw(t, "strategy"),
		Window:       milliseconds(t, "window", 10, 100, 300, 1000, 5000),
		MinCalls:     rapid.SampledFrom([]int{0, 1, 2, 3, 5, 10}).Draw(t, "minCalls"),
		OpenFor:      milliseconds(t, "openFor", 10, 50, 100, 500, 1000),
		Probes:       rapid.SampledFrom([]int{0, 1, 1, 2, 3, 10}).Draw(t, "probes"),
		ProbeTimeout: milliseconds(t, "probeTimeout", 0, 1, 10, 50, 100, 400),
		Shadow:       rapid.IntRange(0, 5).Draw(t, "shadow") == 0,
	}
	if rapid.Bool().Draw(t, "doubles") {
		r.MaxOpenFor = r.OpenFor * time.Duration(rapid.SampledFrom([]int{1, 2, 3, 8}).Draw(t, "times"))
	}
	switch r.Strategy {
	case breaker.ErrorCount, breaker.Consecutive:
		r.Threshold = float64(rapid.IntRange(1, 6).Draw(t, "count"))
	case breaker.SlowRatio:
		r.SlowAfter = milliseconds(t, "slowAfter", 1, 9, 10, 50, 99, 100)
		fallthrough
	default:
		r.Threshold = rapid.SampledFrom([]float64{0.1, 0.3, 0.5, 0.7, 0.9, 1}).Draw(t, "threshold")
	}
	r.ProbeThreshold = rapid.SampledFrom([]float64{0, 0, 0.1, 0.5, 0.7, 1}).Draw(t, "probeThreshold")
	switch {
	case r.Strategy == breaker.Consecutive:
		r.Window, r.MinCalls = 0, 0
	case rapid.IntRange(0, 2).Draw(t, "of the last calls") == 0:
		r.Window, r.WindowCalls = 0, rapid.SampledFrom([]int{10, 11, 50}).Draw(t, "calls")
	}
	r.Resource, r.Match, r.Shared, r.Origin = drawTarget(t)
	return r
}

// drawFlow draws a window, or a throttle whose calls are a whole number of nanoseconds
// apart, but not of milliseconds: so no slot comes at the instant at which another
// call's longest wait for a place is over, for which no order is promised.
func drawFlow(t *rapid.T) flow.Rule {
	r := flow.Rule{Name: "rate", Resource: "r", Limit: rapid.SampledFrom([]float64{1, 5, 10, 20, 50}).Draw(t, "flow limit")}
	r.Algorithm = rapid.SampledFrom([]flow.Algorithm{flow.SlidingWindow, flow.FixedWindow, flow.Throttle}).Draw(t, "algorithm")
	if r.Algorithm == flow.Throttle {
		r.Window = 1_000_003_900 * time.Nanosecond
		r.MaxWait = milliseconds(t, "flow maxWait", 0, 10, 100, 250, 1000)
	}
	return r
}

// compareCalls compares with the rules that it is to draw.
func compareCalls(t *testing.T, draw func(t *rapid.T, set *rules.Set)) {
	t.Helper()
	rapid.Check(t, func(t *rapid.T) {
		duration := milliseconds(t, "duration", 500, 1000, 3000)
		load := drawCalls(t, duration)
		var set rules.Set
		draw(t, &set)
		if !slices.ContainsFunc(set.Flow, isQueued) { // the oracle's throttle knows no priorities
			drawPriorities(t, load)
		}
		requireLikeCallOracle(t, set, load, duration)
	})
}

// Two calls end at once. The first hands its place to one that waits; the second opens
// the breaker, which that one then finds open.
func TestCallThatGetsAPlaceIsRefusedByABreakerThatOpensAtTheSameInstant(t *testing.T) {
	t.Parallel()
	set := rules.Set{
		Isolation: []isolation.Rule{{Name: "pool", Resource: "r", Limit: 2, MaxWait: time.Second}},
		Breaker:   []breaker.Rule{{Name: "circuit", Resource: "r", Threshold: 0.5, MinCalls: 2}},
	}
	load := streams(
		simulate.Stream{Times: at(0), ServiceTime: 100 * time.Millisecond},
		simulate.Stream{Times: at(0), ServiceTime: 100 * time.Millisecond, Fails: 1},
		simulate.Stream{Times: at(50)},
	)
	result := run(t, set, load, time.Second)
	last := result.Events[2]
	require.Equal(t, simulate.Block, last.Outcome)
	require.Equal(t, "circuit", last.Rule)
	require.InDelta(t, 0.05, last.Wait, 1e-9)
	require.Equal(t, []simulate.StateChange{
		{T: 0.1, Resource: "r", Rule: "circuit", Kind: "breaker", From: "closed", To: "open"},
	}, result.States)
	requireLikeCallOracle(t, set, load, time.Second)
}

func TestIsolationMatchesTheOracle(t *testing.T) {
	t.Parallel()
	compareCalls(t, func(t *rapid.T, set *rules.Set) { set.Isolation = append(set.Isolation, drawIsolation(t, "pool")) })
}

func TestBreakersMatchTheOracle(t *testing.T) {
	t.Parallel()
	compareCalls(t, func(t *rapid.T, set *rules.Set) { set.Breaker = append(set.Breaker, drawBreaker(t, "circuit")) })
}

func TestBreakerIsolationAndFlowMatchTheOracle(t *testing.T) {
	t.Parallel()
	compareCalls(t, func(t *rapid.T, set *rules.Set) {
		set.Isolation = append(set.Isolation, drawIsolation(t, "pool"))
		set.Breaker = append(set.Breaker, drawBreaker(t, "circuit"))
		if rapid.Bool().Draw(t, "with flow") {
			set.Flow = append(set.Flow, drawFlow(t))
		}
	})
}

func TestSeveralBreakersAndIsolationRulesMatchTheOracle(t *testing.T) {
	t.Parallel()
	compareCalls(t, func(t *rapid.T, set *rules.Set) {
		for _, name := range []string{"a", "b", "c"}[:rapid.IntRange(1, 3).Draw(t, "isolation rules")] {
			set.Isolation = append(set.Isolation, drawIsolation(t, name))
		}
		for _, name := range []string{"a", "b", "c"}[:rapid.IntRange(0, 3).Draw(t, "breakers")] {
			set.Breaker = append(set.Breaker, drawBreaker(t, name))
		}
	})
}
