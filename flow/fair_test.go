package flow_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/rule"
)

// sharedQueue is a limiter whose queue tenants share, and the calls that wait. Time stands still unless a
// test moves it.
type sharedQueue struct {
	t       require.TestingT
	l       rule.Queue
	rule    flow.Rule
	version uint64
	now     clock.Instant
	waiting []waitingTenant
	trusts  bool // that a call passes when was said, unless another one comes after it
}

type waitingTenant struct {
	tenant string
	waiter rule.Waiter
	said   clock.Instant // when it would pass at the latest
}

func fairThrottle() flow.Rule {
	return flow.Rule{
		Resource: "r", Limit: 10, Algorithm: flow.Throttle, MaxWait: time.Hour, FairBy: rule.StringsOf("tenant"),
		Newcomers: rule.NewcomersEqual,
	}
}

func fairBucket() flow.Rule {
	r := fairThrottle()
	r.Algorithm, r.Burst = flow.TokenBucket, 1
	return r
}

func newSharedQueue(t require.TestingT, r flow.Rule) *sharedQueue {
	q, ok := flow.Kind().Of(r).WithDefaults().NewLimiter(rule.Env{Version: 1, Now: epoch, Seed: 7}).(rule.Queue)
	require.True(t, ok)
	return &sharedQueue{t: t, l: q, rule: r, version: 1, now: epoch}
}

// call has a tenant call, "" for a call without the attribute, as the engine does.
func (s *sharedQueue) call(tenant string, tokens int32) rule.Decision {
	call := rule.Call{Now: s.now, Tokens: tokens}
	if tenant != "" {
		call.Attribute = rule.String(tenant)
	}
	ticket, decision := s.l.Acquire(call)
	if decision == rule.Wait {
		said := clock.Instant(ticket)
		var w rule.Waiter
		w, _, decision = s.l.Join(call, rule.Patience{Since: s.now, Until: clock.Instant(1 << 62), Wake: func() {}})
		require.Equal(s.t, rule.Wait, decision)
		for i := range s.waiting {
			s.waiting[i].said = 1 << 62 // it may be overtaken
		}
		s.waiting = append(s.waiting, waitingTenant{tenant, w, said})
	}
	return decision
}

// calls has one tenant call after the other, whose names are letters.
func (s *sharedQueue) calls(tenants string) {
	for _, tenant := range tenants {
		s.call(string(tenant), 1)
	}
}

// after moves the time, and returns whose calls have passed meanwhile.
func (s *sharedQueue) after(d time.Duration) string {
	var passed strings.Builder
	end := s.now.Add(d)
	for {
		next, at := end, s.now
		still := s.waiting[:0:0]
		for _, c := range s.waiting {
			_, left, decision := c.waiter.Poll(at)
			switch decision {
			case rule.Pass:
				passed.WriteString(c.tenant)
				if s.trusts {
					require.LessOrEqual(s.t, at, c.said, "a call of %s is told too short a wait", c.tenant)
				}
			case rule.Wait:
				still = append(still, c)
				next = min(next, at.Add(max(left, 1)))
			default:
				passed.WriteString(strings.ToUpper(c.tenant))
			}
		}
		s.waiting = still
		if at == end {
			return passed.String()
		}
		s.now = next
	}
}

func (s *sharedQueue) change(change func(*flow.Rule)) {
	change(&s.rule)
	s.version++
	next := flow.Kind().Of(s.rule).WithDefaults().Adopt(s.l, rule.Env{Version: s.version, Now: s.now, Seed: 7})
	s.l = next.(rule.Queue)
	s.l.(rule.Activator).Activate(s.now)
}

func TestTenantThatFloodsAQueueWaitsBehindItself(t *testing.T) {
	t.Parallel()
	for name, r := range map[string]flow.Rule{"throttle": fairThrottle(), "bucket": fairBucket()} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSharedQueue(t, r)
			assert.Equal(t, rule.Pass, s.call("f", 1))
			s.calls(strings.Repeat("f", 50))
			s.calls("ab")
			assert.Equal(t, "fabff", s.after(500*time.Millisecond), "an instant is planned for the first one already")
			s.calls("a")
			assert.Equal(t, "fa", s.after(200*time.Millisecond))
		})
	}
}

func TestTenantsOfAQueueGetSharesOfWhatTheRuleSays(t *testing.T) {
	t.Parallel()
	for by, want := range map[flow.WeightBy]float64{flow.ByTokens: 10, flow.ByCalls: 1} {
		t.Run(string(by), func(t *testing.T) {
			t.Parallel()
			r := fairThrottle()
			r.WeightBy = by
			s := newSharedQueue(t, r)
			for range 100 {
				s.call("l", 10)
				s.call("s", 1)
			}
			passed := ""
			for range 300 {
				more := s.after(time.Second)
				passed += more
				for _, tenant := range more {
					s.call(string(tenant), map[rune]int32{'l': 10, 's': 1}[tenant])
				}
			}
			assert.InEpsilon(t, want, float64(strings.Count(passed, "s"))/float64(strings.Count(passed, "l")), .1)
		})
	}
}

func TestWeightsOfTenantsInAQueue(t *testing.T) {
	t.Parallel()
	r := fairBucket()
	r.Weights = rule.NumberMapOf(rule.NumberEntry{Key: rule.String("g"), Value: 3})
	s := newSharedQueue(t, r)
	s.calls("x" + strings.Repeat("gs", 40))
	passed := s.after(4 * time.Second)
	assert.InDelta(t, 30, strings.Count(passed, "g"), 1)
	assert.InDelta(t, 10, strings.Count(passed, "s"), 1)
}

// A sparse tenant is let in though the others would make it wait for too long in the order in which calls
// came.
func TestTenantIsToldTheWaitOfItsShare(t *testing.T) {
	t.Parallel()
	r := fairThrottle()
	r.MaxWait = 2 * time.Second
	s := newSharedQueue(t, r)
	s.calls(strings.Repeat("f", 21))
	assert.Equal(t, rule.Block, s.call("f", 1))
	assert.Equal(t, rule.Wait, s.call("a", 1))
	assert.Equal(t, rule.Block, s.call("f", 1))
	passed := s.after(2 * time.Second)
	assert.Equal(t, 19, strings.Count(passed, "f"), "the last one has been overtaken, and has waited for as long as it may")
	assert.Equal(t, 1, strings.Count(passed, "a"))
	assert.Equal(t, 1, strings.Count(passed, "F"))
	assert.Empty(t, s.waiting)
}

// Nobody is told too short a wait, if no other call comes after it.
func TestNobodyIsToldTooShortAWait(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		r := rapid.SampledFrom([]flow.Rule{fairThrottle(), fairBucket()}).Draw(t, "rule")
		r.WeightBy = rapid.SampledFrom([]flow.WeightBy{flow.ByTokens, flow.ByCalls}).Draw(t, "by")
		r.Newcomers = rapid.SampledFrom([]rule.Newcomers{rule.NewcomersEqual, rule.NewcomersHalf}).Draw(t, "newcomers")
		most := rapid.SampledFrom([]int32{1, 3, 100}).Draw(t, "most")
		r.Burst *= float64(most)
		if rapid.Bool().Draw(t, "weights") {
			r.Weights = rule.NumberMapOf(rule.NumberEntry{Key: rule.String("a"), Value: 5})
		}
		tenants := rapid.SampledFrom([]int{2, 10, 80}).Draw(t, "tenants")
		s := newSharedQueue(t, r)
		s.trusts = true
		for range rapid.IntRange(1, 120).Draw(t, "calls") {
			s.call(string(rune('a'+rapid.IntRange(0, tenants-1).Draw(t, "tenant"))), rapid.Int32Range(1, most).Draw(t, "tokens"))
			if rapid.IntRange(0, 3).Draw(t, "pause") == 0 {
				s.after(time.Duration(rapid.IntRange(0, 3000).Draw(t, "ms")) * time.Millisecond)
			}
		}
		s.after(10 * time.Hour)
		require.Empty(t, s.waiting)
	})
}

func TestSharesOfAQueueComeAndGoWhileCallsWait(t *testing.T) {
	t.Parallel()
	s := newSharedQueue(t, fairThrottle())
	s.change(func(r *flow.Rule) { r.FairBy, r.Newcomers = rule.Strings{}, "" })
	s.calls("x" + "ffff")
	s.change(func(r *flow.Rule) { r.FairBy = rule.StringsOf("tenant") })
	s.calls("ffa")
	assert.Equal(t, "fffffa", s.after(600*time.Millisecond), "those that waited before keep their places")
	s.calls("ggggb")
	s.change(func(r *flow.Rule) { r.FairBy, r.Newcomers = rule.Strings{}, "" })
	s.calls("hc")
	passed := s.after(time.Second)
	assert.Equal(t, strings.Index(passed, "h"), strings.Index(passed, "c")-1, "in the order in which they came: %s", passed)
	assert.Len(t, passed, 8)
}

func TestKnownTenantsPassBesideInventedOnes(t *testing.T) {
	t.Parallel()
	for newcomers, want := range map[rule.Newcomers]int{rule.NewcomersHalf: 10, rule.NewcomersEqual: 1} {
		r := fairThrottle()
		r.Newcomers = newcomers
		s := newSharedQueue(t, r)
		for range 100 { // one in eight is looked at
			s.call("k", 1)
			s.after(time.Second + 7*time.Nanosecond)
		}
		for i := range 100 {
			s.call(fmt.Sprint(i), 1)
		}
		for range 20 {
			s.call("k", 1)
		}
		passed := s.after(2 * time.Second)
		assert.InDelta(t, want, strings.Count(passed, "k"), 2, newcomers)
	}
}

func TestStatusSaysWhoWaitsInAQueue(t *testing.T) {
	t.Parallel()
	s := newSharedQueue(t, fairThrottle())
	s.calls("x" + "fffab")
	status := s.l.Status(s.now)
	assert.Equal(t, []float64{3, 3, 0}, status.Gauges)
	require.Len(t, status.Notes, 1)
	assert.Regexp(t, `^calls of 3 tenants wait, most of them of f \(3\), . \(1\), . \(1\); the next pass goes to f$`, status.Notes[0].Text)
	s.change(func(r *flow.Rule) { r.Mask = rule.MaskHash })
	assert.Regexp(t, `of #[0-9a-f]{16} \(3\), .*; the next pass goes to #[0-9a-f]{16}$`, s.l.Status(s.now).Notes[0].Text)
	s.change(func(r *flow.Rule) { r.FairBy, r.Mask, r.Newcomers = rule.Strings{}, "", "" })
	assert.Empty(t, s.l.Status(s.now).Gauges)
}

func TestFairnessOfAQueueIsValidated(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change func(*flow.Rule)
		want   string
	}{
		"nothing wrong": {func(*flow.Rule) {}, ""},
		"a window":      {func(r *flow.Rule) { r.Algorithm, r.MaxWait = flow.SlidingWindow, 0 }, `fairBy has no effect on a window, for which no call waits: remove it, or set algorithm to "throttle" or "tokenBucket"`},
		"no waiting":    {func(r *flow.Rule) { r.MaxWait = 0 }, "fairBy has no effect without maxWait: remove it or set maxWait"},
		"of the fleet":  {func(r *flow.Rule) { r.Scope = rule.ScopeFleet }, `fairBy has no effect with scope "fleet", whose calls wait in the order of their priority: remove it or scope`},
		"by time":       {func(r *flow.Rule) { r.WeightBy = "time" }, `weightBy is "time": must be "tokens" or "calls"`},
		"no newcomers":  {func(r *flow.Rule) { r.Newcomers = "none" }, `newcomers is "none": must be "half" or "equal"`},
		"alone":         {func(r *flow.Rule) { r.FairBy = rule.Strings{} }, "newcomers has no effect without fairBy: remove it or set fairBy"},
		"twice":         {func(r *flow.Rule) { r.FairBy = rule.StringsOf("a", "a") }, "fairBy has an attribute twice: remove one"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := fairThrottle()
			c.change(&r)
			var faults []string
			for _, f := range flow.Kind().Faults(r) {
				faults = append(faults, f.Field+" "+f.Message)
			}
			assert.Equal(t, c.want, strings.Join(faults, "; "))
		})
	}
}

func TestCallOfATenantThatPassesAllocatesNothing(t *testing.T) {
	r := fairThrottle()
	r.Limit = 1e9
	s := newSharedQueue(t, r)
	call := rule.Call{Now: s.now, Tokens: 1, Attribute: rule.String("tenant")}
	assert.Zero(t, testing.AllocsPerRun(1000, func() {
		call.Now += 1000
		s.l.Acquire(call)
	}))
}
