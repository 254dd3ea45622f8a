package sleep_test

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/core/internal/sleep"
)

func newSleepers() *sleep.Sleepers {
	l := new(sleep.Sleepers)
	l.Init(clock.System())
	return l
}

func TestWaitsEndInTimeOrWithTheirContextOrWithAllOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newSleepers()
		begun := time.Now()
		assert.NoError(t, l.Until(t.Context(), clock.System().Now().Add(time.Second)))
		assert.Equal(t, time.Second, time.Since(begun))

		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, cancel)
		assert.ErrorIs(t, l.Until(ctx, clock.System().Now().Add(time.Hour)), context.Canceled)

		time.AfterFunc(time.Second, l.WakeAll) // an instant is waited for, whoever is woken
		time.AfterFunc(2*time.Second, l.Close)
		assert.ErrorIs(t, l.Until(t.Context(), clock.System().Now().Add(time.Hour)), sleep.ErrClosed)
		assert.Equal(t, 4*time.Second, time.Since(begun))
		assert.ErrorIs(t, l.Until(t.Context(), clock.System().Now().Add(time.Hour)), sleep.ErrClosed, "a later one")
	})
}

func TestWhoHasNotLookedSinceAllWereWokenDoesNotWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, s := newSleepers(), sleep.New()
		version, begun := l.Version(), time.Now()
		l.WakeAll()
		assert.NoError(t, l.Pause(t.Context(), clock.System().Now(), time.Hour, s, version))
		s.Wake() // before it waits
		assert.NoError(t, l.Pause(t.Context(), clock.System().Now(), time.Hour, s, l.Version()))
		assert.Zero(t, time.Since(begun))
	})
}

func TestWhatIsKeptRunningBeginsAnewWhenItPanics(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var running sleep.Goroutines
		var runs atomic.Int32
		told := make(chan any, 9)
		running.Keep(func() {
			if runs.Add(1) < 3 {
				panic("a mistake")
			}
		}, func(panicked any) { told <- panicked })
		running.Wait()
		assert.EqualValues(t, 3, runs.Load())
		assert.Len(t, told, 2)
	})
}
