package core_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/internal/longtest"
	"github.com/penstock-go/penstock/rule"
	"github.com/penstock-go/penstock/rules"
)

// stormed returns the rules of a set in which all limits are the same: 0, or one
// that nothing reaches. Rules are exact, patterns, queues and related by turns.
func stormed(prefix string, round int) (set []flow.Rule) {
	limit := []float64{0, 1e6, 1e6}[round%3]
	for i := range 8 {
		r := flow.Rule{Name: fmt.Sprint(prefix, i), Limit: limit}
		switch (i + round/3) % 5 { // a rule does not stay what it is
		case 0:
			r.Resource = "both"
		case 1:
			r.Match = "b*"
		case 2:
			r.Match, r.Shared = "~^both", true
		case 3:
			r.Resource, r.Related = "both", "other"
		case 4:
			r.Resource, r.Algorithm, r.MaxWait, r.Limit = "both", flow.Throttle, time.Second, min(limit, 5)
		}
		set = append(set, r)
	}
	rand.Shuffle(len(set), func(i, j int) { set[i], set[j] = set[j], set[i] })
	return set
}

// While code, two sources and confirmations change rules at once, every call is held
// against a whole set, every waiter comes to an end, and in the end nothing is left.
func TestCallsInAStormOfChanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var blocked, gaveUp atomic.Int64
		e := core.New(core.Config{Logger: quiet, MaxResources: 3, MaxRemoval: 0.4})
		defer e.Close()
		sources := []*memory{newMemory("s0"), newMemory("s1")}
		for _, s := range sources {
			require.NoError(t, e.Follow(t.Context(), s))
		}
		var changes, calls sync.WaitGroup
		var over atomic.Bool
		rounds := longtest.Short(60, 20)
		for worker := range 6 {
			calls.Go(func() {
				for i := 0; !over.Load(); i++ {
					ctx, cancel := context.WithCancel(t.Context())
					givesUp := time.AfterFunc(time.Duration(1+i%9)*time.Millisecond, cancel)
					guard, err := e.Entry(ctx, []string{"both", "b2", "other", fmt.Sprint("b", worker, i)}[i%4])
					givesUp.Stop()
					cancel()
					switch {
					case err == nil:
						guard.Exit()
					case errors.Is(err, context.Canceled):
						gaveUp.Add(1)
					case errors.Is(err, core.ErrBlocked):
						blocked.Add(1)
					default:
						assert.NoError(t, err)
					}
					if i%3 == 0 {
						time.Sleep(time.Millisecond)
					}
				}
			})
		}
		changes.Go(func() {
			for round := range rounds {
				assert.NoError(t, e.Load(rules.Set{Flow: stormed("code", round)}))
				time.Sleep(7 * time.Millisecond)
			}
		})
		for _, s := range sources {
			changes.Go(func() {
				for round := range rounds {
					text := "flow:\n"
					for _, r := range stormed(s.name, round)[:rand.IntN(9)] {
						text += "- " + ruleText(flow.Kind().WithDefaults(r)) + "\n"
					}
					s.put(core.Change{Complete: true, Documents: []core.Document{doc(fmt.Sprint(round%3), 1, text)}})
					time.Sleep(5 * time.Millisecond)
				}
			})
			changes.Go(func() {
				for range 10 * rounds { // as long as the source changes: else it is held back
					_ = e.Confirm(s.name)
					e.Explain("both")
					e.Status()
					time.Sleep(time.Millisecond / 2)
				}
			})
		}
		changes.Wait()
		for _, s := range sources {
			s.put(core.Change{Complete: true})
			_ = e.Confirm(s.name)
		}
		load(t, e, throttle("both", 1, time.Minute)) // somebody gives up, whatever was in force
		time.Sleep(20 * time.Millisecond)
		load(t, e)
		require.Zero(t, e.Status().Rules)
		over.Store(true)
		calls.Wait()
		assert.NotZero(t, blocked.Load())
		assert.NotZero(t, gaveUp.Load())

		time.Sleep(2 * time.Minute)
		for _, r := range e.Snapshot().Resources {
			assert.Equal(t, rule.OtherResources, r.Name, "is not forgotten")
			assert.Zero(t, r.Waiting)
		}
		for i := range 5 {
			enter(e, fmt.Sprint("new", i), 1)
		}
		assert.Len(t, e.Snapshot().Resources, 3+1, "three have a slot")
	})
}

// Those who wait under a rule are let go whatever becomes of it, and at once.
func TestWaitersOfRulesThatGo(t *testing.T) {
	queue := flow.Rule{Name: "queue", Match: "q*", Limit: 1, Window: time.Hour, Algorithm: flow.Throttle, MaxWait: 24 * time.Hour}
	exact := queue
	exact.Match, exact.Resource = "", "q1"
	window := flow.Rule{Name: "queue", Match: "q*", Limit: 1000}
	elsewhere := queue
	elsewhere.Match = "p*"
	shadow := queue
	shadow.Shadow = true
	for name, next := range map[string][]flow.Rule{
		"gone": nil, "another kind": {window}, "elsewhere": {elsewhere}, "a shadow": {shadow}, "another name": {{Match: "q*", Limit: 9}},
	} {
		for _, before := range []flow.Rule{queue, exact} {
			t.Run(name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					e := core.New(core.Config{Logger: quiet, MaxResources: 1})
					defer e.Close()
					load(t, e, before)
					var waiting sync.WaitGroup
					var passed atomic.Int64
					for i := range 6 {
						waiting.Go(func() { passed.Add(int64(enter(e, fmt.Sprint("q", i%3), 1))) })
					}
					synctest.Wait()
					began := time.Now()
					load(t, e, next...)
					waiting.Wait()
					assert.EqualValues(t, 6, passed.Load())
					assert.Less(t, time.Since(began), time.Second)
				})
			})
		}
	}
}
