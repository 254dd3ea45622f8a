package limit_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/penstock-go/penstock/adaptive/internal/limit"
	"github.com/penstock-go/penstock/clock"
)

// While calls pile up, or most fail, response times are not those of calls that do not disturb each other.
func TestWhatIsUsualIsNotLearntWhileCallsPileUp(t *testing.T) {
	t.Parallel()
	steady := limit.Window{Length: 2 * time.Second, Ends: 200, Ended: 200, Calls: 20, Times: 20, Squares: 4}
	growing, failing := steady, steady
	growing.Calls, growing.Growth = 100, 150
	failing.Calls, failing.Failed = 100, 150
	var u limit.Usual
	u.Observe(steady, false)
	for _, w := range []limit.Window{growing, failing} {
		u.Observe(w, true)
		assert.False(t, u.Verified())
	}
	u.Observe(steady, true)
	assert.True(t, u.Verified())
	assert.InDelta(t, 0.1, u.Mean(), 1e-9)
}

func TestCallsOfWhichTooFewDidNotFailSayNothing(t *testing.T) {
	t.Parallel()
	for name, of := range map[string]struct {
		w     limit.Window
		mean  float64
		known bool
	}{
		"half of them fail":   {limit.Window{Ended: 20, Failed: 10, Times: 6, Lost: 5}, 0.1, true},
		"nearly all of them":  {limit.Window{Ended: 20, Failed: 18, Times: 6, Lost: 5}, 0.5, false},
		"all of them":         {limit.Window{Ended: 20, Failed: 20, Times: 6, Lost: 6}, 0, true},
		"none has ended":      {limit.Window{}, 0, false},
		"quick failures only": {limit.Window{Ended: 20, Failed: 10, Times: 2, Lost: 1, Quick: 10, QuickTimes: 1}.WithoutQuick(), 0.1, true},
	} {
		mean, known := of.w.Good()
		assert.Equal(t, of.known, known, name)
		assert.InDelta(t, of.mean, mean, 1e-9, name)
	}
}

// When the first eight calls ended, ten a second did and took half a second. A service that is short does no more
// however many are let in; one that only takes longer, or that has only begun, is not short.
func TestServiceThatIsShortFromItsStartIsSeenByItsFirstCalls(t *testing.T) {
	t.Parallel()
	noSurge := func(clock.Instant) limit.Surge { return limit.Surge{} }
	for name, of := range map[string]struct {
		came, ends int
		took       float64
		want       bool
	}{
		"as much is done, and calls take four times as long":    {80, 20, 2, true},
		"as much is done, and as many come":                     {20, 20, 2, false},
		"calls take as long as at first":                        {80, 20, 0.5, false},
		"four times as much is done":                            {160, 80, 2, false},
		"far less is done: it is slow for another reason":       {80, 8, 2, false},
		"hardly a call has ended, which may be so only by luck": {80, 7, 2, false},
	} {
		c := limit.New(20, 1, 1000)
		c.Close(limit.Window{Length: 800 * time.Millisecond, Ends: 8, Ended: 8, Calls: 4, Times: 4, Squares: 2})
		now := clock.Instant(time.Minute)
		c.Reached(now)
		for range of.came {
			c.Arrived()
		}
		for range of.ends {
			c.Ended(now, of.took, 0.5)
		}
		_, short := c.Judge(now.Add(2*time.Second), time.Second, time.Second, noSurge)
		assert.Equal(t, of.want, short, name)
	}
}
