package limit_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/adaptive/internal/limit"
	"github.com/penstock-go/penstock/clock"
)

// More calls come than usual, and fewer end: that may be a slow dependency, unless what can run waits for
// a processor.
func TestMoreCallsAreAShortageWhileTheProcessIsShortOfProcessors(t *testing.T) {
	t.Parallel()
	surge := limit.Surge{Came: 60, Ended: 10, Usual: 25, Variance: 25, Growth: 5, Within: 250 * time.Millisecond}
	for _, of := range []struct {
		name      string
		processor limit.Processor
		change    func(*limit.Surge)
		isShort   bool
	}{
		{"nothing is known", limit.ProcessorUnknown, func(*limit.Surge) {}, false},
		{"processors are idle", limit.ProcessorIdle, func(*limit.Surge) {}, false},
		{"processors are busy", limit.ProcessorBusy, func(*limit.Surge) {}, false},
		{"short of processors", limit.ProcessorShort, func(*limit.Surge) {}, true},
		{"a burst that is over", limit.ProcessorShort, func(s *limit.Surge) { s.Growth = 0 }, false},
		{"no more calls than usual", limit.ProcessorShort, func(s *limit.Surge) { s.Came = 28 }, false},
	} {
		c, now := surgeTest(t)
		c.SetProcessor(of.processor, 0.12)
		s := surge
		of.change(&s)
		_, isShort := c.Judge(now, 10*time.Millisecond, 100*time.Millisecond, func(clock.Instant) limit.Surge { return s })
		assert.Equal(t, of.isShort, isShort, of.name)
		if isShort {
			assert.Equal(t, limit.Shortage{By: limit.ByProcessor, Calls: 60, Of: 25, Within: 250 * time.Millisecond, Delay: 0.12}, c.Shortage())
		}
	}
}

// limitedTo returns a control that has limited a service to a few calls while the process stood like this
// with its processors.
func limitedTo(t *testing.T, few float64, p limit.Processor) *limit.Control {
	t.Helper()
	c, now := surgeTest(t)
	c.SetProcessor(p, 0.12)
	c.Enforce(now)
	c.Begin(few)
	require.True(t, c.Limited())
	return c
}

// A limit that a disturbance has made far too low leaves processors idle: it is raised, and no probe lowers
// it further.
func TestALimitIsRaisedWhileProcessorsAreIdle(t *testing.T) {
	t.Parallel()
	of := service{workers: 8, time: 0.01}
	c := limitedTo(t, 2, limit.ProcessorShort)
	c.SetProcessor(limit.ProcessorIdle, 0.001)
	for range 6 {
		before := c.Limit()
		of.close(c, 1)
		assert.GreaterOrEqual(t, c.Limit(), before)
	}
	assert.Greater(t, c.Limit(), 6.)
}

// What was not short of processors when it was limited is short of something else: that they are idle
// says nothing of it. A higher limit stays only if more is done.
func TestIdleProcessorsRaiseNoOtherLimit(t *testing.T) {
	t.Parallel()
	of := service{workers: 8, time: 0.01}
	for _, at := range []limit.Processor{limit.ProcessorIdle, limit.ProcessorShort} {
		c := limitedTo(t, 8, at)
		c.SetProcessor(limit.ProcessorIdle, 0.001)
		assert.InDelta(t, 9, of.usual(c), 2)
	}
}

// Clients give up in an overload: once they do not, the limit stays, as it was no outage that is over. The
// limit of an outage is that which was right before, and not that of a test.
func TestNoLimitIsRestoredAfterAnOverload(t *testing.T) {
	t.Parallel()
	late := limit.Window{Length: 100 * time.Millisecond, Ends: 20, Ended: 20, Failed: 20, Late: 20, Calls: 16, Times: 4, Squares: 0.8}
	good := limit.Window{
		Length: 100 * time.Millisecond, Ends: 20, Ended: 20, Calls: 1, Times: 0.2, Squares: 0.004, Full: 100 * time.Millisecond,
	}
	for _, of := range []struct {
		processor limit.Processor
		want      float64
	}{{limit.ProcessorShort, 5}, {limit.ProcessorUnknown, 20}} {
		c, _ := surgeTest(t)
		c.SetProcessor(of.processor, 0.12)
		c.Close(late)
		c.Close(late)
		require.InDelta(t, 5, c.Limit(), 1e-9)
		c.Close(good)
		assert.InDelta(t, of.want, c.Limit(), 1e-9)
	}

	c, _ := surgeTest(t)
	require.InDelta(t, 20, c.Limit(), 1e-9)
	c.Begin(80) // as a test does
	c.Close(late)
	c.Close(good)
	assert.InDelta(t, 20, c.Limit(), 1e-9)
}

// What was known of all resources together is mostly about those that take long.
func TestALimitIsNoMoreThanPlentyForTheResourcesThatAreLeft(t *testing.T) {
	t.Parallel()
	c := limitedTo(t, 50, limit.ProcessorShort)
	c.Usually(4)
	assert.InDelta(t, 12, c.Limit(), 1e-9)
	c.Usually(100)
	assert.InDelta(t, 12, c.Limit(), 1e-9)

	c = limitedTo(t, 50, limit.ProcessorUnknown) // it may be a burst, which would not be let through
	c.Usually(4)
	assert.InDelta(t, 50, c.Limit(), 1e-9)
}

// What was limited for another reason may be short of processors later: then the limit is too high.
func TestALimitAtWhichTheProcessIsShortOfProcessorsIsLowered(t *testing.T) {
	t.Parallel()
	c := limitedTo(t, 50, limit.ProcessorUnknown)
	c.SetProcessor(limit.ProcessorShort, 0.12)
	c.Close(service{workers: 8, time: 0.01}.window(c, time.Second, 1))
	c.Usually(4)
	assert.InDelta(t, 12, c.Limit(), 1e-9)
}
