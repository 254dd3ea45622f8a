package core_test

import (
	"context"
	"log/slog"
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
	"github.com/penstock-go/penstock/isolation"
	"github.com/penstock-go/penstock/rule"
	"github.com/penstock-go/penstock/rules"
)

// observedCall is a way in which calls come to an engine and end.
type observedCall func(ctx context.Context, e *core.Engine, opts ...core.Option)

var observedCalls = map[string]observedCall{
	"Entry": func(ctx context.Context, e *core.Engine, opts ...core.Option) {
		if guard, err := e.Entry(ctx, "r", opts...); err == nil {
			guard.Exit()
		}
	},
	"Entry, Cancel": func(ctx context.Context, e *core.Engine, opts ...core.Option) {
		if guard, err := e.Entry(ctx, "r", opts...); err == nil {
			guard.Cancel()
		}
	},
	"Do": func(ctx context.Context, e *core.Engine, opts ...core.Option) {
		_ = e.Do(ctx, "r", func(context.Context) error { return nil }, opts...)
	},
	"Call": func(ctx context.Context, e *core.Engine, opts ...core.Option) {
		_, _ = core.Call(ctx, e, "r", func(context.Context) (int, error) { return 0, nil }, opts...)
	},
	"Decide": func(ctx context.Context, e *core.Engine, opts ...core.Option) {
		if guard, _, err := e.Decide(ctx, "r", opts...); err == nil {
			guard.Exit()
		}
	},
	"Reserve": func(ctx context.Context, e *core.Engine, opts ...core.Option) {
		if r, err := e.Reserve(ctx, "r", opts...); err == nil {
			if guard, err := r.Begin(); err == nil {
				guard.Exit()
			} else {
				panic(err) // of a goroutine of the engine
			}
		}
	},
	"Arrive": func(ctx context.Context, e *core.Engine, opts ...core.Option) {
		a := e.Arrive(ctx, "r", func() {}, opts...)
		if _, done := a.Proceed(); done {
			if guard, err := a.Result(); err == nil {
				guard.Exit()
			}
		}
	},
}

// manyRules are rules of the kinds that hold something for a call: places, tokens, also those that are
// counted when it ends, and of one value.
func manyRules() rules.Set {
	return rules.Set{
		Isolation: []isolation.Rule{{Name: "i", Resource: "r", Limit: 2, MaxAge: time.Hour}},
		Flow: []flow.Rule{
			{Name: "demoting", Resource: "r", Limit: 1, Window: time.Hour, OnExceed: rule.ExceedDemote},
			{Name: "failures", Resource: "r", Limit: 5, Window: time.Hour, Counts: rule.CountsFailures},
			{Name: "prepaid", Resource: "r", Limit: 20, Algorithm: flow.Prepaid},
		},
		HotParam: []hotparam.Rule{
			{Name: "at-once", Resource: "r", Param: rule.StringsOf("user"), Concurrency: 2},
			{Name: "credit", Resource: "r", Param: rule.StringsOf("user"), Limit: 20, Algorithm: hotparam.Prepaid},
		},
	}
}

func TestCallWhosePassOrEndTheObserverFailsHoldsNothing(t *testing.T) {
	for name, call := range observedCalls {
		for _, place := range []string{"Passed", "Ended"} {
			if name == "Arrive" && place == "Passed" {
				continue
			}
			t.Run(name+" "+place, func(t *testing.T) {
				eachFailure(t, func(t *testing.T, f *foreign) {
					e := core.New(core.Config{Clock: clock.NewVirtual(begin), Logger: quiet, Observer: core.Observer{
						Passed: func(context.Context, core.Pass) { f.in("Passed") },
						Ended:  func(core.End) { f.in("Ended") },
					}})
					defer e.Close()
					require.NoError(t, e.Load(manyRules()))
					user := core.String("user", "ann")
					for range 5 {
						assert.False(t, f.run(place, func() { call(t.Context(), e, user) }))
					}
					of := e.Resource("r").Snapshot()
					assert.Zero(t, of.InFlight)
					for range 2 {
						_, err := e.Entry(t.Context(), "r", user, core.NoWait())
						require.NoError(t, err, "both places are free")
					}
					used := 2
					if place == "Ended" && name != "Entry, Cancel" {
						used += 5
					}
					for _, q := range e.Quotas("r", user) {
						if q.Quota.Prepaid {
							assert.EqualValues(t, 20-used, q.Quota.Remaining, q.Name)
						}
					}
				})
			})
		}
	}
}

func TestForcedStateEndsInTimeAfterTheObserverOfOneHasFailed(t *testing.T) {
	eachFailure(t, func(t *testing.T, f *foreign) {
		synctest.Test(t, func(t *testing.T) {
			var told []string
			e := core.New(core.Config{Logger: quiet, Observer: core.Observer{Forced: func(c core.ForcedChange) {
				if c.Ended {
					told = append(told, c.Rule)
					f.in("Forced")
				}
			}}})
			defer e.Close()
			set := manyRules()
			require.NoError(t, e.Load(set))
			place := "Forced"
			f.at.Store(&place)
			for _, of := range []struct {
				name string
				time time.Duration
			}{{"demoting", time.Second}, {"failures", time.Second}, {"prepaid", time.Minute}} {
				scope := core.Scope{Kind: rules.KindFlow, Rule: of.name}
				require.NoError(t, e.Switch(scope, core.SwitchOff, core.Order{For: of.time}))
			}
			time.Sleep(2 * time.Minute)
			synctest.Wait()
			assert.Empty(t, e.Status().Switches)
			assert.ElementsMatch(t, []string{"demoting", "failures", "prepaid"}, told)
		})
	})
}

func TestSwapsAreLoggedAfterTheLogHasFailedInAGoroutineOfTheEngine(t *testing.T) {
	eachFailure(t, func(t *testing.T, f *foreign) {
		synctest.Test(t, func(t *testing.T) {
			var logged atomic.Int64
			e := core.New(core.Config{Logger: slog.New(countingHandler{foreignHandler{slog.DiscardHandler, f}, &logged})})
			defer e.Close()
			swap := func(limit float64) { load(t, e, flow.Rule{Resource: "r", Limit: limit}) }
			swap(1)
			require.EqualValues(t, 1, logged.Load())
			swap(2)
			place := "penstock: rules swapped"
			f.at.Store(&place)
			time.Sleep(5 * time.Second)
			require.Nil(t, f.at.Load(), "the log has failed")
			swap(3)
			swap(4)
			time.Sleep(5 * time.Second)
			assert.EqualValues(t, 4, logged.Load())
		})
	})
}

// countingHandler counts the lines about swaps.
type countingHandler struct {
	foreignHandler
	swaps *atomic.Int64
}

func (h countingHandler) Handle(ctx context.Context, r slog.Record) error {
	if r.Message == "penstock: rules swapped" {
		h.swaps.Add(1)
	}
	return h.foreignHandler.Handle(ctx, r)
}

func TestCallOfAnyRoadWhoseContextHasEndedTakesNothing(t *testing.T) {
	for name, call := range observedCalls {
		t.Run(name, func(t *testing.T) {
			passes := 0
			e := core.New(core.Config{Clock: clock.NewVirtual(begin), Logger: quiet, Observer: core.Observer{
				Passed: func(context.Context, core.Pass) { passes++ },
			}})
			defer e.Close()
			require.NoError(t, e.Load(manyRules()))
			ctx, cancel := context.WithCancel(t.Context())
			cancel()
			user := core.String("user", "ann")
			call(ctx, e, user)
			assert.Zero(t, passes)
			assert.Zero(t, e.Resource("r").Snapshot().InFlight)
			for _, q := range e.Quotas("r", user) {
				if q.Quota.Prepaid {
					assert.EqualValues(t, 20, q.Quota.Remaining, q.Name)
				}
			}
		})
	}
}
