package core_test

import (
	"math"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/breaker"
	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/rules"
)

// setSystem is the system's clock in a bubble, with a wall clock that is set.
type setSystem struct {
	clock.Clock
	set atomic.Int64 // how much later it is by the wall clock than when the clock was made, in nanoseconds
}

func (c *setSystem) Until(t time.Time) time.Duration {
	return c.Clock.Until(t) - time.Duration(c.set.Load())
}

// What an operator forces for ten minutes ends after ten minutes, whatever is done to the wall clock, and
// at the latest when ten minutes are over by that, also if the machine was suspended.
func TestForcedStateEndsByWhicheverHandIsFirst(t *testing.T) {
	for name, steps := range map[string]struct {
		passes, set time.Duration
		ends        bool
	}{
		"nothing is set":               {10*time.Minute - time.Second, 0, false},
		"its time is over":             {10 * time.Minute, 0, true},
		"the wall clock is set back":   {10 * time.Minute, -3 * time.Hour, true},
		"set back, before its time":    {9 * time.Minute, -3 * time.Hour, false},
		"by a year, with its time":     {10 * time.Minute, -365 * 24 * time.Hour, true},
		"the machine was suspended":    {time.Minute, 9*time.Minute + time.Second, true},
		"it was suspended for a while": {2 * time.Minute, 6 * time.Minute, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := &setSystem{Clock: clock.System()}
				e := core.New(core.Config{Clock: c, Logger: quiet})
				defer e.Close()
				require.NoError(t, e.Load(rules.Set{
					Flow:    []flow.Rule{{Name: "a", Resource: "a"}},
					Breaker: []breaker.Rule{{Name: "b", Resource: "b", Threshold: 0.5}},
				}))
				order := core.Order{For: 10 * time.Minute}
				require.NoError(t, e.Switch(core.Scope{Kind: "flow", Rule: "a"}, core.SwitchOff, order))
				require.NoError(t, e.Control(core.Scope{Kind: "breaker", Rule: "b"}, breaker.Open, order))
				c.set.Store(int64(steps.set))
				time.Sleep(steps.passes + time.Millisecond)
				synctest.Wait()
				if steps.set > 0 { // nobody tells of it: it is looked at once in a minute
					time.Sleep(time.Minute - time.Millisecond)
					synctest.Wait()
				}
				status := e.Status()
				if steps.ends {
					assert.Empty(t, status.Switches)
					assert.Empty(t, status.Forced)
					return
				}
				require.Len(t, status.Switches, 1)
				require.Len(t, status.Forced, 1)
				passed := steps.passes + time.Millisecond
				if steps.set > 0 {
					passed = steps.passes + time.Minute
				}
				left := 10*time.Minute - passed - max(0, steps.set)
				for _, f := range []core.Forced{status.Switches[0], status.Forced[0]} {
					assert.InDelta(t, left, c.Until(f.Until), float64(2*time.Second), "what is shown is when it ends")
				}
			})
		})
	}
}

func TestForcedStateForVeryLongDoesNotEndAtOnce(t *testing.T) {
	c := clock.NewVirtual(begin)
	e := core.New(core.Config{Clock: c, Logger: quiet})
	defer e.Close()
	load(t, e, flow.Rule{Name: "a", Resource: "a"})
	require.NoError(t, e.Switch(core.Scope{Kind: "flow", Rule: "a"}, core.SwitchOff, core.Order{For: math.MaxInt64}))
	c.Advance(time.Hour)
	assert.Len(t, e.Status().Switches, 1)
}

// A recording has the times of the wall clock: those of several machines are merged, and replayed by
// windows of the calendar.
func TestRecordingHasTheTimesOfTheWallClock(t *testing.T) {
	for _, set := range []time.Duration{0, 300 * time.Millisecond, 5 * time.Hour, -40 * time.Minute} {
		c := &twoHands{Virtual: clock.NewVirtual(begin)}
		e := core.New(core.Config{Clock: c, Logger: quiet, Recorder: new(core.Recorder)})
		c.Advance(time.Minute)
		c.set = set
		_, err := e.Entry(t.Context(), "r")
		require.NoError(t, err)
		c.Advance(time.Second)
		found, err := e.Recorded(30 * time.Second)
		require.NoError(t, err)
		require.Len(t, found.Calls, 1)
		apart := set.Round(time.Second)
		assert.Equal(t, begin.Add(time.Minute+apart), found.Calls[0].At.Time())
		from, until := found.Span()
		assert.Equal(t, begin.Add(31*time.Second+apart), from.Time())
		assert.Equal(t, begin.Add(61*time.Second+apart), until.Time())
		e.Close()
	}
}
