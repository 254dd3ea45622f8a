package isolation_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/internal/optional"
	"github.com/penstock-go/penstock/isolation"
	"github.com/penstock-go/penstock/rule"
)

// shared is a limiter with shares, and calls of tenants that are under way or wait. Time stands still
// unless a test moves it.
type shared struct {
	t        *testing.T
	l        limiter
	now      clock.Instant
	rule     isolation.Rule
	version  uint64
	underWay []place
	waiting  []waitingCall
}

type place struct {
	tenant string
	ticket rule.Ticket
	start  clock.Instant
}

type waitingCall struct {
	tenant string
	waiter rule.Waiter
}

func fairRule(limit, maxQueue int) isolation.Rule {
	return isolation.Rule{
		Resource: "r", Limit: limit, MaxWait: time.Hour, MaxQueue: maxQueue, FairBy: rule.StringsOf("tenant"),
	}
}

func newShared(t *testing.T, r isolation.Rule) *shared {
	return &shared{t: t, l: newLimiter(t, r), now: epoch, rule: r, version: 1}
}

// call has a tenant call, "" for a call without the attribute, as the engine does.
func (s *shared) call(tenant string, p rule.Priority) rule.Decision {
	call := rule.Call{Now: s.now, Tokens: 1}
	call.SetCaller(p, false)
	ticket, decision := s.l.(optional.LateReader).AcquireUnread(call)
	if tenant != "" {
		call.Attribute = rule.String(tenant)
	}
	if decision == optional.NeedsAttribute {
		ticket, decision = s.l.Acquire(call)
	}
	if decision == rule.Wait {
		var w rule.Waiter
		if w, ticket, decision = s.l.Join(call, rule.Patience{Since: s.now, Until: endless, Wake: func() {}}); decision == rule.Wait {
			s.waiting = append(s.waiting, waitingCall{tenant, w})
		}
	}
	if decision == rule.Pass {
		s.underWay = append(s.underWay, place{tenant, ticket, s.now})
	}
	return decision
}

// calls has one tenant call after the other, whose names are letters.
func (s *shared) calls(tenants string) string {
	var b strings.Builder
	for _, tenant := range tenants {
		b.WriteByte("pbws"[s.call(string(tenant), rule.PriorityNormal)])
	}
	return b.String()
}

// end ends the oldest calls under way, and returns whose calls got their places.
func (s *shared) end(count int) string {
	var served strings.Builder
	for range count {
		first := s.underWay[0]
		s.underWay = s.underWay[1:]
		s.l.Done(first.ticket, rule.Exit{Now: s.now, Start: first.start})
		served.WriteString(s.poll())
	}
	return served.String()
}

// poll returns whose calls got places, or were refused (in capitals).
func (s *shared) poll() string {
	var served strings.Builder
	still := s.waiting[:0:0]
	for _, c := range s.waiting {
		switch ticket, _, decision := c.waiter.Poll(s.now); decision {
		case rule.Wait:
			still = append(still, c)
		case rule.Pass:
			s.underWay = append(s.underWay, place{c.tenant, ticket, s.now})
			served.WriteString(c.tenant)
		default:
			served.WriteString(strings.ToUpper(c.tenant))
		}
	}
	s.waiting = still
	return served.String()
}

func (s *shared) change(change func(*isolation.Rule)) {
	change(&s.rule)
	s.version++
	s.l = adopt(s.t, s.l, s.rule, s.version)
	s.l.Activate(s.now)
}

func TestTenantThatFloodsWaitsBehindItself(t *testing.T) {
	t.Parallel()
	for name, by := range map[string]isolation.WeightBy{"time": isolation.ByTime, "calls": isolation.ByCalls} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := fairRule(1, 100)
			r.WeightBy = by
			s := newShared(t, r)
			s.calls("f" + strings.Repeat("f", 20) + "ab")
			var served strings.Builder
			for range 6 {
				s.now = s.now.Add(100 * time.Millisecond)
				served.WriteString(s.end(1))
			}
			assert.Equal(t, "fabfff", served.String())
		})
	}
}

// Who has calls that take ten times as long gets a tenth of the calls through, but by number as many.
func TestSharesAreOfTimeOrOfCalls(t *testing.T) {
	t.Parallel()
	for by, want := range map[isolation.WeightBy]float64{isolation.ByTime: 10, isolation.ByCalls: 1} {
		t.Run(string(by), func(t *testing.T) {
			t.Parallel()
			r := fairRule(1, 100)
			r.WeightBy = by
			s := newShared(t, r)
			s.calls("x" + strings.Repeat("ls", 40))
			served := map[string]float64{}
			for range 600 {
				took := 10 * time.Millisecond
				if s.underWay[0].tenant == "l" {
					took *= 10
				}
				s.now = s.now.Add(took)
				tenant := s.end(1)
				served[tenant]++
				s.calls(tenant)
			}
			assert.InEpsilon(t, want, served["s"]/served["l"], .1)
		})
	}
}

func TestWeightsAreOfValues(t *testing.T) {
	t.Parallel()
	r := fairRule(1, 100)
	r.Weights = rule.NumberMapOf(rule.NumberEntry{Key: rule.String("g"), Value: 3})
	s := newShared(t, r)
	s.calls("x" + strings.Repeat("gs", 40))
	served := map[string]int{}
	for range 40 {
		s.now = s.now.Add(10 * time.Millisecond)
		served[s.end(1)]++
	}
	assert.InDelta(t, 30, served["g"], 1)
	assert.InDelta(t, 10, served["s"], 1)
}

func TestFullQueueTakesTheNewestCallOfWhoHasMost(t *testing.T) {
	t.Parallel()
	s := newShared(t, fairRule(1, 4))
	assert.Equal(t, "pwwww", s.calls("fffff"))
	assert.Equal(t, "b", s.calls("f"))
	assert.Equal(t, "w", s.calls("a"))
	assert.Equal(t, "F", s.poll())
	assert.Equal(t, "bw", s.calls("fa"), "a would have two of four then")
	assert.Equal(t, "F", s.poll())
	assert.Equal(t, "bb", s.calls("fa"))
	assert.Equal(t, "wwb", s.calls("bcd"), "now nobody has more than d would have")
}

func TestNobodyLosesTheOnlyCallThatWaits(t *testing.T) {
	t.Parallel()
	s := newShared(t, fairRule(1, 3))
	assert.Equal(t, "pwwwb", s.calls("fabcd"))
	assert.Empty(t, s.poll())
}

// A tenant that is refused because it has most is let in again as soon as it has not.
func TestRefusalWithoutALockIsForgottenWhenACallLeaves(t *testing.T) {
	t.Parallel()
	s := newShared(t, fairRule(1, 2))
	assert.Equal(t, "pwwbbb", s.calls("ffffff"))
	s.end(1)
	assert.Equal(t, "wbb", s.calls("fff"))
	s.waiting[0].waiter.Leave(s.now)
	assert.Equal(t, "wbb", s.calls("fff"))
	s.change(func(r *isolation.Rule) { r.MaxQueue = 3 })
	assert.Equal(t, "wbb", s.calls("fff"))
}

func TestCallsWithoutTheAttributeAreOneTenant(t *testing.T) {
	t.Parallel()
	s := newShared(t, fairRule(1, 4))
	s.calls("x")
	for range 4 {
		assert.Equal(t, rule.Wait, s.call("", rule.PriorityNormal))
	}
	assert.Equal(t, rule.Block, s.call("", rule.PriorityNormal))
	assert.Equal(t, rule.Block, s.call("", rule.PriorityNormal), "without a lock")
	assert.Equal(t, "w", s.calls("a"), "it has none yet")
}

func TestMoreImportantCallStillTakesASpace(t *testing.T) {
	t.Parallel()
	s := newShared(t, fairRule(1, 3))
	s.calls("x" + "aab")
	assert.Equal(t, rule.Wait, s.call("a", rule.PriorityHigh))
	assert.Equal(t, "A", s.poll())
	assert.Equal(t, rule.Block, s.call("c", rule.PriorityLow))
	assert.Equal(t, "aab", s.end(3), "the important one first, then in turn")
}

func TestSharesComeAndGoWhileCallsWait(t *testing.T) {
	t.Parallel()
	none := func(r *isolation.Rule) { r.FairBy = rule.Strings{} }
	fair := func(r *isolation.Rule) { r.FairBy = rule.StringsOf("tenant") }
	s := newShared(t, fairRule(1, 100))
	s.change(none)
	s.calls("x" + "ffff")
	s.change(fair)
	s.calls("ffa")
	s.now = s.now.Add(time.Second)
	assert.Equal(t, "fffffa", s.end(6), "those that waited before keep their places; then the oldest")
	s.calls("ggggb")
	s.change(none)
	s.calls("hc")
	s.now = s.now.Add(time.Second)
	assert.Equal(t, "fgbggghc", s.end(8))
}

func TestWeightsChangeWhileCallsWait(t *testing.T) {
	t.Parallel()
	s := newShared(t, fairRule(1, 100))
	s.calls("x" + strings.Repeat("ab", 20))
	s.change(func(r *isolation.Rule) {
		r.Weights = rule.NumberMapOf(rule.NumberEntry{Key: rule.String("a"), Value: 3})
	})
	s.calls("ab")
	served := ""
	for range 16 {
		s.now = s.now.Add(10 * time.Millisecond)
		served += s.end(1)
	}
	assert.InDelta(t, 12, strings.Count(served, "a"), 1)
}

func TestPlacesThatAreHeldForTooLongLeaveNoRecords(t *testing.T) {
	t.Parallel()
	r := fairRule(2, 100)
	r.MaxAge = time.Second
	s := newShared(t, r)
	s.calls("xx")
	for i := range 300 { // no call ever ends
		s.calls("ab")
		s.now = s.now.Add(1100 * time.Millisecond)
		require.Len(t, gaugesText(s.l, s.now), 2)
		require.NotEmpty(t, s.poll(), "%d", i)
		for _, p := range s.underWay[:len(s.underWay)-2] { // those that are late
			s.l.Done(p.ticket, rule.Exit{Now: s.now, Start: p.start})
		}
		s.underWay = s.underWay[len(s.underWay)-2:]
		require.LessOrEqual(t, gaugesOf(s.l, s.now).inFlight, 2)
	}
}

func gaugesText(l rule.Limiter, now clock.Instant) []string {
	g := gaugesOf(l, now)
	return []string{fmt.Sprint(g.inFlight), fmt.Sprint(g.waiting)}
}

func TestStatusSaysWhoWaits(t *testing.T) {
	t.Parallel()
	s := newShared(t, fairRule(1, 100))
	status := s.l.Status(s.now)
	assert.Equal(t, []float64{0, 0, 0}, status.Gauges[6:])
	assert.Empty(t, status.Notes)
	s.calls("x" + "fffffaabc")
	s.now = s.now.Add(time.Second)
	s.end(1)
	status = s.l.Status(s.now)
	assert.Equal(t, []float64{4, 4, 0}, status.Gauges[6:])
	require.Len(t, status.Notes, 1)
	assert.Equal(t, "calls of 4 tenants wait, most of them of f (4), a (2), b (1); the next place goes to a", status.Notes[0].Text)
	assert.Equal(t, epoch, status.Notes[0].Since)

	s.change(func(r *isolation.Rule) { r.Mask = rule.MaskHash })
	assert.Regexp(t, `^calls of 4 tenants wait, most of them of #[0-9a-f]{16} \(4\), #.*; the next place goes to #[0-9a-f]{16}$`,
		s.l.Status(s.now).Notes[0].Text)

	s.change(func(r *isolation.Rule) { r.FairBy, r.Mask = rule.Strings{}, "" })
	s.end(8)
	assert.Len(t, s.l.Status(s.now).Gauges, 6, "the rule has no shares")
}

func TestFairnessIsValidated(t *testing.T) {
	t.Parallel()
	weights := func(text string, weight float64) rule.NumberMap {
		return rule.NumberMapOf(rule.NumberEntry{Key: rule.String(text), Value: weight})
	}
	for name, c := range map[string]struct {
		change func(*isolation.Rule)
		want   string
	}{
		"no waiting":    {func(r *isolation.Rule) { r.MaxWait, r.MaxQueue = 0, 0 }, "fairBy has no effect without maxWait: remove it or set maxWait"},
		"lifo":          {func(r *isolation.Rule) { r.Order = isolation.LIFO }, "fairBy has no effect with order: lifo: remove one of them"},
		"five":          {func(r *isolation.Rule) { r.FairBy = rule.StringsOf("a", "b", "c", "d", "e") }, "fairBy has 5 attributes: 4 is the most"},
		"twice":         {func(r *isolation.Rule) { r.FairBy = rule.StringsOf("a", "a") }, "fairBy has an attribute twice: remove one"},
		"no weights":    {func(r *isolation.Rule) { r.FairBy, r.Weights = rule.Strings{}, weights("a", 1) }, "weights has no effect without fairBy: remove it or set fairBy"},
		"no weightBy":   {func(r *isolation.Rule) { r.FairBy, r.WeightBy = rule.Strings{}, isolation.ByCalls }, "weightBy has no effect without fairBy: remove it or set fairBy"},
		"no mask":       {func(r *isolation.Rule) { r.FairBy, r.Mask = rule.Strings{}, rule.MaskHash }, "mask has no effect without fairBy: remove it or set fairBy"},
		"weight 0":      {func(r *isolation.Rule) { r.Weights = weights("a", 0) }, `weights has an entry "a" that is 0: must be from 0.01 to 1000`},
		"weight 1001":   {func(r *isolation.Rule) { r.Weights = weights("a", 1001) }, `weights has an entry "a" that is 1001: must be from 0.01 to 1000`},
		"one of two":    {func(r *isolation.Rule) { r.FairBy, r.Weights = rule.StringsOf("a", "b"), weights("x", 2) }, `weights has a key "x": fairBy has 2 attributes, so write 2 values with slashes between them`},
		"by something":  {func(r *isolation.Rule) { r.WeightBy = "bytes" }, `weightBy is "bytes": must be "time" or "calls"`},
		"another mask":  {func(r *isolation.Rule) { r.Mask = "star" }, `mask is "star": must be "hash", or left out`},
		"no newcomers":  {func(r *isolation.Rule) { r.FairBy, r.Newcomers = rule.Strings{}, rule.NewcomersHalf }, "newcomers has no effect without fairBy: remove it or set fairBy"},
		"other half":    {func(r *isolation.Rule) { r.Newcomers = "third" }, `newcomers is "third": must be "half" or "equal"`},
		"short queue":   {func(r *isolation.Rule) { r.MaxQueue, r.Newcomers = 63, rule.NewcomersHalf }, "newcomers has no effect with maxQueue 63: raise that to 64 or more, or remove it"},
		"long enough":   {func(r *isolation.Rule) { r.MaxQueue, r.Newcomers = 64, rule.NewcomersHalf }, ""},
		"nothing wrong": {func(r *isolation.Rule) { r.Weights = weights("a", 2) }, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := fairRule(1, 1)
			c.change(&r)
			var faults []string
			for _, f := range isolation.Kind().Faults(r) {
				faults = append(faults, f.Field+" "+f.Message)
			}
			assert.Equal(t, c.want, strings.Join(faults, "; "))
		})
	}
}

func TestStandaloneLimiterHasNoTenants(t *testing.T) {
	t.Parallel()
	_, err := isolation.New(fairRule(1, 1))
	assert.ErrorContains(t, err, "fairBy needs an engine: remove it")
}

// crowd makes a queue full of calls of 100 invented tenants each, behind a call of tenant x and 10 calls
// of a known one.
func crowd(t *testing.T, newcomers rule.Newcomers) *shared {
	r := fairRule(1, 100)
	r.Newcomers = newcomers
	s := newShared(t, r)
	for i := range 200 { // one in eight of them is looked at
		s.now = s.now.Add(time.Millisecond + time.Duration(i))
		s.calls("k")
		s.end(1)
	}
	s.calls("x")
	for range 10 {
		s.call("k", rule.PriorityNormal)
	}
	for i := range 90 {
		s.call(fmt.Sprint("new", i), rule.PriorityNormal)
	}
	return s
}

func TestKnownTenantsGetHalfBesideInventedOnes(t *testing.T) {
	t.Parallel()
	s := crowd(t, rule.NewcomersHalf)
	assert.Equal(t, rule.Block, s.call("another", rule.PriorityNormal))
	assert.Equal(t, rule.Block, s.call("another one", rule.PriorityNormal), "without a lock")
	assert.Equal(t, "w", s.calls("k"), "it takes the space of an invented one")
	assert.Regexp(t, "^NEW", s.poll())
	status := s.l.Status(s.now)
	assert.Equal(t, []float64{90, 11, 89}, status.Gauges[6:])
	assert.Contains(t, status.Notes[0].Text, "; 89 of them are not known, and get half together")
	known := 0
	for range 20 {
		s.now = s.now.Add(10 * time.Millisecond)
		if s.end(1) == "k" {
			known++
		}
	}
	assert.InDelta(t, 10, known, 1)
}

func TestInventedTenantsHaveASharesEachIfAllAreEqual(t *testing.T) {
	t.Parallel()
	s := crowd(t, rule.NewcomersEqual)
	assert.Equal(t, "b", s.calls("k"))
	known := 0
	for range 20 {
		s.now = s.now.Add(10 * time.Millisecond)
		if s.end(1) == "k" {
			known++
		}
	}
	assert.LessOrEqual(t, known, 1)
}

func TestTenantsWithAWeightAndCallsWithoutATenantAreKnown(t *testing.T) {
	t.Parallel()
	r := fairRule(1, 64)
	r.Newcomers = rule.NewcomersHalf
	r.Weights = rule.NumberMapOf(rule.NumberEntry{Key: rule.String("g"), Value: 1})
	s := newShared(t, r)
	s.calls("x")
	for i := range 62 {
		s.call(fmt.Sprint("new", i), rule.PriorityNormal)
	}
	s.calls("g")
	s.call("", rule.PriorityNormal)
	assert.Equal(t, []float64{64, 1, 62}, s.l.Status(s.now).Gauges[6:])
}
