package flow_test

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/rule"
)

// warmingBucket returns a rule with a token bucket that warms up.
func warmingBucket(limit float64, period time.Duration) flow.Rule {
	rule := patient(bucket(limit, 0), flow.MaxMaxWait)
	rule.WarmUp.Period = period
	return rule
}

// waits makes calls, each as soon as the one before has gone, and returns how
// long each of them waits.
func (l *testQueue) waits(weights ...int32) (waits []float64) {
	for _, n := range weights {
		began := l.now
		l.arrive(n)
		for len(l.waiting) > 0 {
			_, until, decision := l.queue.Poll(l.now, l.waiting[0].waiter)
			require.Equal(l.t, rule.Wait, decision)
			l.moveTo(l.now.Add(until).Sub(epoch))
		}
		waits = append(waits, l.now.Sub(began).Seconds())
	}
	return waits
}

func TestWarmingBucketWaitsOfSuccessiveCalls(t *testing.T) {
	t.Parallel()
	cold := []float64{0.000, 0.547, 0.440, 0.333, 0.230, 0.200, 0.200, 0.200}
	ones := []int32{1, 1, 1, 1, 1, 1, 1, 1}
	l := newTestQueue(t, warmingBucket(5, 1500*time.Millisecond))
	assert.InDeltaSlice(t, cold, l.waits(ones...), 0.002)

	l.moveTo(l.now.Sub(epoch) + time.Minute)
	assert.InDeltaSlice(t, cold, l.waits(ones...), 0.002, "idle time makes it cold again")

	l.moveTo(l.now.Sub(epoch) + 200*time.Millisecond) // what is owed
	assert.InDeltaSlice(t, []float64{0, 0.2, 0.2}, l.waits(1, 1, 1), 0.002, "but not the time that is owed")

	heavy := newTestQueue(t, warmingBucket(5, 1500*time.Millisecond))
	assert.InDeltaSlice(t, []float64{0, 0.547 + 0.440 + 0.333, 0.230 + 0.200, 0.2}, heavy.waits(3, 2, 1, 100), 0.003,
		"a heavy call costs what as many light ones do, and the next one waits for it")
	assert.InDelta(t, 20, heavy.waits(1)[0], 1e-6)
}

// The calls that go in a second, under full load, follow the ideal curve.
func TestWarmingBucketWarmsUpAlongTheIdealCurve(t *testing.T) {
	t.Parallel()
	l := newTestQueue(t, warmingBucket(1000, 10*time.Second))
	l.call(12_000)
	l.moveTo(14 * time.Second)
	passed := make([]int, 15)
	for _, p := range l.passes {
		passed[p.at/time.Second]++
	}
	for second, want := range []int{341, 358, 378, 402, 431, 467, 514, 579, 677, 854, 1000, 1000, 1000} {
		assert.InDelta(t, want, passed[second], 2, "second %d", second)
	}
}

func TestWarmingBucketKeepsItsRateUnderOverload(t *testing.T) {
	t.Parallel()
	for _, limit := range []float64{3, 333.3, 700_000} {
		r := warmingBucket(limit, time.Millisecond)
		r.MaxWait = 0
		compiled := compile(t, r, 1)
		q := flow.NewQueue(compiled, epoch)
		const calls = 100_000
		gap := time.Duration(1e9 / limit / 1.7)
		model := newGuava(limit, 0.001, 3)
		now, passed, want := epoch, 0, 0
		for range calls {
			now = now.Add(gap)
			if _, decision := q.Take(compiled, now, 1); decision == rule.Pass {
				passed++
			}
			if at := now.Sub(epoch).Seconds(); model.free-at < 0.999e-9 {
				model.call(at, 1)
				want++
			}
		}
		assert.InDelta(t, want, passed, 1, "limit %v", limit)
		assert.Greater(t, passed, calls/2-calls/100, "limit %v", limit)
	}
}

// guava is the model: the tokens that are stored, and when the next call may go.
type guava struct {
	stable, threshold, maximum, slope float64 // seconds, tokens
	restore                           float64
	stored, free                      float64 // free: seconds since the epoch
}

func newGuava(limit, period, factor float64) *guava {
	g := &guava{stable: 1 / limit}
	g.threshold = 0.5 * period / g.stable
	g.maximum = g.threshold + 2*period/(g.stable+factor*g.stable)
	g.slope = (factor*g.stable - g.stable) / (g.maximum - g.threshold)
	g.restore = g.maximum / period
	g.stored = g.maximum
	return g
}

// cost adds up what the tokens above the threshold take, those below and the
// fresh ones.
func (g *guava) cost(n float64) (seconds float64) {
	above := max(0, g.stored-g.threshold)
	steep := min(above, n)
	first, last := g.stable+above*g.slope, g.stable+(above-steep)*g.slope
	return steep*(first+last)/2 + (n-steep)*g.stable
}

// call returns when a call goes that comes at an instant.
func (g *guava) call(at float64, n float64) (goes float64) {
	if at > g.free {
		g.stored = min(g.maximum, g.stored+(at-g.free)*g.restore)
		g.free = at
	}
	goes = g.free
	g.free += g.cost(n)
	g.stored = max(0, g.stored-n)
	return goes
}

func TestWarmingBucketBehavesLikeItsModel(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		limit := math.Pow(10, rapid.Float64Range(-1, 4).Draw(t, "log limit"))
		period := time.Duration(rapid.Int64Range(1, 20).Draw(t, "period")) * 500 * time.Millisecond
		rule := warmingBucket(limit, period)
		rule.WarmUp.ColdFactor = rapid.Float64Range(1.1, 10).Draw(t, "cold factor")
		l := newTestQueue(t, rule)
		model := newGuava(limit, period.Seconds(), rule.WarmUp.ColdFactor)
		var want []float64
		for range 30 {
			gap := rapid.SampledFrom([]float64{0, 0, 0.1, 0.5, 1, 3, 50}).Draw(t, "gap") / limit
			l.moveTo(l.now.Sub(epoch) + seconds(gap))
			n := rapid.Int32Range(1, 4).Draw(t, "n")
			want = append(want, model.call(l.now.Sub(epoch).Seconds(), float64(n)))
			l.arrive(n)
		}
		l.moveTo(l.now.Sub(epoch) + 24*time.Hour)
		require.Len(t, l.passes, len(want))
		for i, p := range l.passes {
			assert.InDelta(t, want[i], p.at.Seconds(), 1e-6, "pass %d", i)
		}
	})
}

func TestWarmingBucketWithoutPatience(t *testing.T) {
	t.Parallel()
	r := warmingBucket(5, 1500*time.Millisecond)
	r.MaxWait = 0
	l := newTestQueue(t, r)
	assert.Equal(t, rule.Pass, l.arrive(100))
	assert.Equal(t, rule.Block, l.arrive(1))
	wait := l.queue.RetryAfter(l.now, 1, time.Hour)
	l.now = l.now.Add(wait - 1)
	assert.Equal(t, rule.Block, l.arrive(1))
	l.now = l.now.Add(1)
	assert.Equal(t, rule.Pass, l.arrive(1))
}

func TestWarmingBucketOfLimitZero(t *testing.T) {
	t.Parallel()
	l := newTestQueue(t, warmingBucket(0, time.Second))
	assert.Equal(t, rule.Block, l.arrive(1))
	assert.Equal(t, rule.Never, l.queue.RetryAfter(l.now, 1, time.Hour))
	limit, remaining, reset := l.queue.Status(l.now)
	assert.Equal(t, []any{0.0, int64(0), time.Duration(0)}, []any{limit, remaining, reset})
}

// The room is how many calls pass within the time that they may wait, and
// it is one more when it is said to be.
func TestWarmingBucketRemainingIsWhatPasses(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		r := warmingBucket(rapid.Float64Range(0.5, 100).Draw(t, "limit"), 5*time.Second)
		r.MaxWait = time.Duration(rapid.Int64Range(0, int64(3*time.Second)).Draw(t, "max wait"))
		l := newTestQueue(t, r)
		l.call(rapid.IntRange(0, 100).Draw(t, "before"))
		l.moveTo(time.Duration(rapid.Int64Range(0, int64(4*time.Second)).Draw(t, "time")))
		limit, remaining, reset := l.queue.Status(l.now)
		assert.LessOrEqual(t, limit, r.Limit*(1+1e-9))
		assert.GreaterOrEqual(t, limit, r.Limit/3*(1-1e-9))
		if reset > 0 {
			_, later, _ := l.queue.Status(l.now.Add(reset))
			assert.Equal(t, remaining+1, later)
		}
		var passed int64
		for l.queue.Reserve(l.compiled, l.now, 1) == rule.Pass {
			passed++
		}
		assert.Equal(t, remaining, passed)
	})
}

func TestWarmingBucketGiveBack(t *testing.T) {
	t.Parallel()
	cold := []float64{0.000, 0.547, 0.440, 0.333, 0.230, 0.200}
	ones := []int32{1, 1, 1, 1, 1, 1}
	t.Run("as though it had never been", func(t *testing.T) {
		t.Parallel()
		for _, n := range []int32{1, 7, 100} {
			l := newTestQueue(t, warmingBucket(5, 1500*time.Millisecond))
			l.arrive(n)
			l.giveBackLast()
			assert.InDeltaSlice(t, cold, l.waits(ones...), 0.002, "%d tokens", n)
		}
	})
	t.Run("those behind move up", func(t *testing.T) {
		t.Parallel()
		l := newTestQueue(t, warmingBucket(5, 1500*time.Millisecond))
		l.arrive(100)
		l.call(3)
		l.moveTo(100 * time.Millisecond)
		l.giveBackLast()
		l.moveTo(time.Minute)
		require.Len(t, l.passes, 3)
		assert.Equal(t, 100*time.Millisecond, l.times()[0])
		assert.InDelta(t, 0.547, (l.times()[1] - l.times()[0]).Seconds(), 0.002)
	})
	t.Run("one of many", func(t *testing.T) {
		t.Parallel()
		l := newTestQueue(t, warmingBucket(5, 1500*time.Millisecond))
		for range 4 {
			assert.Equal(t, rule.Pass, l.queue.Reserve(l.compiled, l.now, 1))
		}
		_, before, _ := l.queue.Poll(l.now, joined(l))
		other := newTestQueue(t, warmingBucket(5, 1500*time.Millisecond))
		turn, _ := other.queue.Take(other.compiled, other.now, 1)
		for range 4 {
			other.queue.Reserve(other.compiled, other.now, 1)
		}
		other.queue.GiveBack(other.now, turn)
		_, after, _ := other.queue.Poll(other.now, joined(other))
		assert.InDelta(t, before, after, 2, "four have gone")
	})
	t.Run("not the time that has passed", func(t *testing.T) {
		t.Parallel()
		l := newTestQueue(t, warmingBucket(5, 1500*time.Millisecond))
		l.arrive(5)
		l.moveTo(10 * time.Second)
		l.arrive(1)
		l.queue.GiveBack(l.now, l.passes[0].turn)
		limit, _, _ := l.queue.Status(l.now)
		assert.InDelta(t, 5.0/3, limit, 1e-9, "it is no colder than cold")
		assert.Equal(t, rule.Wait, l.arrive(1), "the second is still to be paid")
	})
}

// joined puts a call into the queue.
func joined(l *testQueue) *flow.Waiter {
	w := unwoken()
	_, decision := l.queue.Join(l.compiled, l.now, 1, time.Hour, w)
	require.Equal(l.t, rule.Wait, decision)
	return w
}
