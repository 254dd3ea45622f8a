package adaptive

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/penstock-go/penstock/clock"
)

// A class whose calls take long has one call that waits, another one has many: it is of those that one
// has to go, whatever the work of a call is.
func TestOnlyCallThatWaitsOfItsClassIsNotTheOneThatGivesWay(t *testing.T) {
	t.Parallel()
	var q queue
	limit := &queueLimit{}
	limit.configure(0.01, 1, 100, 0, time.Second)
	long, short := &class{name: "long", weight: 2}, &class{name: "short", weight: 0.3}
	for i, c := range []*class{short, long, short, short, short} {
		q.push(&waiter{class: c}, after(i), limit)
	}
	for range 3 {
		w := q.last(0)
		assert.Equal(t, "short", w.class.name)
		q.remove(w, after(10), limit)
	}
	assert.Equal(t, 1, long.queued)
	assert.Equal(t, 1, short.queued)
}

// Classes get equal shares of work, but none less than what is usual of it.
func TestClassesGetNoLessThanTheirUsualShare(t *testing.T) {
	t.Parallel()
	var q queue
	limit := &queueLimit{}
	limit.configure(0.01, 1, 100, 0, time.Second)
	usual, other := &class{name: "usual", weight: 1, share: 3}, &class{name: "other", weight: 1, share: 1}
	for i := range 80 {
		q.push(&waiter{class: usual}, after(i), limit)
		q.push(&waiter{class: other}, after(i), limit)
	}
	passed := map[string]int{}
	for range 80 {
		w := q.next()
		q.take(w)
		q.remove(w, after(100), limit)
		passed[w.class.name]++
	}
	assert.InDelta(t, 60, passed["usual"], 2)
}

// When calls begin to take forty times as long, or a fortieth, a queue that has been full, or half of the time, has been so
// for as large a part of the time that counts then.
func TestQueueThatStandsDoesSoWhenCallsTakeLonger(t *testing.T) {
	t.Parallel()
	limit := &queueLimit{}
	limit.configure(0.005, 1, 1600, 0, time.Minute)
	full := [levels]int{levels - 1: 1000}
	limit.advance(time.Second, &full)
	assert.True(t, limit.over())
	limit.configure(0.2, 1, 50, 0, time.Minute)
	assert.True(t, limit.over(), "longer")

	limit.advance(5*time.Second, &[levels]int{})
	assert.False(t, limit.over())
	limit.configure(0.005, 1, 1600, 0, time.Minute)
	assert.False(t, limit.over(), "shorter")
	assert.False(t, limit.calm(), "shorter")
}

func after(ms int) clock.Instant {
	return clock.Instant(time.Hour + time.Duration(ms)*time.Millisecond)
}

// A class that was not called for long is usually called seldom, not less than never.
func TestUsualRateOutlastsAPause(t *testing.T) {
	t.Parallel()
	c := &class{weight: 1}
	c.group.Store(new(group))
	c.seen = c.read(after(0))
	for i := range 50 {
		c.resume(after(i * 100))
		c.leave(after(i*100 + 50))
		c.end(50*time.Millisecond, false, 0, time.Second)
		c.observe(after(i*100+100), true)
	}
	assert.InDelta(t, 10, c.recent.rate, 0.5)
	c.observe(after(600_000), true)
	assert.InDelta(t, 0, c.recent.rate, 0.01)
	assert.GreaterOrEqual(t, c.recent.rate, 0.)
	assert.GreaterOrEqual(t, c.recent.held, 0.)
}

// Calls of a millisecond wait for places that those of half a second hold: the shortest queue lasts until one of these
// is about to be free.
func TestShortestQueueLastsUntilTheNextCallEnds(t *testing.T) {
	t.Parallel()
	s := newSharedScene(t, 20)
	g := s.shared.groups[0]
	s.of("short").class.usual.Set(0.001, 100)
	s.of("long").class.usual.Set(0.5, 100)
	s.of("short").class.did.Calls = 5
	s.of("long").class.did.Calls = 15
	shortest := func() time.Duration {
		g.control.Verify(0.001)
		g.apply(s.now)
		return g.queueLimit.shortest
	}
	g.control.SetClasses(1)
	assert.Equal(t, 500*time.Microsecond, shortest(), "all calls are alike: half a baseline")
	g.control.SetClasses(2)
	mean := (5*0.001 + 15*0.5) / 20
	assert.InDelta(t, mean/20, shortest().Seconds(), 1e-6, "one of twenty ends after so long")
	s.of("long").class.did.Calls = 0
	assert.Equal(t, 500*time.Microsecond, shortest(), "all that are under way are short")
}
