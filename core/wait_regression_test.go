package core_test

import (
	"context"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A waiter arms one timer for its turn. One that armed it anew could miss that
// the clock was moved in between.
func TestAClockThatIsMovedOnceATimerIsArmedEndsTheWait(t *testing.T) {
	for range 500 {
		e, c := newEngine(t, throttle("r", 2, time.Minute))
		require.Equal(t, 1, enter(e, "r", 1))
		passed := make(chan struct{})
		go func() {
			defer close(passed)
			guard, err := e.Entry(context.Background(), "r")
			assert.NoError(t, err)
			guard.Exit()
		}()
		for c.Timers() == 0 {
			runtime.Gosched()
		}
		c.Advance(500 * time.Millisecond)
		select {
		case <-passed:
		case <-time.After(20 * time.Second):
			require.Fail(t, "the wait did not end")
		}
		e.Close()
	}
}
