package hotparam_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/hotparam"
	"github.com/penstock-go/penstock/rule"
)

func TestReloadKeepsWhatValuesHaveUsedInTokens(t *testing.T) {
	t.Parallel()
	s := newService(t, perUser(func(r *hotparam.Rule) { r.Burst = 20 }))
	for range 15 {
		require.Equal(t, rule.Pass, s.ask(user("a")))
	}
	require.True(t, s.reload(func(r *hotparam.Rule) { r.Limit, r.Window = 1, time.Minute }))
	assert.Equal(t, 5, s.passes(user("a")))
	require.True(t, s.reload(func(r *hotparam.Rule) { r.Burst = 30 }))
	assert.Equal(t, 10, s.passes(user("a")))
	require.True(t, s.reload(func(r *hotparam.Rule) { r.Burst = 10 }))
	s.at(20 * time.Minute)
	assert.Equal(t, rule.Block, s.ask(user("a")), "30 tokens were missing, and 20 have flowed in")
	s.at(21 * time.Minute)
	assert.Equal(t, 1, s.passes(user("a")))
}

func TestReloadThatChangesWhatIsCountedStartsAnew(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*hotparam.Rule){
		"param":       func(r *hotparam.Rule) { r.Param = rule.StringsOf("tenant") },
		"algorithm":   func(r *hotparam.Rule) { r.Algorithm = hotparam.SlidingWindow },
		"concurrency": func(r *hotparam.Rule) { r.Limit, r.Concurrency = 0, 10 },
	} {
		s := newService(t, perUser(nil))
		require.Equal(t, 10, s.passes(user("a")))
		assert.False(t, s.reload(change), name)
		assert.Equal(t, 10, s.passes(user("a")), name)
	}
}

func TestLimiterOfAnOlderVersionIsStale(t *testing.T) {
	t.Parallel()
	s := newService(t, perUser(nil))
	s.ask(user("a"))
	old := s.limiter
	s.reload(func(r *hotparam.Rule) { r.Limit = 5 })
	_, decision := old.Acquire(s.call(user("a"), 1))
	assert.Equal(t, rule.Stale, decision)
}

func TestLimiterOfAnOlderVersionIsStaleBeforeAnyValueWasSeen(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*hotparam.Rule){
		"bucket":      nil,
		"window":      func(r *hotparam.Rule) { r.Algorithm = hotparam.SlidingWindow },
		"throttle":    func(r *hotparam.Rule) { r.Algorithm = hotparam.Throttle },
		"concurrency": func(r *hotparam.Rule) { r.Limit, r.Concurrency = 0, 10 },
	} {
		s := newService(t, perUser(func(r *hotparam.Rule) {
			r.Values, r.Missing = rule.NumberMapOf(text("named", 20)), rule.MissingShare
			if change != nil {
				change(r)
			}
		}))
		old, other := s.limiter, s.another().limiter
		s.reload(func(r *hotparam.Rule) { r.MaxValues = 500 })
		for _, value := range []rule.Attribute{user("a"), user("named"), {}} {
			_, decision := old.Acquire(s.call(value, 1))
			assert.Equal(t, rule.Stale, decision, "%s: %v", name, value)
		}
		_, decision := other.Acquire(s.call(user("a"), 1))
		assert.Equal(t, rule.Stale, decision, "%s: on another resource, which has the table too", name)
		assert.Positive(t, s.passes(user("a")), name)
		assert.Positive(t, s.passes(user("named")), name)
	}
}

func TestReloadThatNamesAValueKeepsWhatItHasUsed(t *testing.T) {
	t.Parallel()
	name := func(r *hotparam.Rule) { r.Values = rule.NumberMapOf(text("a", 20), number(7, 20)) }
	unname := func(r *hotparam.Rule) { r.Values = rule.NumberMap{} }
	for _, algorithm := range []hotparam.Algorithm{hotparam.TokenBucket, hotparam.SlidingWindow} {
		for _, value := range []rule.Attribute{user("a"), rule.Int(7)} {
			s := newService(t, perUser(func(r *hotparam.Rule) { r.Algorithm = algorithm }))
			require.Equal(t, 10, s.passes(value))
			require.True(t, s.reload(name))
			assert.Equal(t, 10, s.passes(value), "the limit is higher by so much: %v", algorithm)
			require.True(t, s.reload(func(r *hotparam.Rule) { r.Missing = rule.MissingBlock }))
			require.True(t, s.reload(unname))
			assert.Zero(t, s.passes(value), algorithm)
			require.True(t, s.reload(name))
			assert.Zero(t, s.passes(value), algorithm)
			s.at(2 * time.Second)
			assert.Equal(t, 20, s.passes(value), algorithm)
		}
	}

	s := newService(t, perUser(func(r *hotparam.Rule) { r.Algorithm = hotparam.Throttle }))
	require.Equal(t, 1, s.passes(user("a")))
	require.True(t, s.reload(name))
	assert.Equal(t, 50*time.Millisecond, s.retryAfter(user("a")), "the spacing of the new limit, from the last pass")
	require.True(t, s.reload(unname))
	assert.LessOrEqual(t, s.retryAfter(user("a")), 100*time.Millisecond)
	assert.Positive(t, s.retryAfter(user("a")))
}

func TestReloadThatNamesAValueCountsItsCallsUnderWay(t *testing.T) {
	t.Parallel()
	s := newService(t, perUser(func(r *hotparam.Rule) { r.Limit, r.Concurrency = 0, 3 }))
	l := s.limiter.(rule.Finisher)
	var tickets []rule.Ticket
	for range 3 {
		ticket, decision := l.Acquire(s.call(user("a"), 1))
		require.Equal(t, rule.Pass, decision)
		tickets = append(tickets, ticket)
	}
	require.True(t, s.reload(func(r *hotparam.Rule) { r.Values = rule.NumberMapOf(text("a", 4)) }))
	named := s.limiter.(rule.Finisher)
	ticket, decision := named.Acquire(s.call(user("a"), 1))
	require.Equal(t, rule.Pass, decision)
	assert.Equal(t, rule.Block, s.ask(user("a")), "three are under way still")
	l.Done(tickets[0], rule.Exit{Now: s.now})
	assert.Equal(t, 1, s.passes(user("a")))
	l.Done(tickets[1], rule.Exit{Now: s.now})
	require.True(t, s.reload(func(r *hotparam.Rule) { r.Values = rule.NumberMap{} }))
	assert.Zero(t, s.passes(user("a")), "one is under way from the first version and two from the second")
	named.Done(ticket, rule.Exit{Now: s.now})
	assert.Equal(t, 1, s.passes(user("a")))
}

func TestPenaltiesOutliveReloads(t *testing.T) {
	t.Parallel()
	s := newService(t, perUser(func(r *hotparam.Rule) {
		r.Penalty = hotparam.Penalty{After: 1, Within: time.Second, For: time.Minute}
	}))
	s.passes(user("a"))
	require.True(t, s.reload(func(r *hotparam.Rule) { r.Penalty.Within, r.Penalty.For = time.Minute, time.Hour }))
	assert.Equal(t, time.Minute, s.retryAfter(user("a")))
	s.at(time.Minute)
	s.passes(user("a"))
	assert.Equal(t, time.Hour, s.retryAfter(user("a")))
	require.True(t, s.reload(func(r *hotparam.Rule) { r.Penalty = hotparam.Penalty{} }))
	assert.Equal(t, 100*time.Millisecond, s.retryAfter(user("a")))
}

func TestWaitingCallsKeepTheirTurnsOverAReload(t *testing.T) {
	t.Parallel()
	s := newService(t, perUser(func(r *hotparam.Rule) { r.Algorithm, r.MaxWait = hotparam.Throttle, time.Second }))
	require.Equal(t, rule.Pass, s.ask(user("a")))
	w, _, decision := s.limiter.(rule.Queue).Join(s.call(user("a"), 1), rule.Patience{Since: s.now, Until: 1<<63 - 1})
	require.Equal(t, rule.Wait, decision)
	require.True(t, s.reload(func(r *hotparam.Rule) { r.Limit, r.MaxWait = 100, 0 }))
	_, after, decision := w.Poll(s.now)
	assert.Equal(t, rule.Wait, decision)
	assert.Equal(t, 100*time.Millisecond, after)
	s.at(105 * time.Millisecond)
	_, _, decision = w.Poll(s.now)
	assert.Equal(t, rule.Pass, decision)
	assert.Equal(t, rule.Block, s.ask(user("a")))
	s.at(110 * time.Millisecond)
	assert.Equal(t, rule.Pass, s.ask(user("a")))
}

func TestManyResourcesHaveOneTable(t *testing.T) {
	t.Parallel()
	s := newService(t, perUser(func(r *hotparam.Rule) { r.MaxValues = 100 }))
	for range 50 {
		other := s.another()
		for i := range 10 {
			other.ask(rule.Int(int64(i)))
		}
	}
	gauges := s.limiter.Status(s.now).Gauges
	assert.LessOrEqual(t, gauges[0], 144.0, "values in the table")
	assert.Positive(t, gauges[3], "decisions without a slot")
}

func TestSeedMakesDecisionsRepeatable(t *testing.T) {
	t.Parallel()
	run := func() (decisions []rule.Decision) {
		s := newService(t, perUser(func(r *hotparam.Rule) { r.MaxValues, r.Limit = 100, 1 }))
		for i := range 2000 {
			s.now += clock.Instant(time.Millisecond)
			decisions = append(decisions, s.ask(rule.Int(int64(i*i%701))))
		}
		return decisions
	}
	first := run()
	assert.Contains(t, first, rule.Block)
	assert.Equal(t, first, run())
}
