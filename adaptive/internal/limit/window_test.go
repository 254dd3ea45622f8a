package limit_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/penstock-go/penstock/adaptive/internal/limit"
)

func TestCallsThatFailedQuicklyAreNoMeasureOfTheOthers(t *testing.T) {
	t.Parallel()
	w := limit.Window{Length: time.Second, Ends: 30, Ended: 30, Failed: 10, Calls: 1.01, Times: 1.01, Quick: 10, QuickTimes: 0.01}
	good := w.WithoutQuick()
	assert.InDelta(t, 0.05, good.Calls/good.Ends, 1e-9)
	assert.InDelta(t, 20, good.Ended, 0)
	assert.Zero(t, good.Failed)
	assert.Equal(t, good, good.WithoutQuick())
}

func TestCallsThatFailLateTakeLongerThanThoseThatDoNot(t *testing.T) {
	t.Parallel()
	// The mean response time in seconds of so many calls that failed, and of so many that did not.
	of := func(failed, lost, good, took float64) limit.Window {
		n, sum := failed+good, failed*lost+good*took
		return limit.Window{
			Length: time.Second, Ends: n, Ended: n, Failed: failed, Calls: sum, Times: sum, Lost: failed * lost,
			Squares: 2 * (failed*lost*lost + good*took*took),
		}
	}
	var none limit.Window
	assert.True(t, of(20, 1, 20, 0.2).FailsLate(none), "clients give up")
	assert.False(t, of(20, 0.2, 20, 0.2).FailsLate(none), "they fail for another reason")
	assert.False(t, of(20, 0.3, 20, 0.2).FailsLate(none), "it may be chance")
	assert.True(t, of(200, 0.3, 200, 0.2).FailsLate(none), "it is not")
	assert.True(t, of(20, 0.2, 2, 0.2).FailsLate(none), "too few did not fail")
	assert.False(t, of(20, 0.2, 2, 0.2).FailsLate(of(20, 0.2, 2, 0.2)), "of both windows enough did not")
	assert.False(t, of(20, 0.2, 20, 0.2).FailsLate(of(20, 0.01, 20, 0.01)), "the present window is enough")
	late := of(20, 1, 20, 0.2)
	quick := limit.Window{Ends: 100, Ended: 100, Failed: 100, Times: 0.1, Lost: 0.1, Quick: 100, QuickTimes: 0.1}
	assert.True(t, late.Plus(quick).FailsLate(none), "others fail quickly")
}
