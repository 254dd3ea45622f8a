package limit_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/penstock-go/penstock/adaptive/internal/limit"
)

// Calls of seconds end in few of the windows of quick ones: they were under way in the others, too.
func TestWindowsWithoutEndsAreTimeThatCallsTook(t *testing.T) {
	t.Parallel()
	var u limit.Usual
	for i := range 400 { // two calls are under way, of which one ends each second
		w := limit.Window{Length: time.Second / 10, Calls: 0.2}
		if i%10 == 0 {
			w.Ends, w.Ended, w.Times, w.Squares = 1, 1, 2, 4
		}
		u.Observe(w, true)
	}
	assert.InDelta(t, 2, u.Mean(), 0.2)
}

// The variation of one or two calls says nothing.
func TestVariationOfSeldomCallsIsThatOfMany(t *testing.T) {
	t.Parallel()
	var u limit.Usual
	for i := range 2400 {
		took := []float64{0.001, 0.1}[i%2] // seconds
		u.Observe(limit.Window{Length: time.Second, Ends: 1, Ended: 1, Calls: took, Times: took, Squares: took * took}, true)
	}
	assert.InDelta(t, 0.96, u.Variation(), 0.05)
}

// Calls that wait for each other only take longer than usual: if they do not, less is usual.
func TestUsualIsNoLongerThanUnderLimit(t *testing.T) {
	t.Parallel()
	window := func(ends, mean float64) limit.Window {
		return limit.Window{Length: time.Second, Ends: ends, Ended: ends, Calls: ends * mean, Times: ends * mean, Squares: 2 * ends * mean * mean}
	}
	for name, of := range map[string]struct {
		w    limit.Window
		want float64
	}{
		"shorter":          {window(100, 0.001), 0.001},
		"shorter of a few": {window(7, 0.001), 0.01},
		"as usual":         {window(100, 0.01), 0.01},
		"longer":           {window(100, 0.1), 0.01},
	} {
		var u limit.Usual
		for range 100 { // calls that take equally long
			w := window(100, 0.01)
			w.Squares /= 2
			u.Observe(w, true)
		}
		for range 3 {
			u.Observe(of.w, false)
		}
		assert.InDelta(t, of.want, u.Mean(), of.want/100, name)
	}
	var varied limit.Usual
	varied.Observe(window(100, 0.01), true)
	for range 3 {
		varied.Observe(window(100, 0.0085), false)
	}
	assert.InDelta(t, 0.01, varied.Mean(), 0.0001, "less by chance")
}
