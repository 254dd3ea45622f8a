package limit_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/penstock-go/penstock/adaptive/internal/limit"
	"github.com/penstock-go/penstock/clock"
)

func TestSurgeIsDemandIfMoreCallsCameAndNoFewerEnded(t *testing.T) {
	usual := limit.Surge{Usual: 20, Variance: 20}
	for _, c := range []struct {
		name        string
		came, ended float64
		want        bool
	}{
		{"as many as usual", 20, 20, false},
		{"a few more", 30, 22, false},
		{"clearly more, and workers do what they can", 60, 30, true},
		{"clearly more, of which hardly any ended: a slow dependency whose clients ask again", 60, 10, false},
	} {
		s := usual
		s.Came, s.Ended = c.came, c.ended
		assert.Equal(t, c.want, s.IsDemand(), c.name)
	}
}

// Calls take twice as long as usual once 60 have come at once, where a hundred a second are usual. If no more come than
// usual after that, they are only to be done.
func TestBurstThatIsOverIsNoShortage(t *testing.T) {
	t.Parallel()
	surge := func(clock.Instant) limit.Surge {
		return limit.Surge{Came: 80, Ended: 20, Usual: 20, Variance: 20, Growth: 5, Slower: 2}
	}
	for name, of := range map[string]struct {
		interval time.Duration // between calls after the burst
		want     bool
	}{
		"a burst":        {10 * time.Millisecond, false},
		"more keep on":   {2 * time.Millisecond, true},
		"none comes now": {time.Hour, false},
	} {
		c := limit.New(20, 1, 1000)
		c.Close(limit.Window{Length: time.Second, Ends: 100, Ended: 100, Calls: 1, Times: 1, Squares: 0.02})
		c.Verify(0.01)
		began := clock.Instant(time.Minute)
		c.Reached(began)
		for range 60 {
			c.Arrived()
		}
		found := false
		for after := time.Millisecond; after < 50*time.Millisecond; after += time.Millisecond {
			now := began.Add(after)
			if after%of.interval == 0 {
				c.Arrived()
			}
			c.Ended(began, 0.02, 0.01)
			_, short := c.Judge(now, after, 100*time.Millisecond, surge)
			found = found || short
		}
		assert.Equal(t, of.want, found, name)
	}
}
