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

// Two calls a second are usual. Forty come, so that the limit is reached, and raised, before one more can end.
func TestSurgeOfFewCallsIsSeenByWhatCameBefore(t *testing.T) {
	t.Parallel()
	for name, of := range map[string]struct {
		surge limit.Surge
		want  bool
	}{
		"as many end as usual, and more still come": {limit.Surge{Came: 40, Ended: 4, Usual: 4, Variance: 6, Slower: 4, Still: true}, true},
		"one less ends":         {limit.Surge{Came: 40, Ended: 3, Usual: 4, Variance: 6, Slower: 4, Still: true}, true},
		"hardly a call ends":    {limit.Surge{Came: 40, Ended: 2, Usual: 4, Variance: 6, Slower: 4, Still: true}, false},
		"no more come now":      {limit.Surge{Came: 40, Ended: 4, Usual: 4, Variance: 6, Slower: 4}, false},
		"calls take no longer":  {limit.Surge{Came: 40, Ended: 4, Usual: 4, Variance: 6, Still: true}, false},
		"as many come as usual": {limit.Surge{Came: 5, Ended: 4, Usual: 4, Variance: 6, Slower: 4, Still: true}, false},
	} {
		c := limit.New(20, 1, 1000)
		c.Close(limit.Window{Length: 10 * time.Second, Ends: 20, Ended: 20, Calls: 10, Times: 10, Squares: 10})
		c.Verify(0.5)
		began := clock.Instant(time.Minute)
		c.Reached(began)
		now := began.Add(20 * time.Millisecond)
		c.Arrived()
		_, short := c.Judge(now, 20*time.Millisecond, 100*time.Millisecond, func(clock.Instant) limit.Surge { return of.surge })
		assert.Equal(t, of.want, short, name)
	}
}

// Calls take a second at a limit, and three at twice the limit. Whether the limit is the reason can be said only if it was
// met again before others were under way.
func TestLevelsAreNotComparedOnceTheirCallsHaveBeenReplaced(t *testing.T) {
	t.Parallel()
	for name, of := range map[string]struct {
		after time.Duration // until the limit is reached again
		want  bool
	}{
		"at once":             {100 * time.Millisecond, true},
		"in a response time":  {time.Second, true},
		"in several of them":  {4 * time.Second, false},
		"long after they did": {time.Minute, false},
	} {
		c := limit.New(20, 1, 1000)
		c.Close(limit.Window{Length: time.Second, Ends: 100, Ended: 100, Calls: 1, Times: 1, Squares: 0.02})
		c.Verify(0.1)
		now := clock.Instant(time.Minute)
		c.Reached(now)
		level := func(took time.Duration, ends int) (raised, short bool) {
			began := now
			now = now.Add(took)
			for range ends {
				c.Ended(began, took.Seconds(), 0.1)
			}
			return c.Judge(now, time.Second, time.Second, noMore)
		}
		raised, short := level(time.Second, 20)
		assert.True(t, raised, name)
		assert.False(t, short, name)
		now = now.Add(of.after)
		c.Reached(now)
		_, short = level(3*time.Second, 40)
		assert.Equal(t, of.want, short, name)
	}
}
