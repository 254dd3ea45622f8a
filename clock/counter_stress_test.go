package clock

import (
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
)

func TestTimeStandsStillInABubbleWhateverTheCounterDoes(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := System()
		assert.IsType(t, &system{}, c)
		before := c.Now()
		for begin := ticks(); hasCounter() && ticks()-begin < period; {
			assert.Equal(t, before, c.Now())
		}
	})
}

func TestSystemReadsTheCounterThatTheKernelReads(t *testing.T) {
	t.Parallel()
	if !hasCounter() {
		t.Skip("the kernel does not keep time by a counter that this package can read")
	}
	assert.IsType(t, &counterClock{}, System())
}

func TestCounterClockIsThatOfTheSystemForEveryGoroutine(t *testing.T) {
	t.Parallel()
	if !hasCounter() {
		t.Skip("the kernel does not keep time by a counter that this package can read")
	}
	const (
		goroutines = 8
		readings   = 300_000
		inexact    = 50 * time.Microsecond
	)
	s := newSystem()
	c := newCounterClock(s)
	var wg sync.WaitGroup
	for range goroutines {
		wg.Go(func() {
			last := Instant(0)
			for range readings {
				before := s.Now()
				now := c.Now()
				after := s.Now()
				if now < last || now < before.Add(-inexact) || now > after.Add(inexact) {
					t.Errorf("%d is not from %d to %d, and after %d", now, before, after, last)
					return
				}
				last = now
			}
		})
	}
	wg.Wait()
}
