package core_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/fleet"
	fleetmemory "github.com/penstock-go/penstock/fleet/memory"
	"github.com/penstock-go/penstock/hotparam"
	"github.com/penstock-go/penstock/internal/longtest"
	"github.com/penstock-go/penstock/rule"
	"github.com/penstock-go/penstock/rules"
)

// Newcomers from elsewhere pass, too, where invented values keep their places until their calls end, until
// the fleet has nothing of them any more, or for ever.
func TestNewcomersFromElsewherePassWhileInventedValuesHoldPlaces(t *testing.T) {
	if testing.Short() {
		t.Skip("one goroutine, and long")
	}
	const places = 5000
	for name, f := range map[string]*heldFlood{
		"calls of a minute": {rule: hotparam.Rule{Concurrency: 2, MaxValues: places}, holds: time.Minute},
		"calls that are given back after a minute": {
			rule: hotparam.Rule{Concurrency: 2, MaxValues: places, MaxAge: time.Minute}, holds: time.Hour,
		},
		"calls of ten minutes":       {rule: hotparam.Rule{Concurrency: 2}, holds: 10 * time.Minute, lasts: 12 * time.Minute},
		"leased by the fleet":        {rule: hotparam.Rule{Limit: 5, Window: time.Hour, MaxValues: places}, fleet: true},
		"leased, the default size":   {rule: hotparam.Rule{Limit: 5, Window: time.Hour}, fleet: true, lasts: 8 * time.Minute},
		"balances":                   {rule: hotparam.Rule{Limit: 5, Algorithm: hotparam.Prepaid, MaxValues: places}},
		"balances, the default size": {rule: hotparam.Rule{Limit: 5, Algorithm: hotparam.Prepaid}, lasts: 8 * time.Minute},
		"balances of the fleet": {
			rule: hotparam.Rule{Limit: 5, Algorithm: hotparam.Prepaid, MaxValues: places}, fleet: true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if f.lasts > 0 {
				longtest.Skip(t, "the scenes of few places")
			}
			synctest.Test(t, f.run)
			t.Logf("%d of %d calls refused", f.refused, f.calls)
			assert.LessOrEqual(t, f.refused, f.calls/100)
		})
	}
}

// heldFlood is an attack as flood is one, with calls that last.
type heldFlood struct {
	rule    hotparam.Rule
	holds   time.Duration // how long a call of an invented value lasts
	fleet   bool
	lasts   time.Duration // two minutes if it is 0
	refused int           // of honest calls
	calls   int
}

func (f *heldFlood) run(t *testing.T) {
	config := core.Config{Logger: quiet, Seed: 1}
	if f.fleet {
		config.Fleet = fleet.Config{Backend: fleetmemory.New(clock.System()), Instance: "a"}
		f.rule.Scope = rule.ScopeFleet
	}
	e := core.New(config)
	defer e.Close()
	f.rule.Name, f.rule.Resource, f.rule.Param = "per-value", "login", rule.StringsOf("user")
	require.NoError(t, e.Load(rules.Set{HotParam: []hotparam.Rule{f.rule}}))
	const perSecond = 400
	if f.lasts == 0 {
		f.lasts = 2 * time.Minute
	}
	var held []heldCall
	for i := range int(f.lasts.Seconds()) * perSecond {
		time.Sleep(time.Second / perSecond)
		if guard, err := e.Entry(context.Background(), "login", fromSixteen(i)...); err == nil {
			held = append(held, heldCall{&guard, time.Now().Add(f.holds)})
		}
		for len(held) > 0 && !time.Now().Before(held[0].until) {
			held[0].guard.Exit()
			held = held[1:]
		}
		if i%(perSecond/2) == 0 {
			f.calls++
			if guard, err := e.Entry(context.Background(), "login", newcomer(i)...); err == nil {
				guard.Exit()
			} else {
				f.refused++
			}
		}
	}
	for _, call := range held {
		call.guard.Exit()
	}
}

type heldCall struct {
	guard *core.Guard
	until time.Time
}
