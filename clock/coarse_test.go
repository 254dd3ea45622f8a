package clock_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/penstock-go/penstock/clock"
)

func TestCoarseIsReadAtIntervals(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := clock.NewCoarse(t.Context(), 10*time.Millisecond)
		exact := clock.System()
		start := c.Now()
		assert.Equal(t, exact.Now(), start)
		time.Sleep(9 * time.Millisecond)
		assert.Equal(t, start, c.Now())
		time.Sleep(3 * time.Millisecond)
		assert.Equal(t, start.Add(10*time.Millisecond), c.Now())
		time.Sleep(time.Second)
		assert.Equal(t, start.Add(1010*time.Millisecond), c.Now())
		assert.Equal(t, 500*time.Millisecond, c.Until(time.Now().Add(500*time.Millisecond)), "deadlines are exact")
	})
}

func TestCoarseClockIsExactOnceItsContextHasEnded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		c := clock.NewCoarse(ctx, 0)
		time.Sleep(500 * time.Microsecond)
		cancel()
		synctest.Wait()
		exact := clock.System()
		assert.Equal(t, exact.Now(), c.Now())
		time.Sleep(123)
		assert.Equal(t, exact.Now(), c.Now())
	})
}

func TestCoarseNeverGoesBack(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	c := clock.NewCoarse(ctx, time.Microsecond)
	var readers sync.WaitGroup
	for range 8 {
		readers.Go(func() {
			last := c.Now()
			for range 20_000 {
				now := c.Now()
				if now < last {
					t.Errorf("%d after %d", now, last)
					return
				}
				last = now
			}
		})
	}
	cancel()
	readers.Wait()
}
