package clock_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"go.uber.org/goleak"

	"github.com/penstock-go/penstock/clock"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// fired receives from the channel of a timer without waiting.
func fired(timer clock.Timer) (time.Time, bool) {
	select {
	case at := <-timer.C():
		return at, true
	default:
		return time.Time{}, false
	}
}

func assertFired(t *testing.T, timer clock.Timer, msg string) {
	t.Helper()
	_, ok := fired(timer)
	assert.True(t, ok, msg)
}

func assertSilent(t *testing.T, timer clock.Timer, msg string) {
	t.Helper()
	_, ok := fired(timer)
	assert.False(t, ok, msg)
}
