package limit_test

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/adaptive/internal/limit"
	"github.com/penstock-go/penstock/clock"
)

// service answers each call after a time, and has so many workers. There is always a call
// that waits to be let in.
type service struct {
	workers float64
	time    float64 // seconds
	fails   float64 // share of the calls
	slower  float64 // share by which each call beyond the workers makes service slower
}

// newLimited returns a control that has found that the service is short of something.
func newLimited(initial, least, most int) *limit.Control {
	c := limit.New(initial, least, most)
	c.Reached(0)
	c.Enforce(clock.Instant(time.Millisecond))
	return c
}

// close hands windows to the control in which the service worked at its limit.
func (s service) close(c *limit.Control, times int) {
	for range times {
		if c.Draining() {
			c.Drained()
		}
		least, most, ends := c.Need()
		busy := min(c.Limit(), s.workers)
		rate := busy / (s.time * (1 + s.slower*max(0, c.Limit()-s.workers)))
		length := min(max(least, time.Duration(ends/rate*float64(time.Second))), most)
		n := rate * length.Seconds()
		response := c.Limit() / rate
		c.Close(limit.Window{
			Length: length, Full: length, Over: true, Ends: n, Calls: c.Limit() * length.Seconds(),
			Times: n * response, Squares: 2 * n * response * response, Failed: s.fails * n, Late: s.fails * n,
		})
	}
}

// usual returns the limit that is in force in most of the next windows, between probes.
func (s service) usual(c *limit.Control) float64 {
	var limits []float64
	for range 51 {
		s.close(c, 1)
		limits = append(limits, c.Limit())
	}
	slices.Sort(limits)
	return limits[len(limits)/2]
}

// untilNoProbe closes windows until the usual limit is in force.
func (s service) untilNoProbe(c *limit.Control, usual float64) {
	for c.Draining() || c.Limit() < 0.9*usual || c.Limit() > 1.1*usual {
		s.close(c, 1)
	}
}

// window is a window in which a share of the usual calls end.
func (s service) window(c *limit.Control, length time.Duration, share float64) limit.Window {
	n := share * s.workers / s.time * length.Seconds()
	return limit.Window{
		Length: length, Full: length, Over: true, Ends: n, Calls: c.Limit() * length.Seconds(),
		Times: n * 0.012, Squares: 2 * n * 0.012 * 0.012,
	}
}

func TestControlFindsTheWorkersOfASaturatedService(t *testing.T) {
	t.Parallel()
	for _, workers := range []float64{1, 2, 8, 30, 100, 300} {
		c := newLimited(20, 1, 1000)
		s := service{workers: workers, time: 0.010, fails: 0}
		s.close(c, 200)
		limit := s.usual(c)
		assert.GreaterOrEqual(t, limit, workers, "%v workers", workers)
		assert.LessOrEqual(t, limit, 1.7*workers+1, "%v workers", workers)
		assert.InEpsilon(t, 0.010, c.Baseline(), 0.1, "%v workers", workers)
	}
}

// Whatever the limit begins with, it does not rise by the queue that it causes.
func TestControlDoesNotTakeAQueueForTheService(t *testing.T) {
	t.Parallel()
	for _, initial := range []int{20, 200, 1000} {
		c := newLimited(initial, 1, 1000)
		s := service{workers: 8, time: 0.010, fails: 0}
		for range 50 {
			s.close(c, 40)
			assert.LessOrEqual(t, c.Limit(), float64(initial))
		}
		assert.LessOrEqual(t, s.usual(c), 12.0)
		assert.InEpsilon(t, 0.010, c.Baseline(), 0.1)
	}
}

// In a tenth of a second there may be few ends by chance, and many in the next.
func TestControlIsNotMisledByTheEndsOfOneWindow(t *testing.T) {
	t.Parallel()
	c := newLimited(20, 1, 1000)
	s := service{workers: 8, time: 0.010, fails: 0}
	s.close(c, 200)
	usual := s.usual(c)
	window := func(share float64) {
		s.untilNoProbe(c, usual)
		c.Close(s.window(c, 100*time.Millisecond, share))
	}
	for range 10 {
		window(0.5)
		window(1.5)
		assert.InEpsilon(t, usual, s.usual(c), 0.15)
	}
}

// A window with so few ends is a reason to look at the service with a lower limit, but the
// next one, which is as usual, is no reason to do so again.
func TestControlProbesOnceBecauseOfOneWindow(t *testing.T) {
	t.Parallel()
	c := newLimited(20, 1, 1000)
	s := service{workers: 8, time: 0.010, fails: 0}
	s.close(c, 200)
	s.untilNoProbe(c, s.usual(c))
	c.Close(s.window(c, 200*time.Millisecond, 0.62))
	probes := 0
	for range 10 {
		if c.Draining() {
			probes++
		}
		s.close(c, 1)
	}
	assert.Equal(t, 1, probes)
}

func TestControlFollowsAServiceThatBecomesSlowerAndFasterAgain(t *testing.T) {
	t.Parallel()
	c := newLimited(20, 1, 1000)
	service{workers: 8, time: 0.010, fails: 0}.close(c, 200)
	service{workers: 8, time: 0.050, fails: 0}.close(c, 100)
	assert.InEpsilon(t, 0.050, c.Baseline(), 0.1)
	assert.InDelta(t, 10, service{workers: 8, time: 0.050, fails: 0}.usual(c), 3)
	service{workers: 8, time: 0.010, fails: 0}.close(c, 100)
	assert.InEpsilon(t, 0.010, c.Baseline(), 0.1)
	assert.InDelta(t, 10, service{workers: 8, time: 0.010, fails: 0}.usual(c), 3)
}

func TestControlHalvesTheLimitWhileCallsFailLateAndRestoresIt(t *testing.T) {
	t.Parallel()
	c := newLimited(20, 1, 1000)
	service{workers: 8, time: 0.010, fails: 0}.close(c, 200)
	before := service{workers: 8, time: 0.010, fails: 0}.usual(c)
	service{workers: 8, time: 0.010, fails: 1}.close(c, 10)
	assert.LessOrEqual(t, c.Limit(), 2.0)
	assert.InEpsilon(t, 0.010, c.Baseline(), 0.1, "nothing is learned")
	assert.InEpsilon(t, before, service{workers: 8, time: 0.010, fails: 0}.usual(c), 0.25)
}

func TestAProbeIsNotComparedWithWhatFewerResourcesDid(t *testing.T) {
	for _, come := range []func(c *limit.Control){
		func(c *limit.Control) { c.Expect(2000, 20) },
		func(c *limit.Control) { c.Begin(c.Limit() + 20) },
	} {
		before, after := service{workers: 4, time: 0.04}, service{workers: 24, time: 0.01}
		c := newLimited(20, 1, 1000)
		usual := before.usual(c)
		for range 1000 {
			if !c.Draining() && c.Limit() > usual {
				break
			}
			before.close(c, 1)
		}
		require.Greater(t, c.Limit(), usual, "probes up")
		come(c)
		after.close(c, 1)
		assert.LessOrEqual(t, c.Baseline(), 1.1*before.time, "other calls are no longer ones")
	}
}

func TestAShortageNamesCallsThatFailedAndNotTheirWork(t *testing.T) {
	c := limit.New(20, 1, 1000)
	c.Close(limit.Window{Length: time.Second, Ends: 5000, Ended: 10, Failed: 4500, Late: 4500, Calls: 20, Times: 10, Squares: 10})
	assert.Equal(t, limit.Shortage{By: limit.ByFailures, Calls: 9, Of: 10}, c.Shortage())
}

func TestControlKeepsItsBounds(t *testing.T) {
	t.Parallel()
	c := newLimited(20, 5, 50)
	service{workers: 500, time: 0.010, fails: 0}.close(c, 100)
	assert.InDelta(t, 50, c.Limit(), 0)
	c.SetBounds(2, 30)
	assert.LessOrEqual(t, c.Limit(), 50.0)
	service{workers: 500, time: 0.010, fails: 0}.close(c, 20)
	assert.LessOrEqual(t, c.Limit(), 30.0)
}

func TestControlGrowsWhenNoCallEnds(t *testing.T) {
	t.Parallel()
	c := newLimited(4, 2, 6)
	hung := limit.Window{Length: 10 * time.Second, Full: 10 * time.Second, Calls: 40}
	c.Close(hung)
	assert.InDelta(t, 5, c.Limit(), 0)
	c.Close(hung)
	c.Close(hung)
	assert.InDelta(t, 6, c.Limit(), 0)
}

// unfilled returns a window in which so many calls a second took a time each, and the limit was not
// reached.
func unfilled(c *limit.Control, rate, response float64) limit.Window {
	least, most, ends := c.Need()
	length := min(max(least, time.Duration(ends/rate*float64(time.Second))), most)
	n := rate * length.Seconds()
	return limit.Window{Length: length, Ends: n, Calls: n * response, Times: n * response, Squares: 2 * n * response * response}
}

// A service that is busy below the limit, which no call reaches because all give up before.
// Their time is no longer than the response times that were taken for the usual ones.
func TestControlLowersALimitThatIsNotReachedWhileAllCallsTimeOut(t *testing.T) {
	t.Parallel()
	c := newLimited(40, 2, 1000)
	for range 20 {
		c.Close(unfilled(c, 100, 0.170))
	}
	before := c.Limit()
	for range 40 {
		w := unfilled(c, 100, 0.200)
		w.Failed = w.Ends
		if c.Late() <= 0.200 {
			w.Late = w.Ends
		}
		c.Close(w)
	}
	assert.Equal(t, 2.0, c.Limit(), "from %v", before) //nolint:testifylint // a bound, met exactly
}

// Errors of a service that is not busy are quicker than usual: they say nothing of the limit.
func TestControlKeepsTheLimitWhileAllCallsFailQuickly(t *testing.T) {
	t.Parallel()
	c := newLimited(40, 2, 1000)
	for range 20 {
		c.Close(unfilled(c, 100, 0.170))
	}
	before := c.Limit()
	for range 40 {
		w := unfilled(c, 100, 0.050)
		w.Failed = w.Ends
		if c.Late() <= 0.050 {
			w.Late = w.Ends
		}
		c.Close(w)
	}
	assert.InDelta(t, before, c.Limit(), 0)
}

// A service that has become faster again does less with more calls under way, and those of a
// probe take as long as calls took when the service was slow. So the probe seems to confirm
// that, but gets more done.
func TestControlForgetsThatAServiceWasSlow(t *testing.T) {
	t.Parallel()
	for _, workers := range []float64{10, 40, 100, 200} {
		for _, slowdown := range []float64{2, 3, 5, 8} {
			c := newLimited(20, 1, 1000)
			s := service{workers: workers, time: 0.010 * slowdown, slower: 0.02}
			s.close(c, 100)
			s.time = 0.010
			s.close(c, 300)
			assert.LessOrEqual(t, s.usual(c), 1.5*workers, "%v workers, %v times as fast", workers, slowdown)
			assert.InEpsilon(t, 0.010, c.Baseline(), 0.25, "%v workers, %v times as fast", workers, slowdown)
		}
	}
}

// Calls of resources of which nothing is known say nothing of a shortage: a test that sees no others
// goes on all the same, rather than having all of them wait.
func TestControlTestsOnThoughNothingIsKnownOfTheResources(t *testing.T) {
	t.Parallel()
	const longest = 100 * time.Millisecond
	c := limit.New(20, 2, 1000)
	for range 20 { // calm
		c.Close(limit.Window{Length: time.Second, Ends: 100, Ended: 100, Calls: 1, Times: 1, Squares: 0.02})
	}
	before := c.Limit()
	now := clock.Instant(time.Minute)
	assert.True(t, c.Reached(now))
	for range 100 {
		now = now.Add(10 * time.Millisecond)
		for range 10 {
			c.Arrived()
			c.Ended(now, 0.02, 0)
		}
		c.Judge(now, longest, longest, func(clock.Instant) limit.Surge { return limit.Surge{} })
	}
	assert.Greater(t, c.Limit(), 2*before)
}

// surgeTest returns a control whose limit is reached, and that has seen calls come twice as often as
// usual and take twice as long.
func surgeTest(t *testing.T) (*limit.Control, clock.Instant) {
	t.Helper()
	return surgeTestOf(t, 50)
}

// surgeTestOf returns the same after so many of them.
func surgeTestOf(t *testing.T, ends int) (*limit.Control, clock.Instant) {
	t.Helper()
	c := limit.New(20, 2, 1000)
	for range 20 { // calm
		c.Close(limit.Window{Length: time.Second, Ends: 100, Ended: 100, Calls: 1, Times: 1, Squares: 0.02})
	}
	now := clock.Instant(time.Minute)
	require.True(t, c.Reached(now))
	for i := range 50 {
		now = now.Add(5 * time.Millisecond)
		if c.Arrived(); i < ends {
			c.Ended(now, 0.03, 0.01)
		}
	}
	return c, now
}

func TestSurgeIsAShortageOnlyWhileCallsPileUpAndAsManyEndAsUsual(t *testing.T) {
	t.Parallel()
	surge := limit.Surge{Came: 60, Ended: 30, Usual: 25, Variance: 25, Growth: 5, Within: 250 * time.Millisecond}
	for name, of := range map[string]struct {
		change  func(*limit.Surge)
		ends    int
		isShort bool
	}{
		"a surge":                             {func(*limit.Surge) {}, 50, true},
		"no more than usual since it is slow": {func(s *limit.Surge) { s.Came = 28 }, 50, false},
		"over":                                {func(s *limit.Surge) { s.Growth = -5 }, 50, false},
		"a dependency slowed down":            {func(s *limit.Surge) { s.Ended = 10 }, 50, false},
		"it has only begun":                   {func(s *limit.Surge) { s.Slower = 3 }, 7, false},
	} {
		c, now := surgeTestOf(t, of.ends)
		s := surge
		of.change(&s)
		_, isShort := c.Judge(now, 10*time.Millisecond, 100*time.Millisecond, func(clock.Instant) limit.Surge { return s })
		assert.Equal(t, of.isShort, isShort, name)
	}
}

// At a limit that a test had raised calls failed: what is restored once they do not is the limit that
// was enforced, not that of the test.
func TestOutageDuringATestRestoresTheLimitThatWasEnforced(t *testing.T) {
	t.Parallel()
	c, now := surgeTest(t)
	c.Begin(160)
	late := limit.Window{Length: 100 * time.Millisecond, Ends: 20, Ended: 20, Failed: 20, Late: 20, Calls: 16, Times: 4, Squares: 0.8}
	c.Close(late)
	c.Enforce(now)
	enforced := c.Limit()
	require.LessOrEqual(t, enforced, 20.)
	c.Close(limit.Window{
		Length: 100 * time.Millisecond, Ends: 20, Ended: 20, Calls: 0.2, Times: 0.2, Squares: 0.004, Full: 100 * time.Millisecond,
	})
	assert.LessOrEqual(t, c.Limit(), enforced)
}

// A third of the clients give up, which halves an enforced limit; once none does, the limit before is restored.
func TestLimitIsRestoredWhenSomeClientsDoNotGiveUpAnyMore(t *testing.T) {
	t.Parallel()
	c, now := surgeTest(t)
	c.Enforce(now)
	enforced := c.Limit()
	for range 3 {
		c.Close(limit.Window{Length: 100 * time.Millisecond, Ends: 20, Ended: 20, Failed: 8, Late: 8, Calls: 16, Times: 4, Squares: 0.8})
	}
	require.Less(t, c.Limit(), enforced/2)
	c.Close(limit.Window{
		Length: 100 * time.Millisecond, Ends: 20, Ended: 20, Calls: 0.2, Times: 0.2, Squares: 0.004, Full: 100 * time.Millisecond,
	})
	assert.InDelta(t, enforced, c.Limit(), 1e-9)
}

// shortageOver returns a control that has found that a service of 8 workers is short, and that this is over.
func shortageOver(t *testing.T) (*limit.Control, clock.Instant) {
	t.Helper()
	c := limit.New(20, 2, 1000)
	for range 20 { // calm
		c.Close(limit.Window{Length: time.Second, Ends: 100, Ended: 100, Calls: 1, Times: 1, Squares: 0.02})
	}
	now := clock.Instant(time.Minute)
	require.True(t, c.Reached(now))
	c.Enforce(now)
	service{workers: 8, time: 0.01}.close(c, 100)
	for range 20 {
		c.Close(unfilled(c, 400, 0.01))
	}
	require.False(t, c.Limited())
	return c, now.Add(time.Hour)
}

// fill has the limit be reached for so long while so many calls a second end, which take so many seconds. It
// returns whether a shortage was shown.
func fill(c *limit.Control, now clock.Instant, length time.Duration, rate, took float64) bool {
	c.Reached(now)
	began := now
	for n := 1.0; now.Sub(began) < length; n++ {
		now = began.Add(time.Duration(n / rate * float64(time.Second)))
		c.Arrived()
		c.Ended(now.Add(-time.Millisecond), took, 0.01)
		noSurge := func(clock.Instant) limit.Surge { return limit.Surge{} }
		if _, isShort := c.Judge(now, now.Sub(began), 100*time.Millisecond, noSurge); isShort {
			return true
		}
	}
	return false
}

func TestAShortageIsFoundAgainWithoutLettingMoreCallsIn(t *testing.T) {
	t.Parallel()
	c, now := shortageOver(t)
	before := c.Limit()
	assert.Less(t, before, 16., "the limit that was right, not twice as many as are under way")
	assert.False(t, fill(c, now, 90*time.Millisecond, 800, 0.02), "it may be over soon")
	assert.InDelta(t, before, c.Limit(), 1e-9)

	c, now = shortageOver(t)
	assert.True(t, fill(c, now, 200*time.Millisecond, 800, 0.02))
	assert.Equal(t, limit.ByEarlier, c.Shortage().By)
	assert.InDelta(t, before, c.Limit(), 1e-9)
}

// Calls that end together do not say how many end in a second.
func TestAFewEndsInAMomentAreNoMoreThanInTheLastShortage(t *testing.T) {
	t.Parallel()
	c, now := shortageOver(t)
	before := c.Limit()
	assert.False(t, fill(c, now, time.Millisecond, 9000, 0.02))
	assert.True(t, fill(c, now.Add(10*time.Millisecond), 200*time.Millisecond, 800, 0.02))
	assert.Equal(t, limit.ByEarlier, c.Shortage().By)
	assert.InDelta(t, before, c.Limit(), 1e-9)
}

// Far below its capacity, a service does not need more calls under way than when it was short, and when more come again,
// so many would only wait.
func TestALimitThatIsHardlyReachedIsNotRaisedAboveWhatIsRight(t *testing.T) {
	t.Parallel()
	c := newLimited(20, 1, 1000)
	s := service{workers: 64, time: 0.010}
	s.close(c, 200)
	right := s.usual(c)
	s.untilNoProbe(c, right)
	for range 9 {
		c.Close(unfilled(c, 3000, 0.01))
	}
	require.True(t, c.Limited())
	assert.InEpsilon(t, right, c.Limit(), 0.05)
}

// A service is four times as slow. By chance, each probe shows half of what would make it clear.
func TestAProbeThatTellsNothingForgetsWhatWasDoneBefore(t *testing.T) {
	t.Parallel()
	c := newLimited(20, 1, 1000)
	s := service{workers: 8, time: 0.010}
	s.close(c, 200)
	s.untilNoProbe(c, s.usual(c))
	s.time *= 4
	for !c.Draining() {
		s.close(c, 1)
	}
	high := c.Limit() / 0.6
	for range 3 {
		c.Drained()
		share := c.Limit() / high
		rate := s.workers / s.time * (share + (1-share)/2)
		c.Close(limit.Window{
			Length: 2 * time.Second, Full: 2 * time.Second, Over: true, Ends: 2 * rate, Ended: 2 * rate, Calls: 2 * c.Limit(),
			Times: 2 * c.Limit(), Squares: 4 * c.Limit() * c.Limit() / rate,
		})
	}
	require.False(t, c.Draining())
	assert.Less(t, c.Limit(), 16.)
}

func TestWhatIsNotLikeTheShortageBeforeIsTestedAnew(t *testing.T) {
	t.Parallel()
	for name, of := range map[string]struct{ rate, took float64 }{
		"less is done":             {400, 0.04},
		"more is done":             {1600, 0.02},
		"calls take as long":       {800, 0.01},
		"a dependency slowed down": {200, 0.1},
	} {
		c, now := shortageOver(t)
		before := c.Limit()
		fill(c, now, 250*time.Millisecond, of.rate, of.took)
		assert.Greater(t, c.Limit(), before, name)
	}
}

// The first calls that end are the short ones, if others wait for each other.
func TestAUsualResponseTimeIsMeasuredWhileCallsDoNotDisturbEachOther(t *testing.T) {
	t.Parallel()
	w := limit.Window{Length: time.Second, Ends: 10, Ended: 10, Calls: 1, Times: 0.5, Squares: 0.05}
	var u limit.Usual
	u.Observe(w, false)
	assert.InDelta(t, 0.05, u.Mean(), 1e-9)
	assert.False(t, u.Measured())
	u.Observe(w, true)
	assert.InDelta(t, 0.1, u.Mean(), 1e-9)
	assert.True(t, u.Measured())
	assert.False(t, u.Verified(), "ten calls are few")
}

// As many calls have ended as the limit allows, longer than usual. Where what is usual is not known of most of them, to
// wait for more of those of which it is would be in vain: the limit is raised.
func TestLimitIsRaisedWhereLittleIsKnownOfMostCalls(t *testing.T) {
	t.Parallel()
	for name, of := range map[string]struct {
		known int // of 60 calls
		want  bool
	}{
		"of none":        {0, true},
		"of few":         {7, true},
		"of fewer":       {29, true},
		"of half of all": {30, false},
	} {
		c, began := limit.New(20, 2, 1000), clock.Instant(time.Minute)
		c.Close(limit.Window{Length: time.Second, Ends: 100, Ended: 100, Calls: 1, Times: 1, Squares: 0.02})
		c.Verify(0.01)
		require.True(t, c.Reached(began))
		for i := range 60 {
			usual := 0.
			if i < of.known {
				usual = 0.01
			}
			c.Ended(began.Add(-time.Second), 0.03, usual) // it began before: what it took says nothing of the limit
		}
		raised, short := c.Judge(began.Add(300*time.Millisecond), 100*time.Millisecond, 100*time.Millisecond, noMore)
		assert.Equal(t, of.want, raised, name)
		assert.False(t, short, name)
	}
}
