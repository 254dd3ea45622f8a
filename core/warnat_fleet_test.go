package core_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/fleet"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/hotparam"
	"github.com/penstock-go/penstock/internal/calendar"
	"github.com/penstock-go/penstock/rule"
	"github.com/penstock-go/penstock/rules"
)

// Each instance that asks warns once in a window, by what all of them have used.
func TestInstancesWarnByWhatTheFleetHasUsed(t *testing.T) {
	month := rule.Calendar{Period: calendar.Period{Count: 1, Unit: calendar.Month}}
	for name, r := range map[string]flow.Rule{
		"ask":      {Limit: 100, Window: time.Minute, Algorithm: flow.FixedWindow, Fleet: rule.Fleet{Mode: fleet.ModeAsk}},
		"log":      {Limit: 100, Window: time.Minute, Fleet: rule.Fleet{Mode: fleet.ModeAsk}},
		"calendar": {Limit: 100, Calendar: month},
		"window":   {Limit: 100, Window: time.Minute, Algorithm: flow.FixedWindow},
		"sliding":  {Limit: 100, Window: time.Minute, Fleet: rule.Fleet{Mode: fleet.ModeWindow}},
		"shadow":   {Limit: 100, Window: time.Minute, Algorithm: flow.FixedWindow, Shadow: true, Fleet: rule.Fleet{Mode: fleet.ModeAsk}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r.Name, r.Resource, r.Scope, r.WarnAt = "r", "a", rule.ScopeFleet, 0.8
				engines := fleetOf(t, 2, store(), r)
				defer closeAll(engines)
				time.Sleep(time.Until(time.Now().Truncate(time.Hour).Add(time.Hour)))
				windows := 2
				if r.Calendar.IsSet() {
					windows = 1 // a month takes long
				}
				for n := range windows {
					use(engines[0], 39)
					use(engines[1], 30)
					time.Sleep(time.Second)
					for _, e := range engines {
						require.Len(t, warningsOf(e), n)
					}
					use(engines[0], 25)
					for range 50 { // instances that lease learn it with what they lease
						use(engines[0], 1)
						use(engines[1], 1)
					}
					for _, e := range engines {
						require.Len(t, warningsOf(e), n+1)
						load(t, e, r)
						require.Regexp(t, `^r: \d+ of 100 tokens of the window are used, of which the rule says to warn \(warnAt 0.8\)$`, warningsOf(e)[n])
					}
					use(engines[0], 5)
					if !r.Shadow {
						quota := engines[0].Quotas("a")[0].Quota
						assert.GreaterOrEqual(t, quota.Used, 80.0)
						assert.InDelta(t, 100, quota.Capacity, 0)
						if r.Calendar.IsSet() {
							assert.Equal(t, 31*24*time.Hour, quota.Window, "January")
						}
					}
					time.Sleep(2 * time.Minute)
					if quota := engines[0].Quotas("a"); len(quota) > 0 && !r.Calendar.IsSet() {
						assert.Zero(t, quota[0].Quota.Capacity, "nobody has told of the present window")
					}
				}
			})
		})
	}
}

// use makes calls one after the other.
func use(e *core.Engine, calls int) {
	for range calls {
		enter(e, "a", 1)
		time.Sleep(100 * time.Millisecond) // what instances lease ahead counts as used
	}
}

// A value is warned of by what all instances have used of its window.
func TestInstancesWarnOfValuesByWhatTheFleetHasUsed(t *testing.T) {
	for name, algorithm := range map[string]hotparam.Algorithm{"fixed": hotparam.FixedWindow, "log": hotparam.SlidingWindow} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				set := rules.Set{HotParam: []hotparam.Rule{{
					Name: "r", Resource: "a", Param: rule.StringsOf("user"), Limit: 10, Window: time.Hour, Algorithm: algorithm, WarnAt: 0.8,
					Scope: rule.ScopeFleet, Fleet: rule.Fleet{Mode: fleet.ModeAsk},
					Values: rule.NumberMapOf(rule.NumberEntry{Key: rule.String("vip"), Value: 20}),
				}}}
				engines := fleetOf(t, 2, store())
				defer closeAll(engines)
				for _, e := range engines {
					require.NoError(t, e.Load(set))
				}
				time.Sleep(time.Until(time.Now().Truncate(time.Hour).Add(time.Hour)))
				for n := range 2 {
					enter(engines[0], "a", 7, core.String("user", "u1"))
					enter(engines[0], "a", 15, core.String("user", "vip"))
					enter(engines[1], "a", 1, core.String("user", "u2"))
					require.Len(t, warningsOf(engines[0]), 2*n)
					require.Len(t, warningsOf(engines[1]), n)
					enter(engines[1], "a", 9, core.String("user", "u1"))
					require.Len(t, warningsOf(engines[0]), 2*n, "it has not asked")
					require.Len(t, warningsOf(engines[1]), n+1)
					time.Sleep(10 * time.Minute) // limits of values are forgotten meanwhile
					enter(engines[0], "a", 1, core.String("user", "u1"))
					enter(engines[0], "a", 1, core.String("user", "vip"))
					require.Len(t, warningsOf(engines[0]), 2*n+2)
					enter(engines[1], "a", 2, core.String("user", "u1"))
					require.Len(t, warningsOf(engines[1]), n+1)
					time.Sleep(2 * time.Hour)
				}
				assert.Equal(t, `r: 8 of 10 tokens of the window of the value "u1" are used, of which the rule says to warn (warnAt 0.8)`, warningsOf(engines[1])[0])
				assert.Contains(t, warningsOf(engines[0])[1], `16 of 20 tokens of the window of the value "vip"`)
			})
		})
	}
}

// A rule that changes its window warns of the new ones.
func TestRuleThatHasAnotherWindowWarnsAgain(t *testing.T) {
	e, c := newEngineOf(t, rules.Set{})
	for n, window := range []time.Duration{time.Second, time.Hour, time.Minute} {
		require.NoError(t, e.Load(rules.Set{
			Flow: []flow.Rule{{Name: "f", Resource: "a", Limit: 10, Window: window, WarnAt: 0.8}},
			HotParam: []hotparam.Rule{{
				Name: "h", Resource: "a", Param: rule.StringsOf("user"), Limit: 10, Window: window, Algorithm: hotparam.FixedWindow, WarnAt: 0.8,
			}},
		}))
		enter(e, "a", 10, core.String("user", "u1"))
		require.Len(t, warningsOf(e), 2*n+2, window)
		c.Advance(3 * time.Hour)
	}
}
