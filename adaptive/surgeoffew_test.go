package adaptive

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/clock"
)

// Four calls a second come, each of which takes half a second. After forty seconds more of them come, or each takes longer.
func TestMoreOfFewCallsAreASurgeIfTheyCameBeforeCallsTookLonger(t *testing.T) {
	t.Parallel()
	for _, of := range []struct {
		name    string
		rate    func(after time.Duration) int // calls in a second
		workers int
		took    time.Duration
		surged  bool
	}{
		{"five times as many, for four workers", func(time.Duration) int { return 20 }, 4, 500 * time.Millisecond, true},
		{"as many, each of which takes ten times as long", func(time.Duration) int { return 4 }, 1000, 5 * time.Second, false},
		{"more, because each takes longer", func(after time.Duration) int {
			if after < 1100*time.Millisecond {
				return 4
			}
			return 40
		}, 1000, 2 * time.Second, false},
	} {
		c, now := new(class), clock.Instant(time.Minute)
		c.usual.Set(0.5, 100)
		began := now.Add(40 * time.Second)
		var waiting, ends []clock.Instant // when calls came that wait for a worker, and when those end that do not
		for i := 0; !c.recent.slow && now < began.Add(20*time.Second); i++ {
			now = now.Add(5 * time.Millisecond)
			rate, workers, took := 4, 1000, 500*time.Millisecond
			if now >= began {
				rate, workers, took = of.rate(now.Sub(began)), of.workers, of.took
			}
			for len(ends) > 0 && ends[0] <= now {
				ends = ends[1:]
				c.end(took, false, 0, time.Hour)
				c.leave(now)
			}
			if i%(200/rate) == 0 {
				c.resume(now)
				waiting = append(waiting, now)
			}
			for len(waiting) > 0 && len(ends) < workers {
				waiting, ends = waiting[1:], append(ends, now.Add(took))
			}
			if i%20 == 0 {
				c.observe(now, true)
			}
		}
		require.True(t, c.recent.slow, of.name)
		assert.Equal(t, of.surged, c.recent.surged, of.name)
	}
}
