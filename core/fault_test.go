package core_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/breaker"
	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/fault"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/isolation"
	"github.com/penstock-go/penstock/rule"
	"github.com/penstock-go/penstock/rules"
)

// newFaults returns an engine with rules, on the clock of a test or of its synctest bubble.
// Fault rules end in a day unless they say.
func newFaults(t testing.TB, on clock.Clock, set rules.Set) *core.Engine {
	t.Helper()
	e := core.New(core.Config{Clock: on, Logger: quiet, Seed: 42})
	t.Cleanup(e.Close)
	loadFaults(t, e, set)
	return e
}

func loadFaults(t testing.TB, e *core.Engine, set rules.Set) {
	t.Helper()
	for i := range set.Fault {
		if set.Fault[i].Until.IsZero() {
			set.Fault[i].Until = e.Clock().Now().Add(24 * time.Hour).Time()
		}
	}
	require.NoError(t, e.Load(set))
}

// outcomes counts how calls ended that goroutines have made.
type outcomes struct {
	all                      sync.WaitGroup
	passed, injected, others atomic.Int64
}

func (o *outcomes) enter(ctx context.Context, e *core.Engine, resource string, opts ...core.Option) {
	o.all.Go(func() {
		guard, err := e.Entry(ctx, resource, opts...)
		var block *core.BlockError
		switch {
		case err == nil:
			o.passed.Add(1)
			guard.Exit()
		case errors.As(err, &block) && block.Reason == rule.Injected:
			o.injected.Add(1)
		default:
			o.others.Add(1)
		}
	})
}

func assertShare(t *testing.T, percent float64, calls int, got int64) {
	t.Helper()
	mean := float64(calls) * percent / 100
	assert.InDelta(t, mean, got, 4*math.Sqrt(mean*(1-percent/100)), "%v %% of %d calls", percent, calls)
}

// A call that waits for a rule behind the fault is asked about several times, and is
// chosen once.
func TestFaultChoosesItsShareOfCallsThatWaitForOtherRules(t *testing.T) {
	const calls, percent = 5000, 20
	for name, behind := range map[string]rules.Set{
		"throttle":  {Flow: []flow.Rule{{Resource: "r", Limit: 1000, Algorithm: flow.Throttle, MaxWait: time.Hour}}},
		"isolation": {Isolation: []isolation.Rule{{Resource: "r", Limit: 1, MaxWait: time.Hour, MaxQueue: calls}}},
		"breaker":   {Breaker: []breaker.Rule{{Resource: "r", Threshold: 0.5}}},
	} {
		for kind, f := range map[string]fault.Rule{
			"abort":           {Resource: "r", Percent: percent, Abort: fault.Abort{HTTP: 503}},
			"delay and abort": {Resource: "r", Percent: percent, Delay: time.Second, Abort: fault.Abort{HTTP: 503}},
		} {
			t.Run(kind+" before "+name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					set := behind
					set.Fault = []fault.Rule{f}
					e := newFaults(t, clock.System(), set)
					var o outcomes
					for range calls {
						o.enter(context.Background(), e, "r")
					}
					o.all.Wait()
					assertShare(t, percent, calls, o.injected.Load())
					assert.EqualValues(t, calls, o.injected.Load()+o.passed.Load())
					assert.Equal(t, o.injected.Load(), int64(faultOn(t, e, "r").Gauges[1]))
					assert.EqualValues(t, o.injected.Load(), faultOn(t, e, "r").Blocked)
				})
			})
		}
	}
}

// faultOn returns the state of the one fault rule on a resource.
func faultOn(t *testing.T, e *core.Engine, resource string) core.RuleSnapshot {
	t.Helper()
	for _, of := range e.Snapshot().Resources {
		for _, snapshot := range of.Rules {
			if of.Name == resource && snapshot.Kind == rules.KindFault {
				return snapshot
			}
		}
	}
	t.Fatalf("no fault rule on %q", resource)
	return core.RuleSnapshot{}
}

func TestFaultDelaysItsShareOfCalls(t *testing.T) {
	const calls, percent = 5000, 20
	for name, opts := range map[string][]core.Option{"plain": nil, "that do not want to wait": {core.NoWait()}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				e := newFaults(t, clock.System(), rules.Set{Fault: []fault.Rule{
					{Resource: "r", Percent: percent, Delay: 200 * time.Millisecond},
				}})
				var o outcomes
				start := time.Now()
				for range calls {
					o.enter(context.Background(), e, "r", opts...)
				}
				synctest.Wait()
				assertShare(t, percent, calls, calls-o.passed.Load())
				assert.Equal(t, calls-o.passed.Load(), int64(faultOn(t, e, "r").Gauges[0]))
				o.all.Wait()
				assert.EqualValues(t, calls, o.passed.Load())
				assert.Equal(t, 200*time.Millisecond, time.Since(start))
			})
		})
	}
}

func TestKillSwitchLetsAllDelayedCallsGoOnAtOnce(t *testing.T) {
	const calls = 1000
	switches := map[string]func(e *core.Engine, state string) error{
		"of the kind": func(e *core.Engine, state string) error { return e.Control(core.Scope{Kind: rules.KindFault}, state) },
		"of the rule": func(e *core.Engine, state string) error {
			return e.Control(core.Scope{Kind: rules.KindFault, Rule: "slow"}, state)
		},
	}
	for name, control := range switches {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				e := newFaults(t, clock.System(), rules.Set{Fault: []fault.Rule{{
					Name: "slow", Match: "r*", Percent: 100, Delay: 10 * time.Minute, Abort: fault.Abort{HTTP: 503},
				}}})
				var o outcomes
				start := time.Now()
				for i := range calls {
					o.enter(context.Background(), e, fmt.Sprint("r", i%10))
				}
				synctest.Wait()
				require.Zero(t, o.passed.Load())
				require.NoError(t, control(e, fault.Off))
				o.enter(context.Background(), e, "r0")
				o.enter(context.Background(), e, "r of a new name")
				o.all.Wait()
				assert.EqualValues(t, calls+2, o.passed.Load())
				assert.Zero(t, time.Since(start))
				assert.Equal(t, fault.Off, faultOn(t, e, "r0").State)

				require.NoError(t, control(e, ""))
				o.enter(context.Background(), e, "r0")
				o.all.Wait()
				assert.EqualValues(t, 1, o.injected.Load())
			})
		})
	}
}

func TestDelayEndsWithTheContextOfTheCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newFaults(t, clock.System(), rules.Set{Fault: []fault.Rule{{Resource: "r", Percent: 100, Delay: time.Minute}}})
		for name, opts := range map[string][]core.Option{"plain": nil, "no wait": {core.NoWait()}} {
			start := time.Now()
			ctx, cancel := context.WithTimeout(context.Background(), time.Second)
			_, err := e.Entry(ctx, "r", opts...)
			require.ErrorIs(t, err, context.DeadlineExceeded, name)
			assert.Equal(t, time.Second, time.Since(start), "it is not refused before, as a slow service would not")
			cancel()
		}
		assert.Zero(t, faultOn(t, e, "r").Gauges[0], "nobody is in a delay")
	})
}

func TestDelayEndsWhenTheRuleEndsChangesOrGoes(t *testing.T) {
	slow := fault.Rule{Resource: "r", Percent: 100, Delay: 10 * time.Minute, Abort: fault.Abort{HTTP: 503}}
	for name, change := range map[string]func(t *testing.T, e *core.Engine, slow fault.Rule){
		"ends": nil,
		"is less": func(t *testing.T, e *core.Engine, slow fault.Rule) {
			slow.Percent = 1
			require.NoError(t, e.Load(rules.Set{Fault: []fault.Rule{slow}}))
		},
		"is a shadow": func(t *testing.T, e *core.Engine, slow fault.Rule) {
			slow.Shadow = true
			require.NoError(t, e.Load(rules.Set{Fault: []fault.Rule{slow}}))
		},
		"is for others": func(t *testing.T, e *core.Engine, slow fault.Rule) {
			slow.Origin = "mobile"
			require.NoError(t, e.Load(rules.Set{Fault: []fault.Rule{slow}}))
		},
		"is gone": func(t *testing.T, e *core.Engine, _ fault.Rule) {
			require.NoError(t, e.Load(rules.Set{}))
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				slow := slow
				if change == nil {
					slow.Until = time.Now().Add(time.Second)
				} else {
					slow.Until = time.Now().Add(24 * time.Hour)
				}
				e := newFaults(t, clock.System(), rules.Set{Fault: []fault.Rule{slow}})
				var o outcomes
				start := time.Now()
				for range 10 {
					o.enter(context.Background(), e, "r")
				}
				synctest.Wait()
				require.Zero(t, o.passed.Load())
				if change != nil {
					time.Sleep(time.Second)
					change(t, e, slow)
				}
				o.all.Wait()
				assert.EqualValues(t, 10, o.passed.Load())
				assert.Equal(t, time.Second, time.Since(start))
			})
		})
	}
}

func TestFaultIsForTheCallsOfItsRuleAlone(t *testing.T) {
	abort := fault.Abort{HTTP: 503}
	c := clock.NewVirtual(begin)
	e := newFaults(t, c, rules.Set{Fault: []fault.Rule{
		{Resource: "one", Percent: 100, Abort: abort},
		{Match: "many:*", Percent: 100, Abort: abort},
		{Name: "shared", Match: "shared:*", Shared: true, Percent: 100, Abort: abort},
		{Resource: "origin", Percent: 100, Abort: abort, Origin: "mobile"},
		{Resource: "shadow", Percent: 100, Delay: 10 * time.Minute, Shadow: true},
		{Resource: "over", Percent: 100, Abort: abort, Until: begin},
	}})
	for resource, passes := range map[string]bool{
		"one": false, "many:a": false, "shared:a": false, "another": true, "origin": true, "shadow": true, "over": true,
	} {
		assert.Equal(t, passes, enter(e, resource, 1) == 1, resource)
	}
	assert.Zero(t, enter(e, "origin", 1, core.Origin("mobile")))
	guard, err := e.Entry(context.Background(), "shadow")
	require.NoError(t, err)
	assert.Equal(t, rules.KindFault, guard.WouldBlock().Kind)
	guard.Exit()
	assert.EqualValues(t, 2, faultOn(t, e, "shadow").WouldBlock)

	_, err = e.Entry(context.Background(), "one")
	require.EqualError(t, err, `penstock: "one" blocked by fault "one"`)
	var block *core.BlockError
	require.ErrorAs(t, err, &block)
	assert.Equal(t, rule.Injected, block.Reason)
	assert.Equal(t, rule.Answer{HTTP: 503}, block.Answer)
}

// Resources that share a rule have numbers of their own: what is drawn for the calls of
// one says nothing of those of another.
func TestResourcesThatShareAFaultDrawByThemselves(t *testing.T) {
	const calls = 2000
	e := newFaults(t, clock.NewVirtual(begin), rules.Set{Fault: []fault.Rule{
		{Match: "r*", Shared: true, Percent: 50, Abort: fault.Abort{HTTP: 503}},
	}})
	same := 0
	for range calls {
		if enter(e, "r1", 1) == enter(e, "r2", 1) {
			same++
		}
	}
	assertShare(t, 50, calls, int64(same))
}

func TestInjectedFaultIsAFailureOfWhatCalledIt(t *testing.T) {
	c := clock.NewVirtual(begin)
	e := newFaults(t, c, rules.Set{
		Fault:   []fault.Rule{{Resource: "pay", Percent: 100, Abort: fault.Abort{HTTP: 503}}},
		Flow:    []flow.Rule{{Resource: "closed", Limit: 0}},
		Breaker: []breaker.Rule{{Name: "order", Match: "order by *", Threshold: 1, MinCalls: 3}},
	})
	state := func(callee string) string {
		for range 3 {
			_ = e.Do(context.Background(), "order by "+callee, func(ctx context.Context) error {
				_, err := e.Entry(ctx, callee)
				return fmt.Errorf("the order failed: %w", err)
			})
		}
		for resource, of := range e.RuleStates(func(r rule.Rule) bool { return r.Key().Name == "order" }) {
			if resource == "order by "+callee {
				return of.State
			}
		}
		return ""
	}
	assert.Equal(t, breaker.Open, state("pay"))
	assert.Equal(t, breaker.Closed, state("closed"), "another refusal tells nothing of what was called")
}

func TestFaultRuleAllocatesNothingOnTheWayOfACall(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector allocates")
	}
	c := clock.NewVirtual(begin)
	e := newFaults(t, c, rules.Set{Fault: []fault.Rule{
		{Resource: "active", Percent: 50, Abort: fault.Abort{HTTP: 503}},
		{Resource: "over", Percent: 50, Delay: time.Second, Until: begin},
	}})
	for _, resource := range []string{"active", "over"} {
		enter(e, resource, 100)
		assert.Zero(t, testing.AllocsPerRun(1000, func() { enter(e, resource, 1) }), resource)
	}
}

// What an operator forces is in no document: a process that starts does not know of it.
func TestForcedStateIsThatOfTheProcess(t *testing.T) {
	c := clock.NewVirtual(begin)
	set := rules.Set{Fault: []fault.Rule{{Resource: "r", Percent: 100, Abort: fault.Abort{HTTP: 503}}}}
	e := newFaults(t, c, set)
	require.NoError(t, e.Control(core.Scope{Kind: rules.KindFault}, fault.Off))
	require.Equal(t, 1, enter(e, "r", 1))
	e.Close()
	assert.Zero(t, enter(newFaults(t, c, set), "r", 1))
}
