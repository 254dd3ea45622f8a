package limit_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

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

// The first calls of a resource that went apart are known as those of a whole service are, though they came while others
// had the limit.
func TestResourceThatIsShortFromItsStartIsSeenByItsFirstCalls(t *testing.T) {
	t.Parallel()
	var u limit.Usual
	u.Observe(limit.Window{Length: 400 * time.Millisecond, Calls: 2}, false)
	u.Observe(limit.Window{Length: 400 * time.Millisecond, Ends: 8, Ended: 8, Calls: 2, Times: 4, Squares: 2}, false)
	c, now := limit.New(20, 1, 1000), clock.Instant(time.Minute)
	c.Adopt(&u, 20)
	c.Reached(now)
	for range 80 {
		c.Arrived()
	}
	for range 20 {
		c.Ended(now, 2, 0.5)
	}
	_, short := c.Judge(now.Add(2*time.Second), time.Second, time.Second, func(clock.Instant) limit.Surge { return limit.Surge{} })
	assert.True(t, short, "as much is done as at first, and calls take four times as long")
}

// Clients give up if most calls of late fail late, however many did not before.
func TestClientsGiveUpIfMostCallsOfLateFailLate(t *testing.T) {
	t.Parallel()
	for name, of := range map[string]struct {
		good, late int
		want       bool
	}{
		"most fail of late":               {100, 9, true},
		"too few to say":                  {100, 7, false},
		"fewer than ended well of late":   {15, 10, false},
		"more than ended well altogether": {15, 16, true},
	} {
		c, now := limit.New(20, 1, 1000), clock.Instant(time.Minute)
		c.Reached(now)
		for range of.good {
			c.Ended(now, 0.1, 0)
		}
		for range of.late {
			c.FailedLate()
		}
		_, short := c.Judge(now.Add(time.Second), time.Second, time.Second, func(clock.Instant) limit.Surge { return limit.Surge{} })
		assert.Equal(t, of.want, short && c.GivenUp(), name)
	}
}

// As long as nothing is known but the first calls, the limit that is restored once clients do not give up any more is
// plenty for as many calls as there were then, not what the test had come to.
func TestLimitIsRestoredToWhatIsPlentyForTheFirstCalls(t *testing.T) {
	t.Parallel()
	c, now := limit.New(100, 1, 1000), clock.Instant(time.Minute)
	c.Close(limit.Window{Length: time.Second, Ends: 8, Ended: 8, Calls: 4, Times: 4, Squares: 2})
	c.Reached(now)
	for range 8 {
		c.FailedLate()
	}
	_, short := c.Judge(now.Add(time.Second), time.Second, time.Second, func(clock.Instant) limit.Surge { return limit.Surge{} })
	assert.True(t, short)
	c.Enforce(now)
	c.Close(limit.Window{Length: time.Second, Ends: 20, Ended: 20, Calls: 4, Times: 4, Squares: 2})
	assert.InDelta(t, 12, c.Limit(), 0.1, "2 (4 + √4)")
}

// As long as nothing is known of a resource for certain, what is taken for usual is raised only once as many calls end as
// come, until all have been replaced three times: a few calls more could be chance.
func TestWhatIsTakenForUsualIsNotRaisedWhileFewCallsEnd(t *testing.T) {
	t.Parallel()
	first := limit.Window{Length: time.Second, Ends: 10, Ended: 10, Calls: 1, Times: 1, Squares: 0.1}
	for name, of := range map[string]struct {
		w    limit.Window
		want float64
	}{
		"calls pile up":                  {limit.Window{Length: time.Second, Ends: 10, Ended: 10, Calls: 25, Times: 20, Squares: 40, Growth: 8}, 0.1},
		"all have been replaced by then": {limit.Window{Length: 4 * time.Second, Ends: 40, Ended: 40, Calls: 40, Times: 40, Squares: 40}, 42. / 60},
	} {
		var u limit.Usual
		u.Observe(first, true)
		u.Observe(first, true)
		u.Observe(of.w, true)
		assert.InDelta(t, of.want, u.Mean(), 0.1, name)
		assert.False(t, u.Verified(), name)
	}
}

// Of calls that take longer than any may wait nothing is known for a while. The limit is raised meanwhile, unless some
// resource is known to have become slower than its first calls.
func TestCallsOfAStartDoNotWaitForSlowOnes(t *testing.T) {
	t.Parallel()
	for name, of := range map[string]struct {
		took   float64 // the first calls, in seconds
		asFast bool
		want   bool
	}{
		"slow calls":                 {0.5, true, true},
		"slow calls, and now slower": {0.5, false, false},
		"quick ones":                 {0.05, true, false},
	} {
		var u limit.Usual
		first := time.Duration(of.took * float64(time.Second))
		u.Observe(limit.Window{Length: first, Ends: 8, Ended: 8, Calls: 8 * of.took, Times: 8 * of.took}, false)
		c, now := limit.New(20, 1, 1000), clock.Instant(time.Minute)
		c.Adopt(&u, 20)
		c.Reached(now)
		for range int(20 * 0.05 / of.took) { // in 50 ms, of twenty under way
			c.Ended(now.Add(-time.Second), of.took, 0)
		}
		c.AsFast(of.asFast)
		raised, _ := c.Judge(now.Add(40*time.Millisecond), 40*time.Millisecond, 100*time.Millisecond, noMore)
		assert.False(t, raised, name)
		raised, _ = c.Judge(now.Add(50*time.Millisecond), 50*time.Millisecond, 100*time.Millisecond, noMore)
		assert.Equal(t, of.want, raised, name)
	}
}

// The first eight calls took a tenth of a second. Calls that have not ended count, and of few it is not clear.
func TestCallsTakeLongerThanTheFirst(t *testing.T) {
	t.Parallel()
	var u limit.Usual
	assert.False(t, u.IsLongerThanFirst(limit.Window{Calls: 100}), "nothing is known")
	u.Observe(limit.Window{Length: time.Second, Ends: 8, Ended: 8, Calls: 0.8, Times: 0.8, Squares: 0.16}, false)
	for name, of := range map[string]struct {
		ended, calls float64
		want         bool
	}{
		"as long":             {99, 10, false},
		"1.5 times, of many":  {99, 15, false},
		"three times":         {99, 30, true},
		"three times, of few": {1, 0.6, false},
		"none ends":           {0, 3, true},
	} {
		assert.Equal(t, of.want, u.IsLongerThanFirst(limit.Window{Ended: of.ended, Calls: of.calls}), name)
	}
}

// Forty calls at once are as quick as twenty, and eighty take twice as long: nobody has to lower the limit to see how long
// calls take while none waits in the service.
func TestTheTestAtAStartShowsHowLongCallsTake(t *testing.T) {
	t.Parallel()
	for name, of := range map[string]struct {
		workers float64
		known   bool
	}{"more workers than the limit": {40, true}, "fewer workers than the limit": {8, false}} {
		c, now := limit.New(20, 1, 1000), clock.Instant(time.Minute)
		c.Reached(now)
		short := false
		for range 1000 {
			took := 0.010 * max(c.Limit()/of.workers, 1)
			now = now.Add(time.Duration(took / c.Limit() * float64(time.Second)))
			c.Ended(now, took, 0.010)
			noSurge := func(clock.Instant) limit.Surge { return limit.Surge{} }
			if _, short = c.Judge(now, 10*time.Millisecond, 100*time.Millisecond, noSurge); short {
				break
			}
		}
		require.True(t, short, name)
		c.Enforce(now)
		assert.Equal(t, of.known, c.Known(), name)
		if of.known {
			assert.InDelta(t, 0.010, c.Baseline(), 0.001)
			assert.LessOrEqual(t, c.Limit(), 80.)
		}
	}
}

// Where no resource became slower than its first calls, it is others that end now; and nothing can be compared with a
// moment in which nothing was under way.
func TestNothingIsShortAtAStartWhereNoResourceBecameSlower(t *testing.T) {
	t.Parallel()
	for name, of := range map[string]struct {
		asFast bool
		calls  float64       // under way when the first calls ended
		after  time.Duration // in which twenty calls end
		want   bool
	}{
		"a resource became slower": {false, 5, 2 * time.Second, true},
		"none did":                 {true, 5, 2 * time.Second, false},
		"nothing was under way":    {false, 0.4, 50 * time.Second, false},
		"something was":            {false, 1, 20 * time.Second, true},
	} {
		c := limit.New(20, 1, 1000)
		length := time.Duration(8 / of.calls * float64(time.Second))
		c.Close(limit.Window{Length: length, Ends: 8, Ended: 8, Calls: 8, Times: 8, Squares: 9})
		now := clock.Instant(time.Minute)
		c.Reached(now)
		for range 80 {
			c.Arrived()
		}
		for range 20 {
			c.Ended(now, 20, 1)
		}
		c.AsFast(of.asFast)
		_, short := c.Judge(now.Add(of.after), time.Second, time.Second, noMore)
		assert.Equal(t, of.want, short, name)
	}
}

// After a burst, a window has the last moments of calls that began before it.
func TestWindowAfterABurstDoesNotMakeCallsShort(t *testing.T) {
	t.Parallel()
	var u limit.Usual
	u.Observe(limit.Window{Length: time.Second, Ends: 8, Ended: 8, Calls: 0.16, Times: 0.16, Squares: 0.0033}, false)
	u.Observe(limit.Window{Length: time.Second / 50, Ends: 9, Ended: 9, Calls: 0.02, Times: 0.18, Squares: 0.0036, Growth: -9}, true)
	assert.InDelta(t, 0.02, u.Mean(), 1e-9)
}
