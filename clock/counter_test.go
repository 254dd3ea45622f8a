package clock

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
)

// skipWithoutCounter skips tests of the counter where there is none.
func skipWithoutCounter(t *testing.T) {
	t.Helper()
	if !hasCounter() {
		t.Skip("the kernel does not keep time by a counter that this package can read")
	}
}

func TestSystemReadsTheCounterThatTheKernelReads(t *testing.T) {
	t.Parallel()
	skipWithoutCounter(t)
	assert.IsType(t, &counterClock{}, System())
}

func TestTimeStandsStillInABubbleWhateverTheCounterDoes(t *testing.T) {
	t.Parallel()
	skipWithoutCounter(t)
	synctest.Test(t, func(t *testing.T) {
		c := System()
		assert.IsType(t, &system{}, c)
		before := c.Now()
		for begin := ticks(); ticks()-begin < 2*period; {
			assert.Equal(t, before, c.Now())
		}
	})
}

// In a bubble the system says that it is the year 2000.
func TestClockFromOutsideDoesNotGoBackInABubble(t *testing.T) {
	t.Parallel()
	skipWithoutCounter(t)
	c := System()
	last := c.Now()
	synctest.Test(t, func(t *testing.T) {
		for begin := ticks(); ticks()-begin < 4*period; {
			now := c.Now()
			assert.GreaterOrEqual(t, now, last)
			last = now
		}
	})
	for begin := ticks(); ticks()-begin < 2*period; {
		now := c.Now()
		assert.GreaterOrEqual(t, now, last)
		last = now
	}
	assert.WithinDuration(t, time.Now(), c.Now().Time(), time.Second)
}

// A processor may read its counter before that of another one that has just begun a line.
func TestLineThatHasJustBegunIsNotRenewed(t *testing.T) {
	t.Parallel()
	skipWithoutCounter(t)
	c := newCounterClock(newSystem())
	for {
		begun := *c.line.Load()
		begun.ticks = ticks() + skew/2
		c.line.Store(&begun)
		now, present := c.Now(), c.line.Load()
		if ticks() >= begun.ticks {
			continue // the thread was interrupted until the line had begun
		}
		assert.Equal(t, begun.at, now)
		assert.Same(t, &begun, present)
		return
	}
}
