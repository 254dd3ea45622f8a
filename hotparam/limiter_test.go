package hotparam_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/hotparam"
	"github.com/penstock-go/penstock/internal/optional"
	"github.com/penstock-go/penstock/rule"
)

func TestEachValueHasABucketOfItsOwn(t *testing.T) {
	t.Parallel()
	s := newService(t, perUser(func(r *hotparam.Rule) { r.Burst = 20 }))
	assert.Equal(t, 20, s.passes(user("a")))
	assert.Equal(t, 20, s.passes(user("b")))
	assert.Equal(t, 100*time.Millisecond, s.retryAfter(user("a")))
	s.at(100*time.Millisecond - 1)
	assert.Equal(t, rule.Block, s.ask(user("a")))
	s.at(100 * time.Millisecond)
	assert.Equal(t, 1, s.passes(user("a")))
	s.at(time.Hour)
	assert.Equal(t, 20, s.passes(user("a")))
}

func TestValuesOfDifferentTypesDiffer(t *testing.T) {
	t.Parallel()
	for _, seed := range []uint64{0, 7} {
		s := &service{t: t, now: epoch, seed: seed}
		s.start(perUser(nil))
		for _, value := range []rule.Attribute{
			rule.String("7"), rule.Int(7), rule.String("true"), rule.Bool(true), rule.Bool(false), rule.Int(1), rule.Int(0), rule.String(""),
		} {
			assert.Equal(t, 10, s.passes(value), "%v", value)
		}
	}
}

func TestCompositeValuesDifferByTheirParts(t *testing.T) {
	t.Parallel()
	for _, seed := range []uint64{0, 7} {
		s := &service{t: t, now: epoch, seed: seed}
		s.start(perUser(func(r *hotparam.Rule) { r.Param = rule.StringsOf("tenant", "user") }))
		for _, value := range []rule.Attribute{
			composite(user("a"), user("b/c")), composite(user("a/b"), user("c")), composite(user("b/c"), user("a")),
			composite(user("a"), rule.Int(7)), composite(user("a"), user("7")), composite(user("a"), user("a")),
		} {
			assert.Equal(t, 10, s.passes(value), "%v", value)
		}
		assert.Zero(t, s.passes(composite(user("a"), user("b/c"))))
	}
}

func TestResourcesOfARuleCountForThemselves(t *testing.T) {
	t.Parallel()
	s := newService(t, perUser(nil))
	other := s.another()
	assert.Equal(t, 10, s.passes(user("a")))
	assert.Equal(t, 10, other.passes(user("a")))
}

func TestACallWithoutTheAttribute(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		missing rule.Missing
		passes  int // of 30
		retry   time.Duration
	}{
		{rule.MissingPass, 30, 0},
		{rule.MissingShare, 10, 100 * time.Millisecond},
		{rule.MissingBlock, 0, rule.Forbidden},
		{rule.MissingUnauthenticated, 0, rule.Forbidden},
	} {
		s := newService(t, perUser(func(r *hotparam.Rule) { r.Missing = c.missing }))
		passes := 0
		for range 30 {
			if s.ask(rule.Attribute{}) == rule.Pass {
				passes++
			}
		}
		assert.Equal(t, c.passes, passes, c.missing)
		assert.Equal(t, c.retry, s.retryAfter(rule.Attribute{}), c.missing)
		assert.Equal(t, 10, s.passes(user("a")))
	}
}

func TestOverridesOfValuesAndPatterns(t *testing.T) {
	t.Parallel()
	s := newService(t, perUser(func(r *hotparam.Rule) {
		r.Values = rule.NumberMapOf(
			text("v*", 5), text("vip", 30), text("*p", 7), number(7, 3), rule.NumberEntry{Key: rule.Bool(true), Value: 2},
			text("banned", 0), text("~^re[0-9]+$", 4), text(`\*`, 6),
		)
	}))
	for _, c := range []struct {
		value rule.Attribute
		want  int
	}{
		{user("vip"), 30},
		{user("vap"), 5},
		{user("sp"), 7},
		{user("a"), 10},
		{rule.Int(7), 3},
		{user("7"), 10},
		{rule.Bool(true), 2},
		{rule.Bool(false), 10},
		{user("banned"), 0},
		{user("re42"), 4},
		{user("re"), 10},
		{user("*"), 6},
	} {
		assert.Equal(t, c.want, s.passes(c.value), "%v", c.value)
	}
	assert.Equal(t, rule.Never, s.retryAfter(user("banned")))
}

func TestOverridesOfCompositeValuesMatchPartByPart(t *testing.T) {
	t.Parallel()
	s := newService(t, perUser(func(r *hotparam.Rule) {
		r.Param = rule.StringsOf("tenant", "user")
		r.Values = rule.NumberMapOf(text("acme/*", 3), text("*/7", 4), text(`a\/b/c`, 5), text("t/true", 6))
	}))
	for _, c := range []struct {
		value rule.Attribute
		want  int
	}{
		{composite(user("acme"), user("u1")), 3},
		{composite(user("acme"), rule.Int(9)), 3},
		{composite(user("x"), rule.Int(7)), 4},
		{composite(user("x"), user("7")), 4},
		{composite(user("a/b"), user("c")), 5},
		{composite(user("a"), user("b/c")), 10},
		{composite(user("t"), rule.Bool(true)), 6},
		{composite(rule.Int(1), rule.Int(2)), 10},
	} {
		assert.Equal(t, c.want, s.passes(c.value), "%v", c.value)
	}
}

func TestOverridesOfCompositeValuesComeBeforeThoseOfPatterns(t *testing.T) {
	t.Parallel()
	s := newService(t, perUser(func(r *hotparam.Rule) {
		r.Param = rule.StringsOf("tenant", "user")
		r.Values = rule.NumberMapOf(text("acme/*", 3), text("*/u1", 4), text("acme/u1", 5), text(`acme/a\/b`, 6), text("acme/7", 7))
	}))
	for _, c := range []struct {
		value rule.Attribute
		want  int
	}{
		{composite(user("acme"), user("u2")), 3},
		{composite(user("x"), user("u1")), 4},
		{composite(user("acme"), user("u1")), 5},
		{composite(user("acme"), user("a/b")), 6},
		{composite(user("acme"), user("7")), 7},
		{composite(user("acme"), rule.Int(7)), 7},
	} {
		assert.Equal(t, c.want, s.passes(c.value), "%v", c.value)
	}
}

func TestABurstThatIsWrittenCountsForAllValues(t *testing.T) {
	t.Parallel()
	s := newService(t, perUser(func(r *hotparam.Rule) { r.Burst, r.Values = 20, rule.NumberMapOf(text("vip", 1000), text("slow*", 1)) }))
	assert.Equal(t, 20, s.passes(user("vip")))
	assert.Equal(t, time.Millisecond, s.retryAfter(user("vip")))
	assert.Equal(t, 20, s.passes(user("slow")))

	// Also one that is what it would be if it were left out.
	s = newService(t, perUser(func(r *hotparam.Rule) { r.Burst, r.Values = 10, rule.NumberMapOf(text("vip", 1000), text("slow*", 1)) }))
	assert.Equal(t, 10, s.passes(user("vip")))
	assert.Equal(t, 10, s.passes(user("slow")))
}

func TestPenaltyRefusesAValueOutrightForExactlySoLong(t *testing.T) {
	t.Parallel()
	s := newService(t, perUser(func(r *hotparam.Rule) {
		r.Penalty = hotparam.Penalty{After: 3, Within: 10 * time.Second, For: time.Minute}
	}))
	require.Equal(t, 10, s.passes(user("a"))) // and the first refusal
	s.at(5 * time.Second)
	require.Equal(t, 10, s.passes(user("a"))) // the second one
	s.at(7 * time.Second)
	assert.Equal(t, rule.Pass, s.ask(user("a")))
	s.passes(user("a")) // the third one
	assert.Equal(t, time.Minute, s.retryAfter(user("a")))
	assert.Equal(t, 10, s.passes(user("b")), "others have none")
	s.at(7*time.Second + time.Minute - 1)
	assert.Equal(t, rule.Block, s.ask(user("a")))
	assert.Equal(t, time.Duration(1), s.retryAfter(user("a")))
	s.at(7*time.Second + time.Minute)
	assert.Equal(t, 10, s.passes(user("a")), "counting starts anew: this is the first refusal")
	assert.Equal(t, 100*time.Millisecond, s.retryAfter(user("a")))
	s.ask(user("a"))
	assert.Equal(t, 100*time.Millisecond, s.retryAfter(user("a")))
	s.ask(user("a"))
	assert.Equal(t, time.Minute, s.retryAfter(user("a")))
}

func TestPenaltyForgetsRefusalsThatLeaveTheWindow(t *testing.T) {
	t.Parallel()
	s := newService(t, perUser(func(r *hotparam.Rule) {
		r.Limit, r.Penalty = 0, hotparam.Penalty{After: 2, Within: 10 * time.Second, For: time.Minute}
		r.Values = rule.NumberMapOf(text("a", 1))
	}))
	s.passes(user("a"))
	s.at(500 * time.Millisecond)
	s.ask(user("b")) // of a value that never passes
	s.at(10 * time.Second)
	s.passes(user("a"))
	assert.Equal(t, time.Second, s.retryAfter(user("a")), "the refusal ten buckets ago does not count any more")
	s.ask(user("a"))
	assert.Equal(t, time.Minute, s.retryAfter(user("a")))
}

func TestThrottleSpacesTheCallsOfEachValue(t *testing.T) {
	t.Parallel()
	s := newService(t, perUser(func(r *hotparam.Rule) { r.Algorithm, r.MaxWait = hotparam.Throttle, 250*time.Millisecond }))
	l := s.limiter.(rule.Queue)
	wakes := 0
	patience := rule.Patience{Since: s.now, Until: 1<<63 - 1, Wake: func() { wakes++ }}

	require.Equal(t, rule.Pass, s.ask(user("a")))
	require.Equal(t, rule.Wait, s.ask(user("a")), "nothing is reserved yet")
	require.Equal(t, rule.Wait, s.ask(user("a")))
	first, _, decision := l.Join(s.call(user("a"), 1), patience)
	require.Equal(t, rule.Wait, decision)
	second, _, decision := l.Join(s.call(user("a"), 1), patience)
	require.Equal(t, rule.Wait, decision)
	_, _, decision = l.Join(s.call(user("a"), 1), patience)
	assert.Equal(t, rule.Block, decision, "300 ms away")
	assert.Equal(t, rule.Block, s.ask(user("a")))
	assert.Equal(t, 50*time.Millisecond, s.retryAfter(user("a")), "then it may wait")
	assert.Equal(t, rule.Pass, s.ask(user("b")))

	_, after, decision := first.Poll(s.now)
	assert.Equal(t, rule.Wait, decision)
	assert.Equal(t, 100*time.Millisecond, after)
	second.Leave(s.now) // the last turn comes back
	third, _, decision := l.Join(s.call(user("a"), 1), patience)
	require.Equal(t, rule.Wait, decision)
	s.at(100 * time.Millisecond)
	_, _, decision = first.Poll(s.now)
	assert.Equal(t, rule.Pass, decision)
	_, after, _ = third.Poll(s.now)
	assert.Equal(t, 100*time.Millisecond, after)
	s.at(200 * time.Millisecond)
	_, _, decision = third.Poll(s.now)
	assert.Equal(t, rule.Pass, decision)
	assert.Zero(t, wakes)
	s.at(300 * time.Millisecond)
	assert.Equal(t, rule.Pass, s.ask(user("a")))
}

func TestThrottleWaitsNoLongerThanTheCallCan(t *testing.T) {
	t.Parallel()
	s := newService(t, perUser(func(r *hotparam.Rule) { r.Algorithm, r.MaxWait = hotparam.Throttle, time.Second }))
	l := s.limiter.(rule.Queue)
	s.at(time.Second)
	require.Equal(t, rule.Pass, s.ask(user("a")))
	for _, c := range []struct {
		name string
		of   rule.Patience
		want rule.Decision
	}{
		{"the context ends before", rule.Patience{Since: s.now, Until: s.now.Add(100*time.Millisecond - 1)}, rule.Block},
		{"it has waited elsewhere", rule.Patience{Since: s.now.Add(-901 * time.Millisecond), Until: 1<<63 - 1}, rule.Block},
		{"just in time", rule.Patience{Since: s.now.Add(-900 * time.Millisecond), Until: s.now.Add(100 * time.Millisecond)}, rule.Wait},
	} {
		_, _, decision := l.Join(s.call(user("a"), 1), c.of)
		assert.Equal(t, c.want, decision, c.name)
	}
}

func TestWaitsEndWhenTheRuleIsGone(t *testing.T) {
	t.Parallel()
	s := newService(t, perUser(func(r *hotparam.Rule) { r.Algorithm, r.MaxWait = hotparam.Throttle, time.Second }))
	other := s.another()
	wakes := 0
	patience := rule.Patience{Since: s.now, Until: 1<<63 - 1, Wake: func() { wakes++ }}
	join := func(s *service) rule.Waiter {
		require.Equal(t, rule.Pass, s.ask(user("a")))
		w, _, decision := s.limiter.(rule.Queue).Join(s.call(user("a"), 1), patience)
		require.Equal(t, rule.Wait, decision)
		return w
	}
	of, left, elsewhere := join(s), join(s.another()), join(other)
	left.Leave(s.now)
	require.False(t, s.reload(func(r *hotparam.Rule) { r.Algorithm, r.MaxWait = hotparam.TokenBucket, 0 }))
	assert.Equal(t, 1, wakes)
	_, _, decision := of.Poll(s.now)
	assert.Equal(t, rule.Stale, decision)
	_, _, decision = elsewhere.Poll(s.now)
	assert.Equal(t, rule.Wait, decision)
}

func TestGivingBackUndoesACall(t *testing.T) {
	t.Parallel()
	for _, algorithm := range []hotparam.Algorithm{hotparam.TokenBucket, hotparam.SlidingWindow, hotparam.Throttle} {
		s := newService(t, perUser(func(r *hotparam.Rule) { r.Algorithm, r.Missing = algorithm, rule.MissingShare }))
		for _, value := range []rule.Attribute{user("a"), {}} {
			for range 100 {
				ticket, decision := s.limiter.Acquire(s.call(value, 1))
				require.Equal(t, rule.Pass, decision, algorithm)
				s.limiter.GiveBack(s.now, ticket, 1)
			}
		}
	}
}

func TestConcurrencyCountsCallsUnderWay(t *testing.T) {
	t.Parallel()
	s := newService(t, perUser(func(r *hotparam.Rule) {
		r.Limit, r.Concurrency, r.Values = 0, 3, rule.NumberMapOf(text("vip", 5), text("banned", 0), text("g*", 2))
	}))
	l := s.limiter.(rule.Finisher)
	for _, c := range []struct {
		value rule.Attribute
		want  int
	}{{user("a"), 3}, {user("b"), 3}, {user("vip"), 5}, {user("g1"), 2}, {user("banned"), 0}} {
		var tickets []rule.Ticket
		for {
			ticket, decision := l.Acquire(s.call(c.value, 7))
			if decision != rule.Pass {
				break
			}
			tickets = append(tickets, ticket)
		}
		require.Len(t, tickets, c.want, "%v", c.value)
		for i, ticket := range tickets {
			if i%2 == 0 {
				l.Done(ticket, rule.Exit{Now: s.now})
			} else {
				l.GiveBack(s.now, ticket, 7)
			}
		}
		assert.Equal(t, c.want, s.passes(c.value), "%v", c.value)
	}
	assert.Zero(t, s.retryAfter(user("a")), "unknown")
	assert.Equal(t, rule.Never, s.retryAfter(user("banned")))
}

func TestSettleCorrectsWhatACallTook(t *testing.T) {
	t.Parallel()
	for _, algorithm := range []hotparam.Algorithm{hotparam.TokenBucket, hotparam.SlidingWindow} {
		s := newService(t, perUser(func(r *hotparam.Rule) { r.Algorithm = algorithm }))
		l := s.limiter.(rule.Settler)
		ticket, decision := l.Acquire(s.call(user("a"), 4))
		require.Equal(t, rule.Pass, decision)
		l.Settle(s.now, s.now, ticket, 3)
		assert.Equal(t, 3, s.passes(user("a")), algorithm)
		l.Settle(s.now, s.now, ticket, -5)
		assert.Equal(t, 5, s.passes(user("a")), algorithm)
		l.Settle(s.now, s.now, ticket, 100)
		s.at(900 * time.Millisecond)
		assert.Equal(t, rule.Block, s.ask(user("a")), algorithm)
	}
}

func TestIdleOnlyWhenAllValuesAreAsNew(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		change func(*hotparam.Rule)
		keeps  time.Duration
	}{
		{"token bucket", nil, time.Second},
		{"slow token bucket", func(r *hotparam.Rule) { r.Limit, r.Window, r.Burst = 1, time.Hour, 5 }, 5 * time.Hour},
		{"sliding window", func(r *hotparam.Rule) { r.Algorithm, r.Window = hotparam.SlidingWindow, time.Minute }, time.Minute},
		{"throttle", func(r *hotparam.Rule) { r.Algorithm, r.Limit, r.MaxWait = hotparam.Throttle, 0.1, time.Second }, 11 * time.Second},
		{"penalty", func(r *hotparam.Rule) {
			r.Penalty = hotparam.Penalty{After: 1, Within: time.Minute, For: time.Hour}
		}, time.Hour},
	} {
		s := newService(t, perUser(c.change))
		assert.True(t, s.limiter.Idle(s.now), c.name)
		s.passes(user("a"))
		s.now = s.now.Add(c.keeps - 1)
		assert.False(t, s.limiter.Idle(s.now), c.name)
		s.now = s.now.Add(c.keeps + 2*time.Second)
		assert.True(t, s.limiter.Idle(s.now), c.name)
	}
}

func TestStatusShowsTheHottestValues(t *testing.T) {
	t.Parallel()
	s := newService(t, perUser(func(r *hotparam.Rule) { r.Missing = rule.MissingShare }))
	other := s.another()
	for i := range 20 {
		for range i {
			s.ask(user(fmt.Sprintf("user-%02d", i)))
		}
	}
	other.ask(user("elsewhere"))
	s.at(time.Minute)
	s.ask(user("user-19"))
	s.ask(rule.Attribute{})
	values := s.limiter.Status(s.now).Values
	require.Len(t, values, 10)
	assert.Equal(t, rule.ValueStatus{Value: "user-19", Passed: 11, Refused: 9}, values[0])
	assert.Equal(t, rule.ValueStatus{Value: "user-10", Passed: 10}, values[9])
	assert.Equal(t, []rule.ValueStatus{{Value: "elsewhere", Passed: 1}}, other.limiter.Status(s.now).Values)
	s.at(2 * time.Minute)
	assert.Equal(t, []rule.ValueStatus{{Value: "(missing)", Passed: 1}, {Value: "user-19", Passed: 1}}, s.limiter.Status(s.now).Values)
	s.at(4 * time.Minute)
	assert.Empty(t, s.limiter.Status(s.now).Values)
}

func TestStatusShowsValuesInOneLineCutOrMasked(t *testing.T) {
	t.Parallel()
	long := ""
	for range 30 {
		long += "日本"
	}
	s := newService(t, perUser(nil))
	s.ask(user("a\nb\xffc"))
	s.ask(user(long))
	s.ask(rule.Int(-7))
	var got []string
	for _, v := range s.limiter.Status(s.now).Values {
		got = append(got, v.Value)
	}
	assert.ElementsMatch(t, []string{"a�b�c", long[:63] + "…", "-7"}, got)

	s = newService(t, perUser(func(r *hotparam.Rule) { r.Mask = rule.MaskHash }))
	s.ask(user("secret"))
	assert.Regexp(t, "^#[0-9a-f]{16}$", s.limiter.Status(s.now).Values[0].Value)
}

func TestHottestValuesAreFoundAmongMany(t *testing.T) {
	t.Parallel()
	s := newService(t, perUser(nil))
	for i := range 200_000 {
		s.now++
		s.ask(user(fmt.Sprint("cold-", i)))
		if i%4 == 0 {
			s.ask(user("hot"))
		}
	}
	values := s.limiter.Status(s.now).Values
	require.NotEmpty(t, values)
	assert.Equal(t, "hot", values[0].Value)
	assert.InEpsilon(t, 50_000, values[0].Passed+values[0].Refused, 0.25) // five standard deviations
}

func TestStatusCountsValues(t *testing.T) {
	t.Parallel()
	s := newService(t, perUser(func(r *hotparam.Rule) {
		r.MaxValues, r.Penalty = 100, hotparam.Penalty{After: 2, Within: time.Second, For: time.Minute}
	}))
	gauges := func() map[string]float64 {
		named := make(map[string]float64)
		for i, value := range s.limiter.Status(s.now).Gauges {
			named[hotparam.Kind().Gauges()[i].Name] = value
		}
		return named
	}
	assert.Equal(t, map[string]float64{
		"values": 0, "max_values": 100, "forgotten": 0, "without_slot": 0, "penalised": 0, "penalties": 0, "table_bytes": 0,
	}, gauges())
	for i := range 50 {
		s.ask(rule.Int(int64(i)))
	}
	s.passes(rule.Int(0))
	s.ask(rule.Int(0))
	got := gauges()
	assert.InDelta(t, 50, got["values"], 0)
	assert.InDelta(t, 1, got["penalised"], 0)
	assert.InDelta(t, 1616, got["table_bytes"], 100)
	s.at(time.Second)
	for i := range 400 {
		s.ask(rule.Int(int64(1000 + i)))
	}
	got = gauges()
	assert.Positive(t, got["forgotten"])
	assert.Positive(t, got["without_slot"])
	s.at(2 * time.Minute)
	got = gauges()
	assert.Zero(t, got["values"])
	assert.Zero(t, got["penalised"])
	assert.InDelta(t, 1, got["penalties"], 0)
}

// Nothing grows with the number of values: no call allocates, whether its value is new or
// not.
func TestNewValuesTakeNoMemory(t *testing.T) {
	for name, change := range map[string]func(*hotparam.Rule){
		"token bucket":   nil,
		"sliding window": func(r *hotparam.Rule) { r.Algorithm = hotparam.SlidingWindow },
		"throttle":       func(r *hotparam.Rule) { r.Algorithm = hotparam.Throttle },
		"concurrency":    func(r *hotparam.Rule) { r.Limit, r.Concurrency = 0, 1 },
		"penalty": func(r *hotparam.Rule) {
			r.Limit, r.Penalty = 0, hotparam.Penalty{After: 1, Within: time.Second, For: time.Minute}
			r.Values = rule.NumberMapOf(text("x", 1))
		},
	} {
		s := newService(t, perUser(func(r *hotparam.Rule) {
			if r.MaxValues = 1000; change != nil {
				change(r)
			}
		}))
		s.ask(rule.Int(-1))
		next := int64(0)
		assert.Zero(t, testing.AllocsPerRun(20_000, func() {
			next++
			s.now++
			s.ask(rule.Int(next))
		}), name)
	}
}

// What is prefetched changes nothing, before the first call either.
func TestPrefetchingChangesNothing(t *testing.T) {
	t.Parallel()
	for name, edit := range map[string]func(*hotparam.Rule){
		"token bucket":   func(r *hotparam.Rule) { r.Algorithm = hotparam.TokenBucket },
		"sliding window": func(r *hotparam.Rule) { r.Algorithm = hotparam.SlidingWindow },
		"throttle":       func(r *hotparam.Rule) { r.Algorithm = hotparam.Throttle },
		"concurrency":    func(r *hotparam.Rule) { r.Limit, r.Concurrency = 0, 10 },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			passes := func(prefetch func(rule.Limiter)) (passes []int) {
				s := &service{t: t, now: epoch, seed: 7}
				s.start(perUser(edit))
				for i := range 100 {
					prefetch(s.limiter)
					passes = append(passes, s.passes(user(fmt.Sprint(i%50))))
				}
				return passes
			}
			want := passes(func(rule.Limiter) {})
			assert.Equal(t, want, passes(func(l rule.Limiter) {
				for i := range 60 {
					l.(optional.Prefetcher).Prefetch(user(fmt.Sprint(i)))
				}
			}))
		})
	}
}

func TestOnlyLargeTablesArePrefetched(t *testing.T) {
	t.Parallel()
	for maxValues, want := range map[int]bool{0: false, 100_000: false, 1_000_000: true} {
		s := newService(t, perUser(func(r *hotparam.Rule) { r.MaxValues, r.Window = maxValues, time.Hour }))
		assert.Equal(t, want, s.limiter.(optional.Prefetcher).Prefetches(), maxValues)
	}
}
