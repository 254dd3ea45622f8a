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
