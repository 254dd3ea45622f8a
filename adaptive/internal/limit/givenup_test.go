package limit_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/adaptive/internal/limit"
	"github.com/penstock-go/penstock/clock"
)

// givenUp is a window of 40 calls of which so many failed late while so many were under way.
func givenUp(late, calls float64) limit.Window {
	return limit.Window{
		Length: time.Second, Ends: 40, Ended: 40, Failed: late, Late: late, GivenUp: 40, EndedWell: 40 - late,
		Calls: calls, Times: 10, Squares: 4, Full: time.Second, Over: true,
	}
}

// Clients give up, and the limit is halved. Where as many of the calls that are let in fail as before, the limit is lifted.
func TestLimitIsLiftedWhereFewerCallsFailAsOften(t *testing.T) {
	t.Parallel()
	for name, of := range map[string]struct {
		before, after limit.Window
		want          bool
	}{
		"as many fail":                      {givenUp(24, 20), givenUp(24, 8), true},
		"somewhat fewer fail":               {givenUp(28, 20), givenUp(25, 8), true},
		"clearly fewer fail":                {givenUp(32, 20), givenUp(21, 8), false},
		"hardly fewer are under way":        {givenUp(24, 20), givenUp(24, 18), false},
		"hardly a call ends well":           {givenUp(24, 20), givenUp(38, 8), false},
		"hardly a call ended well, nor now": {givenUp(38, 20), givenUp(38, 8), false},
	} {
		c, now := surgeTest(t)
		c.Close(of.before)
		c.Enforce(now)
		c.Close(of.after)
		assert.Equal(t, of.want, !c.Limited(), name)
	}
}

// At the least limit nothing can be halved any more.
func TestLeastLimitIsLiftedWhereCallsFailAsOften(t *testing.T) {
	t.Parallel()
	c, _ := surgeTest(t)
	for range 10 {
		c.Close(givenUp(40, 2))
	}
	require.True(t, c.Limited())
	require.InDelta(t, 2, c.Limit(), 1e-9)
	c.Close(givenUp(24, 2))
	c.Close(givenUp(24, 2))
	assert.False(t, c.Limited())
}

// A limit that was lifted is not put in force by the same evidence, until hardly a call ends well.
func TestLimitThatWasLiftedStaysSoWhileSomeCallsEndWell(t *testing.T) {
	t.Parallel()
	c, now := surgeTest(t)
	c.Close(givenUp(24, 20))
	c.Enforce(now)
	c.Close(givenUp(24, 8))
	require.False(t, c.Limited())
	for range 10 {
		c.Close(givenUp(26, 40))
		assert.False(t, c.Limited())
	}
	require.True(t, c.Reached(now))
	for range 20 {
		c.FailedLate()
	}
	_, short := c.Judge(now.Add(time.Second), time.Second, time.Second, noMore)
	assert.False(t, short)
	c.Close(givenUp(38, 40))
	assert.True(t, c.Limited())
}

// noMore says that no more calls came than usual.
func noMore(clock.Instant) limit.Surge { return limit.Surge{} }

// Clients gave up, and the limit was put in force. Since then most calls fail as before, but no later than others end: a
// dependency fails.
func TestLimitIsLiftedWhereCallsFailForAnotherReason(t *testing.T) {
	t.Parallel()
	c, now := surgeTest(t)
	c.Close(givenUp(38, 20))
	c.Enforce(now)
	failing := givenUp(38, 15)
	failing.Late, failing.GivenUp, failing.EndedWell = 0, 0, 0
	c.Close(failing)
	assert.True(t, c.Limited(), "some may have come just before fewer did")
	c.Close(givenUp(38, 15))
	c.Close(failing)
	assert.True(t, c.Limited(), "some were late in between")
	c.Close(failing)
	assert.False(t, c.Limited())
}

// The limit was put in force because calls took longer at a higher one. It is not lifted because clients give up, too.
func TestLimitThatIsDueToMoreThanClientsWhoGiveUpIsNotLifted(t *testing.T) {
	t.Parallel()
	c, now := surgeTest(t)
	c.Enforce(now)
	c.Close(givenUp(24, 20))
	for range 5 {
		c.Close(givenUp(24, 5))
		assert.True(t, c.Limited())
	}
}

// While the process is short of processors, they are what calls wait for.
func TestLimitIsNotLiftedWhileTheProcessIsShortOfProcessors(t *testing.T) {
	t.Parallel()
	for processor, want := range map[limit.Processor]bool{limit.ProcessorShort: true, limit.ProcessorIdle: false} {
		c, now := surgeTest(t)
		c.SetProcessor(processor, 0.2)
		c.Close(givenUp(24, 20))
		c.Enforce(now)
		for range 2 {
			c.Close(givenUp(24, 5))
		}
		assert.Equal(t, want, c.Limited())
	}
}

// Clients wait for five seconds. What those say who came before the limit was halved is known already.
func TestCallsThatBeganBeforeTheLimitWasHalvedDoNotHalveItAgain(t *testing.T) {
	t.Parallel()
	late := givenUp(40, 2)
	late.Patience = 5
	c, _ := surgeTest(t)
	before := c.Limit()
	for i := range 6 {
		c.Close(late)
		assert.InDelta(t, before/2, c.Limit(), 1e-9, i)
	}
	c.Close(late)
	assert.InDelta(t, before/4, c.Limit(), 1e-9)
	late.Patience = 0.1
	c.Close(late)
	assert.InDelta(t, before/8, c.Limit(), 1e-9)
}

// At a limit of a few calls that take seconds, hardly any ends in a window.
func TestLimitIsRestoredOnceSomeCallsHaveEndedWellInSeveralWindows(t *testing.T) {
	t.Parallel()
	c, _ := surgeTest(t)
	before := c.Limit()
	for range 5 {
		c.Close(givenUp(40, 2))
	}
	well := limit.Window{Length: 10 * time.Second, Ends: 4, Ended: 4, Calls: 20, Times: 20, Squares: 200}
	c.Close(well)
	c.Close(well)
	assert.Less(t, c.Limit(), before/4)
	c.Close(well)
	assert.InDelta(t, before, c.Limit(), 1e-9)
}
