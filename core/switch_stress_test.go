package core_test

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/adaptive"
	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/isolation"
	"github.com/penstock-go/penstock/rules"
)

// A call that waits goes on at once when the rule that it waits for is switched off, also if it waits for
// several, and goes on waiting for the others.
func TestCallsThatWaitForWhatIsSwitchedOffGoOn(t *testing.T) {
	slow := func(name string) flow.Rule {
		return flow.Rule{
			Name: name, Resource: "r", Limit: 1, Window: 10 * time.Second, Algorithm: flow.Throttle, MaxWait: time.Hour,
		}
	}
	bucket := slow("bucket")
	bucket.Algorithm = flow.TokenBucket
	pool := isolation.Rule{Name: "pool", Resource: "r", Limit: 1, MaxWait: time.Hour}
	for name, test := range map[string]struct {
		set rules.Set
		off []core.Scope // after the last of which all pass
	}{
		"throttle":      {rules.Set{Flow: []flow.Rule{slow("a")}}, []core.Scope{{Kind: "flow", Rule: "a"}}},
		"bucket":        {rules.Set{Flow: []flow.Rule{bucket}}, []core.Scope{{Kind: "flow"}}},
		"two throttles": {rules.Set{Flow: []flow.Rule{slow("a"), slow("b")}}, []core.Scope{{Kind: "flow", Rule: "a"}, {Kind: "flow", Rule: "b"}}},
		"two in the other order": {
			rules.Set{Flow: []flow.Rule{slow("a"), slow("b")}}, []core.Scope{{Kind: "flow", Rule: "b"}, {Kind: "flow", Rule: "a"}},
		},
		"places": {rules.Set{Isolation: []isolation.Rule{pool}}, []core.Scope{{Resource: "r"}}},
		"adaptive": {
			rules.Set{Adaptive: []adaptive.Rule{{Name: "a", Resource: "r", MinLimit: 1, MaxLimit: 1, InitialLimit: 1}}},
			[]core.Scope{{Kind: "adaptive"}},
		},
		"places, then a throttle": {
			rules.Set{Isolation: []isolation.Rule{pool}, Flow: []flow.Rule{slow("a")}}, []core.Scope{{Kind: "isolation"}, {Kind: "flow"}},
		},
		"a throttle, then places": {
			rules.Set{Isolation: []isolation.Rule{pool}, Flow: []flow.Rule{slow("a")}}, []core.Scope{{Kind: "flow"}, {Kind: "isolation"}},
		},
		"engine": {rules.Set{Isolation: []isolation.Rule{pool}, Flow: []flow.Rule{slow("a"), bucket}}, []core.Scope{{}}},
	} {
		t.Run(name, func(t *testing.T) {
			const waiting = 5
			e := core.New(core.Config{Clock: clock.NewVirtual(begin), Logger: quiet})
			defer e.Close()
			require.NoError(t, e.Load(test.set))
			first, err := e.Entry(t.Context(), "r")
			require.NoError(t, err)
			passed := make(chan error, waiting)
			guards := make([]core.Guard, waiting)
			for i := range waiting {
				go func() {
					var err error
					guards[i], err = e.Entry(t.Context(), "r")
					passed <- err
				}()
			}
			waits := func(n int64) func() bool {
				return func() bool { return e.Resource("r").Snapshot().Waiting == n }
			}
			require.Eventually(t, waits(waiting), time.Minute, time.Millisecond)
			for i, scope := range test.off {
				require.Eventually(t, waits(waiting), time.Minute, time.Millisecond, "before %v", test.off[i:])
				require.NoError(t, e.Switch(scope, core.SwitchOff))
			}
			for range waiting {
				select {
				case err := <-passed:
					require.NoError(t, err)
				case <-time.After(time.Minute):
					t.Fatal("calls still wait for what is off")
				}
			}
			first.Exit()
			for i := range guards {
				guards[i].Exit()
			}
			require.NoError(t, e.Switch(core.Scope{}, core.SwitchOff))
			for _, scope := range test.off {
				require.NoError(t, e.Switch(scope, ""))
			}
			requireNothingHeld(t, e, "r")
		})
	}
}

// requireNothingHeld fails if a rule on a resource, or the resource, has calls under way or waiting.
func requireNothingHeld(t *testing.T, e *core.Engine, resource string) {
	t.Helper()
	s := e.Resource(resource).Snapshot()
	require.Zero(t, s.Waiting)
	require.Zero(t, s.InFlight)
	for _, of := range s.Rules {
		for i, g := range of.Rule.Type().Gauges() {
			if g.Name == "in_flight" || g.Name == "waiting" {
				require.Zero(t, of.Gauges[i], "%s of %s %s", g.Name, of.Kind, of.Name)
			}
		}
	}
}

// Rules are switched off and on while calls pass, wait, give up and end: no call that begins after a rule
// was switched off, and before it is on again, is refused or waits; counts do not go below zero; and in the
// end nothing is held.
func TestSwitchingUnderLoadRefusesNoCallWhileOffAndLosesNothing(t *testing.T) {
	const goroutines, calls = 16, 400
	e := core.New(core.Config{Logger: quiet})
	defer e.Close()
	require.NoError(t, e.Load(rules.Set{
		Isolation: []isolation.Rule{{Name: "pool", Match: "r*", Shared: true, Limit: 2, MaxWait: time.Minute, MaxQueue: 4}},
		Flow: []flow.Rule{
			{Name: "queue", Match: "r*", Limit: 2000, Algorithm: flow.Throttle, MaxWait: time.Millisecond},
			{Name: "bucket", Match: "r*", Limit: 2000, Algorithm: flow.TokenBucket, MaxWait: time.Minute},
			{Name: "none", Resource: "r1"},
		},
		Adaptive: []adaptive.Rule{{Name: "a", Match: "r*", MinLimit: 1, MaxLimit: 2, InitialLimit: 1}},
	}))
	// Even while it is on or changing, odd while all is off.
	var phase atomic.Int64
	var offCalls atomic.Int64
	stop := make(chan struct{})
	var operator, callers sync.WaitGroup
	operator.Go(func() {
		scopes := []core.Scope{{}, {Kind: "flow"}, {Kind: "isolation", Rule: "pool"}, {Resource: "r0"}, {Kind: "adaptive"}}
		for i := 0; ; i++ {
			select {
			case <-stop:
				return
			default:
			}
			for _, scope := range scopes[1:] {
				assert.NoError(t, e.Switch(scope, core.SwitchOff))
				runtime.Gosched()
				assert.NoError(t, e.Switch(scope, ""))
			}
			assert.NoError(t, e.Switch(scopes[0], core.SwitchOff))
			before := offCalls.Load()
			phase.Add(1)
			for offCalls.Load() < before+5 { // so many calls come meanwhile
				select {
				case <-stop:
					return
				default:
					runtime.Gosched()
				}
			}
			phase.Add(1)
			assert.NoError(t, e.Switch(scopes[0], ""))
		}
	})
	for g := range goroutines {
		callers.Go(func() {
			for i := range calls {
				ctx, cancel := context.WithCancel(context.Background())
				if (g+i)%7 == 0 {
					go cancel()
				}
				before := phase.Load()
				guard, err := e.Entry(ctx, fmt.Sprint("r", i%3))
				if after := phase.Load(); before == after && before%2 == 1 {
					offCalls.Add(1)
					if ctx.Err() == nil {
						assert.NoError(t, err)
					}
				}
				runtime.Gosched()
				guard.Exit()
				cancel()
			}
		})
	}
	callers.Wait()
	close(stop)
	operator.Wait()
	require.NoError(t, e.Switch(core.Scope{}, core.SwitchOff))
	require.NoError(t, e.Switch(core.Scope{}, ""))
	assert.NotZero(t, offCalls.Load())
	for i := range 3 {
		requireNothingHeld(t, e, fmt.Sprint("r", i))
	}
}

// Names that are called for the first time while a pattern's rule is switched agree with those that were
// there.
func TestNewNamesWhileRulesAreSwitchedAreSwitchedToo(t *testing.T) {
	e := core.New(core.Config{Logger: quiet, MaxResources: 50})
	defer e.Close()
	load(t, e, flow.Rule{Name: "a", Match: "*"})
	scope := core.Scope{Kind: "flow", Rule: "a"}
	for round := range 30 {
		var callers sync.WaitGroup
		for g := range 4 {
			callers.Go(func() {
				for i := range 10 {
					enter(e, fmt.Sprint(round, " ", g, " ", i), 1)
				}
			})
		}
		state := []string{core.SwitchOff, ""}[round%2]
		require.NoError(t, e.Switch(scope, state))
		callers.Wait()
		for g := range 4 {
			for i := range 10 {
				assert.Equal(t, 1-round%2, enter(e, fmt.Sprint(round, " ", g, " ", i), 1))
			}
		}
	}
}
