package limit_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/adaptive/internal/limit"
	"github.com/penstock-go/penstock/clock"
)

// shownByLimits returns a control that an experiment has had be limited, while forty calls were under way that took 40 ms.
func shownByLimits(t *testing.T) *limit.Control {
	t.Helper()
	c, now := limit.New(20, 1, 1000), clock.Instant(time.Minute)
	c.Reached(now)
	short := false
	for range 1000 {
		took := 0.001 * c.Limit()
		now = now.Add(time.Millisecond)
		c.Ended(now, took, 0.010)
		if _, short = c.Judge(now, 10*time.Millisecond, 100*time.Millisecond, noMore); short {
			break
		}
	}
	require.True(t, short)
	require.Equal(t, limit.ByLimits, c.Shortage().By)
	c.Close(since(400, 40, 0.040))
	c.Enforce(now)
	require.True(t, c.Limited())
	return c
}

// since is a window in which so many calls ended, of those that were under way, which took so long.
func since(ends, calls, took float64) limit.Window {
	length := took * ends / calls
	return limit.Window{
		Length: time.Duration(length * float64(time.Second)), Ends: ends, Ended: ends, Calls: calls * length, Times: ends * took,
		Squares: ends * took * took, Full: time.Duration(length * float64(time.Second)), AtLimit: true,
	}
}

// An experiment has shown a shortage. If calls that began since then take as long though far fewer are under way, what they
// wait for has become slow.
func TestLimitIsLiftedWhereFewerCallsTakeAsLong(t *testing.T) {
	t.Parallel()
	late := since(400, 20, 0.040)
	late.Late = 1
	for name, of := range map[string]struct {
		windows []limit.Window
		want    bool
	}{
		"as long":                           {[]limit.Window{since(40, 20, 0.040), since(400, 20, 0.040)}, true},
		"as long, but they began before":    {[]limit.Window{since(40, 20, 0.040)}, false},
		"half as long":                      {[]limit.Window{since(40, 20, 0.020), since(400, 20, 0.020)}, false},
		"in between":                        {[]limit.Window{since(40, 20, 0.030), since(400, 20, 0.029)}, false},
		"hardly fewer calls":                {[]limit.Window{since(40, 35, 0.040), since(400, 35, 0.040)}, false},
		"some gave up, whose work remains":  {[]limit.Window{late, since(40, 20, 0.040), since(400, 20, 0.040)}, false},
		"long again, after it was as short": {[]limit.Window{since(40, 20, 0.020), since(400, 20, 0.020), since(400, 20, 0.040)}, false},
	} {
		c := shownByLimits(t)
		for _, w := range of.windows {
			c.Close(w)
		}
		assert.Equal(t, of.want, !c.Limited(), name)
		if of.want {
			assert.Greater(t, c.Limit(), 80., name)
			assert.InDelta(t, 0.040, c.Baseline(), 0.001, name)
		}
	}
}

// While the process is short of processors, they are what calls wait for.
func TestLimitThatAnExperimentHasShownStaysWhileTheProcessIsShortOfProcessors(t *testing.T) {
	t.Parallel()
	c := shownByLimits(t)
	c.SetProcessor(limit.ProcessorShort, 0.2)
	for range 5 {
		c.Close(since(400, 20, 0.040))
	}
	assert.True(t, c.Limited())
}
