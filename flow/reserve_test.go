package flow_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"pgregory.net/rapid"

	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/rule"
)

// queues are rules that may make calls wait, of every kind.
func queues(maxWait time.Duration) map[string]flow.Rule {
	warm := throttle(10, maxWait)
	warm.WarmUp.Period = 10 * time.Second
	return map[string]flow.Rule{
		"throttle":         throttle(10, maxWait),
		"warming throttle": warm,
		"bucket":           patient(bucket(10, 6), maxWait),
		"overdraft":        patient(overdraft(10, 3), maxWait),
		"warming bucket":   patient(warmingBucket(10, 10*time.Second), maxWait),
	}
}

// What a rule that only pretends would do is what it does.
func TestReserveDecidesLikeJoin(t *testing.T) {
	t.Parallel()
	for name, r := range queues(time.Second) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rapid.Check(t, func(t *rapid.T) {
				l := newTestQueue(t, r)
				pretended := flow.NewQueue(l.compiled, epoch)
				for range 50 {
					l.moveTo(l.now.Sub(epoch) + time.Duration(rapid.IntRange(0, 400).Draw(t, "ms"))*time.Millisecond)
					n := rapid.Int32Range(1, 3).Draw(t, "n")
					want := rule.Pass
					if l.arrive(n) == rule.Block {
						want = rule.Block
					}
					if name == "warming throttle" {
						// Who waits is planned with the effective limit at which it becomes the
						// first; a turn with that of the present.
						pretended.Reserve(l.compiled, l.now, n)
						continue
					}
					assert.Equal(t, want, pretended.Reserve(l.compiled, l.now, n))
				}
				assert.NoError(t, pretended.CheckWaiters(0))
			})
		})
	}
}

func TestReserveOfAnOlderVersionIsStale(t *testing.T) {
	t.Parallel()
	l := newTestQueue(t, throttle(10, time.Second))
	old := l.compiled
	l.change(func(r *flow.Rule) { r.Limit = 20 })
	assert.Equal(t, rule.Stale, l.queue.Reserve(old, l.now, 1))
	l.queue.Retire()
	assert.Equal(t, rule.Stale, l.queue.Reserve(l.compiled, l.now, 1))
}

// A rule that becomes a shadow lets everyone go; one that ceases to be one goes
// on behind the turns.
func TestWaitersPassAfterTurns(t *testing.T) {
	t.Parallel()
	for name, of := range queues(time.Minute) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newTestQueue(t, of)
			l.arrive(6)
			l.call(3)
			l.moveTo(10 * time.Millisecond)
			l.change(func(r *flow.Rule) { r.Shadow = true })
			for _, c := range l.waiting {
				assert.Len(t, c.woken, 1)
			}
			l.moveTo(20 * time.Millisecond)
			assert.Equal(t, []int{0, 1, 2, 3}, l.ids())
			assert.Equal(t, 10*time.Millisecond, l.times()[3])

			for range 5 {
				assert.Equal(t, rule.Pass, l.queue.Reserve(l.compiled, l.now, 1))
			}
			l.change(func(r *flow.Rule) { r.Shadow = false })
			assert.Equal(t, rule.Wait, l.arrive(1))
			_, until, _ := l.queue.Poll(l.now, l.waiting[0].waiter)
			assert.Greater(t, until, 500*time.Millisecond)
			l.moveTo(time.Minute)
			assert.NoError(t, l.queue.CheckWaiters(0))
		})
	}
}

func TestReserveLetsWaitersPass(t *testing.T) {
	t.Parallel()
	for name, r := range queues(time.Minute) {
		l := newTestQueue(t, r)
		l.arrive(6)
		l.call(3)
		assert.Equal(t, rule.Pass, l.queue.Reserve(l.compiled, l.now, 1))
		l.moveTo(0)
		assert.Len(t, l.passes, 4, name)
		assert.NoError(t, l.queue.CheckWaiters(0))
	}
}
