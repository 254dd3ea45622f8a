package flow_test

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/rule"
)

// bucket returns a rule with a token bucket.
func bucket(limit, burst float64) flow.Rule {
	return flow.Rule{Resource: "r", Limit: limit, Burst: burst, Algorithm: flow.TokenBucket}
}

// overdraft returns the same with overdraft.
func overdraft(limit, burst float64) flow.Rule {
	rule := bucket(limit, burst)
	rule.Overdraft = true
	return rule
}

// patient returns a rule that lets calls wait.
func patient(rule flow.Rule, maxWait time.Duration) flow.Rule {
	rule.MaxWait = maxWait
	return rule
}

func TestBucketTimelines(t *testing.T) {
	t.Parallel()
	type step struct {
		at float64 // seconds
		n  int32
		ok bool
	}
	perMinute := bucket(6, 0)
	perMinute.Window = time.Minute
	tests := map[string]struct {
		rule  flow.Rule
		steps []step
	}{
		"it starts full and refills steadily": {bucket(10, 3), []step{
			{0, 1, true},
			{0, 1, true},
			{0, 1, true},
			{0, 1, false},
			{0.05, 1, false},
			{0.1, 1, true},
			{0.1, 1, false},
			{0.3, 1, true},
			{0.3, 1, true},
			{0.3, 1, false},
		}},
		"it holds no more than its burst": {bucket(10, 3), []step{
			{60, 3, true}, {60, 1, false}, {86_400, 4, false}, {86_400, 3, true}, {86_400, 1, false},
		}},
		"the burst is the limit by default": {bucket(5, 0), []step{
			{0, 5, true}, {0, 1, false}, {0.2, 1, true}, {10, 6, false}, {10, 5, true},
		}},
		"a refusal takes nothing": {bucket(10, 5), []step{
			{0, 4, true}, {0, 2, false}, {0, 2, false}, {0, 1, true}, {0, 1, false},
		}},
		"a fractional limit starts with one": {bucket(0.5, 0), []step{
			{0, 1, true}, {1.999, 1, false}, {2, 1, true}, {4, 1, true}, {5.9, 1, false}, {60, 1, true}, {60, 1, false},
		}},
		"a fractional burst": {bucket(1, 2.5), []step{
			{0, 3, false}, {0, 2, true}, {0, 1, false}, {0.5, 1, true}, {60, 2, true}, {60.4, 1, false}, {60.5, 1, true},
		}},
		"a window of a minute": {perMinute, []step{
			{0, 6, true}, {9.9, 1, false}, {10, 1, true}, {30, 2, true}, {30, 1, false},
		}},
		"nothing": {bucket(0, 0), []step{{0, 1, false}, {60, 1, false}}},

		"overdraft: the next ones pay": {overdraft(10, 3), []step{
			{0, 10, true}, {0, 1, false}, {0.6, 1, false}, {0.7, 1, true}, {0.7, 1, false}, {0.8, 1, true},
		}},
		"overdraft: a balance of nothing will do": {overdraft(10, 3), []step{
			{0, 3, true}, {0, 5, true}, {0, 1, false}, {0.49, 1, false}, {0.5, 1, true},
		}},
		"overdraft: what was saved is free": {overdraft(10, 3), []step{
			{60, 1, true}, {60, 1, true}, {60, 1, true}, {60, 1, true}, {60, 1, false}, {60.1, 1, true},
		}},
		"overdraft: a burst below one": {overdraft(10, 0.5), []step{
			{0, 1, true}, {0.04, 1, false}, {0.05, 1, true}, {0.14, 1, false}, {0.15, 1, true}, {60, 2, true}, {60.149, 1, false},
		}},
		"overdraft of nothing": {overdraft(0, 5), []step{{0, 1, false}, {60, 1, false}}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newTestQueue(t, test.rule)
			for i, s := range test.steps {
				l.moveTo(seconds(s.at))
				want := rule.Block
				if s.ok {
					want = rule.Pass
				}
				assert.Equal(t, want, l.arrive(s.n), "step %d: %d at %v s", i, s.n, s.at)
			}
		})
	}
}

// Instants are whole nanoseconds: a token that comes within the next one is
// there, and what was owed of the last one is not forgotten.
func TestBucketPassesWhatLacksLessThanANanosecond(t *testing.T) {
	t.Parallel()
	for name, r := range map[string]flow.Rule{"plain": bucket(3, 1), "overdraft": overdraft(3, 1)} {
		l := newTestQueue(t, r)
		for l.arrive(1) == rule.Pass {
		}
		for i, want := range []time.Duration{333_333_333, 666_666_666, 1_000_000_000, 1_333_333_333} {
			l.now = epoch.Add(want - 1)
			assert.Equal(t, rule.Block, l.arrive(1), "%s: token %d", name, i)
			l.now = epoch.Add(want)
			assert.Equal(t, rule.Pass, l.arrive(1), "%s: token %d", name, i)
		}
	}
}

func TestBucketKeepsItsRateUnderOverload(t *testing.T) {
	t.Parallel()
	for _, limit := range []float64{0.1, 0.667, 3, 333.3, 1000, 700_000, 1_234_567} {
		for name, r := range map[string]flow.Rule{"plain": bucket(limit, 2), "overdraft": overdraft(limit, 2)} {
			const calls = 200_000
			gap := time.Duration(1e9 / limit / 1.7)
			compiled := compile(t, r, 1)
			q := flow.NewQueue(compiled, epoch)
			now, passed := epoch, 0
			for range calls {
				now = now.Add(gap)
				if _, decision := q.Take(compiled, now, 1); decision == rule.Pass {
					passed++
				}
			}
			elapsed := (now.Sub(epoch) - gap).Seconds() // since the first call
			assert.InDelta(t, 2+limit*elapsed, passed, 1, "%s of %v per second", name, limit)
		}
	}
}

func TestBucketOfTheLargestLimit(t *testing.T) {
	t.Parallel()
	for _, window := range []time.Duration{time.Millisecond, time.Second, 24 * time.Hour} {
		r := bucket(flow.MaxLimit, 0)
		r.Window = window
		l := newTestQueue(t, r)
		assert.Equal(t, rule.Block, l.arrive(math.MaxInt32))
		assert.Equal(t, rule.Pass, l.arrive(flow.MaxLimit))
		assert.Equal(t, rule.Block, l.arrive(1e6))
		l.moveTo(window / 2)
		assert.Equal(t, rule.Block, l.arrive(flow.MaxLimit/2+1e6))
		assert.Equal(t, rule.Pass, l.arrive(flow.MaxLimit/2))
	}
}

func TestBucketOfTinyLimits(t *testing.T) {
	t.Parallel()
	for exponent := -323.0; exponent <= -3; exponent++ {
		for _, r := range []flow.Rule{bucket(math.Pow(10, exponent), 1), overdraft(math.Pow(10, exponent), 1)} {
			l := newTestQueue(t, patient(r, time.Second))
			assert.Equal(t, rule.Pass, l.arrive(1), "%v", r.Limit)
			l.arrive(1) // it has overdraft, or not
			assert.Equal(t, rule.Block, l.arrive(1))
			assert.Greater(t, l.queue.RetryAfter(l.now, 1, time.Hour), time.Second)
			_, remaining, reset := l.queue.Status(l.now)
			assert.Zero(t, remaining)
			assert.GreaterOrEqual(t, reset, time.Duration(0))
		}
	}
}

// A clock is read before the lock is taken: calls may come in another order than
// their instants.
func TestBucketOfCallsThatOvertakeOneAnother(t *testing.T) {
	t.Parallel()
	l := newTestQueue(t, bucket(1000, 10))
	l.now = epoch.Add(time.Second)
	assert.Equal(t, rule.Pass, l.arrive(4))
	l.now = epoch.Add(time.Second - 5*time.Millisecond)
	assert.Equal(t, rule.Pass, l.arrive(4), "as if it came with the one before")
	l.giveBackLast()
	assert.Equal(t, rule.Pass, l.arrive(4))
	assert.Equal(t, rule.Block, l.arrive(4))
	l.now = epoch.Add(time.Second)
	assert.Equal(t, rule.Block, l.arrive(3), "that time has not come twice")
	assert.Equal(t, rule.Pass, l.arrive(2))

	cold := newTestQueue(t, warmingBucket(1000, time.Second))
	cold.now = epoch.Add(time.Second)
	assert.Equal(t, rule.Pass, cold.arrive(100))
	free := cold.now.Add(cold.queue.RetryAfter(cold.now, 1, 0))
	early := cold.now.Add(-5 * time.Millisecond)
	assert.Equal(t, free, early.Add(cold.queue.RetryAfter(early, 1, 0)))
}

func TestBucketAnswers(t *testing.T) {
	t.Parallel()
	type answer struct {
		room  int64
		reset time.Duration
		retry time.Duration // of one token
	}
	tests := map[string]struct {
		rule  flow.Rule
		taken []int32
		want  answer
	}{
		"full":                  {bucket(10, 5), nil, answer{5, 0, 1}},
		"used":                  {bucket(10, 5), []int32{2}, answer{3, 100 * time.Millisecond, 1}},
		"empty":                 {bucket(10, 5), []int32{5}, answer{0, 100 * time.Millisecond, 100 * time.Millisecond}},
		"of a fraction":         {bucket(10, 2.5), []int32{2}, answer{0, 50 * time.Millisecond, 50 * time.Millisecond}},
		"full of a fraction":    {bucket(10, 2.5), nil, answer{2, 0, 1}},
		"with patience":         {patient(bucket(10, 5), time.Second), []int32{5}, answer{10, 100 * time.Millisecond, 1}},
		"full, with patience":   {patient(bucket(10, 5), time.Second), nil, answer{15, 0, 1}},
		"overdraft":             {overdraft(10, 5), []int32{2}, answer{4, 100 * time.Millisecond, 1}},
		"overdraft, in debt":    {overdraft(10, 5), []int32{10}, answer{0, 500 * time.Millisecond, 500 * time.Millisecond}},
		"overdraft, with waits": {patient(overdraft(10, 5), time.Second), []int32{10}, answer{6, 100 * time.Millisecond, 1}},
		"nothing":               {bucket(0, 0), nil, answer{0, 0, rule.Never}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newTestQueue(t, test.rule)
			for _, n := range test.taken {
				require.Equal(t, rule.Pass, l.arrive(n))
			}
			for range 2 { // asking changes nothing
				limit, remaining, reset := l.queue.Status(l.now)
				assert.InDelta(t, test.rule.Limit, limit, 1e-9)
				assert.Equal(t, test.want, answer{remaining, reset, l.queue.RetryAfter(l.now, 1, time.Hour)})
			}
		})
	}
}

func TestBucketNeverPromisesWhatItCannotHold(t *testing.T) {
	t.Parallel()
	l := newTestQueue(t, patient(bucket(10, 5), time.Hour))
	assert.Equal(t, rule.Block, l.arrive(6))
	assert.Equal(t, rule.Never, l.queue.RetryAfter(l.now, 6, time.Hour))
	l.arrive(5)
	assert.Equal(t, rule.Wait, l.arrive(5))
	assert.Equal(t, rule.Block, l.arrive(6), "behind others neither")
}

func TestBucketBeforeTheEpochOfClocks(t *testing.T) {
	t.Parallel()
	compiled := compile(t, bucket(10, 5), 1)
	now := clock.Instant(0).Add(-time.Hour)
	q := flow.NewQueue(compiled, now)
	for range 100 {
		now = now.Add(time.Minute)
		var passed int
		for decision := rule.Pass; decision == rule.Pass; passed++ {
			_, decision = q.Take(compiled, now, 1)
		}
		assert.Equal(t, 5, passed-1)
	}
}

func TestBucketAllocatesNothing(t *testing.T) {
	warm := bucket(1000, 0)
	warm.WarmUp.Period = time.Second
	for name, r := range map[string]flow.Rule{"plain": bucket(1000, 1), "overdraft": overdraft(1000, 1), "warming up": warm} {
		l := newTestQueue(t, patient(r, time.Millisecond))
		w := unwoken()
		assert.Zero(t, testing.AllocsPerRun(1000, func() {
			l.now = l.now.Add(700 * time.Microsecond)
			if turn, decision := l.queue.Take(l.compiled, l.now, 1); decision == rule.Pass {
				l.queue.GiveBack(l.now, turn)
			}
			w.Again(func() {})
			if _, decision := l.queue.Join(l.compiled, l.now, 1, time.Second, w); decision == rule.Wait {
				l.queue.Poll(l.now, w)
				l.queue.Leave(l.now, w)
			}
			l.queue.Reserve(l.compiled, l.now, 1)
			l.queue.RetryAfter(l.now, 1, time.Second)
			l.queue.Status(l.now)
		}), name)
	}
}
