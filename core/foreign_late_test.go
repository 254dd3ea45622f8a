package core_test

import (
	"context"
	"fmt"
	"math"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/hotparam"
	"github.com/penstock-go/penstock/rule"
	"github.com/penstock-go/penstock/rules"
)

// A recording reads the attributes of a call once more, when the call has passed.
func TestCallWhoseRecordingAnOptionFailsHoldsNothing(t *testing.T) {
	throttled := foreignSet()
	throttled.Flow = append(throttled.Flow, flow.Rule{Name: "t", Resource: "r", Limit: 1e6, Algorithm: flow.Throttle, MaxWait: time.Minute})
	alone := rules.Set{}
	for name, set := range map[string]rules.Set{"chain": foreignSet(), "one step": alone, "behind a throttle": throttled} {
		t.Run(name, func(t *testing.T) {
			eachFailure(t, func(t *testing.T, f *foreign) {
				e := core.New(core.Config{Clock: clock.NewVirtual(begin), Logger: quiet, Recorder: &core.Recorder{}})
				defer e.Close()
				set.HotParam = []hotparam.Rule{{Resource: "r", Param: rule.StringsOf("user"), Limit: 1, Window: time.Minute}}
				require.NoError(t, e.Load(set))
				times := 0
				read := func(_ *int, _ string) rule.Attribute {
					times++
					f.in(fmt.Sprint("read ", times))
					return rule.String("u")
				}
				assert.False(t, f.run("read 2", func() { _, _ = e.Entry(t.Context(), "r", core.Attributes(read, new(int))) }))
				assert.Equal(t, 2, times)
				assert.Zero(t, e.Resource("r").Snapshot().InFlight)
				guard, err := e.Entry(t.Context(), "r", core.String("user", "u"))
				require.NoError(t, err, "the one token of the value is there")
				guard.Exit()
				require.NoError(t, e.Load(foreignSet()))
				if name != "one step" {
					holdsNothing(t, e, 1)
				}
			})
		})
	}
}

func TestDecisionThatARuleCannotTellHoldsNothing(t *testing.T) {
	eachFailure(t, func(t *testing.T, f *foreign) {
		kind := foreignKind(f, rule.PhaseRate, rule.Pass)
		e := core.New(core.Config{Clock: clock.NewVirtual(begin), Logger: quiet, Kinds: []rule.Definition{kind}})
		defer e.Close()
		require.NoError(t, e.Load(foreignSet(kind.Of(toyConfig{Name: "x", Resource: "r"}))))
		assert.False(t, f.run("Status", func() { _, _, _ = e.Decide(t.Context(), "r") }))
		require.NoError(t, e.Load(foreignSet()))
		holdsNothing(t, e, 0)
	})
}

func TestCallThatIsCancelledInVainHoldsNothing(t *testing.T) {
	for _, place := range []string{"Now", "GiveBack"} {
		t.Run(place, func(t *testing.T) {
			eachFailure(t, func(t *testing.T, f *foreign) {
				kind := foreignKind(f, rule.PhaseRate, rule.Pass)
				e := core.New(core.Config{Clock: foreignClock{clock.NewVirtual(begin), f}, Logger: quiet, Kinds: []rule.Definition{kind}})
				defer e.Close()
				require.NoError(t, e.Load(foreignSet(kind.Of(toyConfig{Name: "x", Resource: "r"}))))
				guard, err := e.Entry(t.Context(), "r")
				require.NoError(t, err)
				assert.False(t, f.run(place, func() { guard.Cancel() }))
				assert.Zero(t, e.Resource("r").Snapshot().InFlight)
				guard.Cancel()
				require.NoError(t, e.Load(foreignSet()))
				holdsNothing(t, e, 0)
			})
		})
	}
}

// A reservation that waits for a throttle is decided by a goroutine of its own.
func TestReservationThatFailsDoesNotPass(t *testing.T) {
	eachFailure(t, func(t *testing.T, f *foreign) {
		synctest.Test(t, func(t *testing.T) {
			kind := foreignKind(f, rule.PhaseAccess, rule.Pass)
			e := core.New(core.Config{Logger: quiet, Kinds: []rule.Definition{kind}})
			defer e.Close()
			set := foreignSet(kind.Of(toyConfig{Name: "x", Resource: "r"}))
			set.Flow = append(set.Flow, flow.Rule{Name: "t", Resource: "r", Limit: 1, Algorithm: flow.Throttle, MaxWait: time.Minute})
			require.NoError(t, e.Load(set))
			require.Equal(t, 1, enter(e, "r", 1))
			r, err := e.Reserve(t.Context(), "r")
			require.NoError(t, err)
			place := "Acquire"
			f.at.Store(&place)
			guard, err := r.Begin()
			require.ErrorContains(t, err, "was not decided")
			guard.Exit()
			time.Sleep(time.Minute)
			require.NoError(t, e.Load(foreignSet()))
			holdsNothing(t, e, 0)
		})
	})
}

func TestReservationEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := core.New(core.Config{Logger: quiet})
		defer e.Close()
		require.NoError(t, e.Load(foreignSet()))
		for range 3 { // more than there are places
			ctx, cancel := context.WithCancel(t.Context())
			r, err := e.Reserve(ctx, "r")
			require.NoError(t, err)
			cancel()
			synctest.Wait()
			assert.Zero(t, e.Resource("r").Snapshot().InFlight)
			_, err = r.Begin()
			require.ErrorIs(t, err, context.Canceled)
			r.Cancel()
		}
		ctx, cancel := context.WithCancel(t.Context())
		r, err := e.Reserve(ctx, "r")
		require.NoError(t, err)
		cancel()
		guard, err := r.Begin() // perhaps before anybody has noticed
		require.ErrorIs(t, err, context.Canceled)
		guard.Exit()
		synctest.Wait()
		ctx, cancel = context.WithCancel(t.Context())
		r, err = e.Reserve(ctx, "r")
		require.NoError(t, err)
		guard, err = r.Begin()
		require.NoError(t, err)
		cancel()
		synctest.Wait()
		assert.EqualValues(t, 1, e.Resource("r").Snapshot().InFlight, "its guard ends it")
		guard.Exit()
		holdsNothing(t, e, 1)
	})
}

// settlingLimiter fails when a call is settled, or is said to be long-lived.
type settlingLimiter struct{ foreignLimiter }

func (l *settlingLimiter) Settle(clock.Instant, clock.Instant, rule.Ticket, int32) { l.in("Settle") }

func (l *settlingLimiter) MarkLongLived(rule.Ticket) { l.in("MarkLongLived") }

func settlingKind(f *foreign) *rule.Type[toyConfig] {
	common := func(c *toyConfig) rule.Common {
		return rule.Common{Name: &c.Name, Resource: &c.Resource, Match: &c.Match, Shared: &c.Shared, Origin: &c.Origin, Shadow: &c.Shadow}
	}
	return rule.Define(rule.Spec[toyConfig]{
		Kind: "settling", Phase: rule.PhaseAccess, Reason: rule.Overloaded, Common: common,
		New: func(*toyConfig, rule.Env) rule.Limiter {
			return &settlingLimiter{foreignLimiter{foreign: f, decision: rule.Pass}}
		},
	})
}

func TestRulesBehindOneThatFailsAreSettled(t *testing.T) {
	for _, longLived := range []bool{false, true} { // with a record
		t.Run(fmt.Sprint(longLived), func(t *testing.T) {
			eachFailure(t, func(t *testing.T, f *foreign) {
				kind := settlingKind(f)
				e := core.New(core.Config{Clock: clock.NewVirtual(begin), Logger: quiet, Kinds: []rule.Definition{kind}})
				defer e.Close()
				require.NoError(t, e.Load(foreignSet(kind.Of(toyConfig{Name: "x", Resource: "r"}))))
				guard, err := e.Entry(t.Context(), "r")
				require.NoError(t, err)
				if longLived {
					assert.False(t, f.run("MarkLongLived", guard.MarkLongLived))
				}
				assert.False(t, f.run("Settle", func() { guard.Settle(3) }))
				guard.Exit()
				require.NoError(t, e.Load(foreignSet()))
				holdsNothing(t, e, 3)
			})
		})
	}
}

// The clock fails when a call within another one begins or ends to wait: the outer one is under way
// again all the same.
func TestCallWithinWhichTheClockFailsGoesOn(t *testing.T) {
	eachFailure(t, func(t *testing.T, f *foreign) {
		c := clock.NewVirtual(begin)
		e := core.New(core.Config{Clock: foreignClock{c, f}, Logger: quiet})
		defer e.Close()
		set := poolWithin()
		set.Isolation[0].MaxWait = time.Minute
		require.NoError(t, e.Load(set))
		held, err := e.Entry(t.Context(), "pool")
		require.NoError(t, err)
		warm, err := e.Entry(t.Context(), "page", core.Inbound()) // calls have waited
		require.NoError(t, err)
		wait := func(ctx context.Context) {
			a := e.Arrive(ctx, "pool", func() {})
			a.Proceed()
			c.Advance(2 * time.Minute)
			a.Proceed()
		}
		wait(warm.Context(t.Context()))
		warm.Exit()
		for reading := 1; reading <= 6; reading++ {
			outer, err := e.Entry(t.Context(), "page", core.Inbound())
			require.NoError(t, err)
			ctx := outer.Context(t.Context())
			f.run("nothing", func() {
				failClock(f, reading)
				wait(ctx)
			})
			f.at.Store(nil)
			for range 2 {
				wait(ctx)
				assert.InDelta(t, 1, underWayBy(e, "page"), 0, "reading %d", reading)
			}
			outer.Exit()
			assert.Zero(t, underWayBy(e, "page"), "reading %d", reading)
		}
		held.Exit()
	})
}

// failClock has the clock fail at its n-th reading from now on.
func failClock(f *foreign, n int) {
	fail := f.fail
	left := n
	place := "Now"
	f.fail = func() {
		if left--; left > 0 {
			f.at.Store(&place)
			return
		}
		f.fail = fail
		fail()
	}
	f.at.Store(&place)
}

// nanLimiter does not know its load.
type nanLimiter struct {
	foreignLimiter
	load float64
}

func (l *nanLimiter) Load(clock.Instant) rule.Load { return rule.Load{Utilization: l.load} }

func TestLoadThatIsNoNumberIsForgotten(t *testing.T) {
	limiter := &nanLimiter{foreignLimiter{foreign: &foreign{}, decision: rule.Pass}, math.NaN()}
	common := func(c *toyConfig) rule.Common {
		return rule.Common{Name: &c.Name, Resource: &c.Resource, Match: &c.Match, Shared: &c.Shared, Origin: &c.Origin, Shadow: &c.Shadow}
	}
	kind := rule.Define(rule.Spec[toyConfig]{
		Kind: "nan", Phase: rule.PhaseAccess, Reason: rule.Overloaded, Common: common,
		New: func(*toyConfig, rule.Env) rule.Limiter { return limiter },
	})
	c := clock.NewVirtual(begin)
	e := core.New(core.Config{Clock: c, Logger: quiet, Kinds: []rule.Definition{kind}})
	defer e.Close()
	require.NoError(t, e.Load(rules.Set{Custom: []rule.Rule{kind.Of(toyConfig{Name: "x", Resource: "r"})}}))
	ask := func() rule.LoadLevel {
		c.Advance(time.Second)
		guard, err := e.Entry(t.Context(), "r")
		require.NoError(t, err)
		defer guard.Exit()
		return guard.Load()
	}
	for range 10 {
		assert.Equal(t, rule.LoadNone, ask())
	}
	limiter.load = 1
	for range 10 {
		ask()
	}
	assert.Equal(t, rule.LoadModerate, ask())
}

// idleLimiter does not say whether it is idle, while it fails.
type idleLimiter struct {
	foreignLimiter
	fails *atomic.Bool
}

func (l *idleLimiter) Idle(clock.Instant) bool {
	if l.fails.Load() {
		panic("foreign")
	}
	return false
}

func TestResourcesBehindOneWhoseLimiterFailsAreForgotten(t *testing.T) {
	common := func(c *toyConfig) rule.Common {
		return rule.Common{Name: &c.Name, Resource: &c.Resource, Match: &c.Match, Shared: &c.Shared, Origin: &c.Origin, Shadow: &c.Shadow}
	}
	fails := new(atomic.Bool)
	kind := rule.Define(rule.Spec[toyConfig]{
		Kind: "idle", Phase: rule.PhaseAccess, Reason: rule.Overloaded, Common: common,
		New: func(*toyConfig, rule.Env) rule.Limiter {
			return &idleLimiter{foreignLimiter{foreign: &foreign{}, decision: rule.Pass}, fails}
		},
	})
	c := clock.NewVirtual(begin)
	e := core.New(core.Config{Clock: c, Logger: quiet, Kinds: []rule.Definition{kind}})
	defer e.Close()
	require.NoError(t, e.Load(rules.Set{Custom: []rule.Rule{kind.Of(toyConfig{Name: "x", Match: "bad*"})}}))
	enter := func(name string) {
		defer func() { _ = recover() }()
		guard, err := e.Entry(t.Context(), name)
		require.NoError(t, err)
		guard.Exit()
	}
	for i := range 100 {
		enter(fmt.Sprint("good", i))
		enter(fmt.Sprint("bad", i))
	}
	fails.Store(true)
	for i := range 1000 {
		c.Advance(time.Minute)
		enter(fmt.Sprint("new", i%10))
	}
	passed := func(name string) (calls uint64, told bool) {
		defer func() { _ = recover() }() // looking at a resource may sweep, too
		return e.Resource(name).Snapshot().Passed, true
	}
	for i := range 100 {
		name, calls, told := fmt.Sprint("good", i), uint64(0), false
		for !told {
			calls, told = passed(name)
		}
		assert.Zero(t, calls, "it is forgotten")
	}
	fails.Store(false)
}
