package core_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/fault"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/hotparam"
	"github.com/penstock-go/penstock/rule"
	"github.com/penstock-go/penstock/rules"
)

// twoHands is a clock whose wall clock is set while time goes on.
type twoHands struct {
	*clock.Virtual
	set time.Duration // how much later it is by the wall clock
}

func (c *twoHands) Until(t time.Time) time.Duration { return c.Virtual.Until(t) - c.set }

func faultUntil(t *testing.T, c clock.Clock, r fault.Rule) *core.Engine {
	t.Helper()
	e := core.New(core.Config{Clock: c, Logger: quiet})
	t.Cleanup(e.Close)
	r.Resource, r.Percent = "r", 100
	require.NoError(t, e.Load(rules.Set{Fault: []fault.Rule{r}}))
	return e
}

func stateOf(e *core.Engine) string { return e.Resource("r").Snapshot().Rules[0].State }

func TestFaultEndsByTheWallClock(t *testing.T) {
	c := &twoHands{Virtual: clock.NewVirtual(begin), set: -time.Hour}
	e := faultUntil(t, c, fault.Rule{Abort: fault.Abort{HTTP: 503}, Until: begin.Add(time.Minute)})
	assert.Equal(t, 0, enter(e, "r", 3))
	c.Advance(2 * time.Minute)
	assert.Equal(t, 0, enter(e, "r", 3), "by the wall clock it has an hour left, all but a minute")
	c.set = 0 // right
	assert.Equal(t, 3, enter(e, "r", 3))
	assert.Equal(t, fault.Ended, stateOf(e))

	c.set = -3 * time.Minute
	c.Advance(2 * time.Second)
	assert.Equal(t, 0, enter(e, "r", 3), "it was an error: the end is still to come")
	assert.Equal(t, fault.Active, stateOf(e))
	c.Advance(2 * time.Minute)
	assert.Equal(t, 3, enter(e, "r", 3))
}

func TestFaultThatComesIntoForceLooksAtTheWallClock(t *testing.T) {
	for set, want := range map[time.Duration]int{time.Hour: 3, -time.Hour: 0} {
		c := &twoHands{clock.NewVirtual(begin), set}
		e := faultUntil(t, c, fault.Rule{Abort: fault.Abort{HTTP: 503}, Until: begin.Add(set / 2)})
		assert.Equal(t, want, enter(e, "r", 3), "set to %v", set)
	}
}

func TestDelayEndsWithItsRuleByTheWallClock(t *testing.T) {
	c := &twoHands{Virtual: clock.NewVirtual(begin), set: 50 * time.Second}
	e := faultUntil(t, c, fault.Rule{Delay: 30 * time.Second, Until: begin.Add(time.Minute)})
	a := e.Arrive(t.Context(), "r", func() {})
	after, done := a.Proceed()
	require.False(t, done)
	assert.Equal(t, 10*time.Second, after)
	c.set = time.Minute
	_, done = a.Proceed()
	assert.True(t, done)
}

// By a window of an hour people mean the hour that the clock shows.
func TestFixedWindowsOfHoursFollowTheWallClock(t *testing.T) {
	for name, set := range map[string]rules.Set{
		"flow": {Flow: []flow.Rule{{Name: "hourly", Resource: "r", Limit: 3, Algorithm: flow.FixedWindow, Window: 2 * time.Hour}}},
		"flow, follows a signal": {Flow: []flow.Rule{
			byMemory(flow.Rule{Name: "hourly", Resource: "r", Limit: 3, Algorithm: flow.FixedWindow, Window: 2 * time.Hour}, 1),
		}},
		"hotParam": {HotParam: []hotparam.Rule{{
			Name: "hourly", Resource: "r", Param: rule.StringsOf("user"), Limit: 3, Algorithm: hotparam.FixedWindow, Window: 2 * time.Hour,
		}}},
	} {
		t.Run(name, func(t *testing.T) {
			c := &twoHands{Virtual: clock.NewVirtual(begin.Truncate(2 * time.Hour).Add(10 * time.Minute))}
			e := core.New(core.Config{Clock: c, Logger: quiet})
			defer e.Close()
			require.NoError(t, e.Load(set))
			user := core.String("user", "ann")
			require.Equal(t, 3, enter(e, "r", 5, user))

			c.set = 100 * time.Minute // ten minutes are left
			c.Advance(time.Second)
			assert.Zero(t, enter(e, "r", 5, user))
			c.Advance(10 * time.Minute)
			assert.Equal(t, 3, enter(e, "r", 5, user), "the clock shows the next window")

			c.set = 0 // it was an error: the clock has yet to come to the window that is open
			c.Advance(time.Second)
			assert.Zero(t, enter(e, "r", 5, user))
			c.Advance(c.Until(begin.Truncate(2 * time.Hour).Add(4*time.Hour - 1)))
			assert.Zero(t, enter(e, "r", 5, user))
			c.Advance(1)
			assert.Equal(t, 3, enter(e, "r", 5, user))
		})
	}
}

// The limit of an hour moves with its signal, to a part of a token too, and the hour with the wall clock.
func TestLongFixedWindowThatFollowsASignalFollowsTheWallClock(t *testing.T) {
	c := &twoHands{Virtual: clock.NewVirtual(begin.Truncate(time.Hour).Add(10 * time.Minute))}
	source := newReadings(map[rule.Signal]float64{rule.SignalMemory: 0.5})
	e := core.New(core.Config{Clock: c, Logger: quiet, Signals: source, SignalInterval: -1})
	defer e.Close()
	load(t, e, byMemory(flow.Rule{Resource: "r", Limit: 9, Algorithm: flow.FixedWindow, Window: time.Hour}, 2))
	sample := func(memory float64) {
		source.set(rule.SignalMemory, memory)
		e.SampleSignals()
	}
	sample(0.8)
	require.Equal(t, 5, enter(e, "r", 9), "half way from 9 to 2 is 5.5")
	sample(0.9)
	assert.Zero(t, enter(e, "r", 9))

	c.set = 45 * time.Minute // five minutes are left
	c.Advance(4 * time.Minute)
	assert.Zero(t, enter(e, "r", 9))
	c.Advance(time.Minute + time.Second)
	assert.Equal(t, 2, enter(e, "r", 9), "the clock shows the next hour")
	sample(0.7)
	assert.Equal(t, 7, enter(e, "r", 9), "9 of this hour")

	c.set = 0 // it was an error
	c.Advance(time.Second)
	assert.Zero(t, enter(e, "r", 9))
	c.Advance(c.Until(begin.Truncate(time.Hour).Add(2*time.Hour)) - 1)
	assert.Zero(t, enter(e, "r", 9))
	c.Advance(1)
	sample(0.8)
	assert.Equal(t, 5, enter(e, "r", 9))
}

// What is measured does not move with the wall clock.
func TestLimitsDoNotFollowTheWallClock(t *testing.T) {
	c := &twoHands{Virtual: clock.NewVirtual(begin)}
	e := core.New(core.Config{Clock: c, Logger: quiet})
	defer e.Close()
	load(t, e, throttle("r", 1, time.Minute))
	require.Equal(t, 1, enter(e, "r", 1))
	for _, c.set = range []time.Duration{time.Hour, -time.Hour} {
		assert.Zero(t, enter(e, "r", 1, core.NoWait()))
	}
	c.Advance(time.Second)
	assert.Equal(t, 1, enter(e, "r", 1, core.NoWait()))
}
