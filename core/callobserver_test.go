package core_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/breaker"
	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/isolation"
	"github.com/penstock-go/penstock/rules"
)

// Whatever rules there are, every call that passes and every end is reported once.
func TestObserverReceivesPassesAndEnds(t *testing.T) {
	for name, set := range map[string]rules.Set{
		"none":            {},
		"window":          {Flow: []flow.Rule{{Resource: "r", Limit: 5}}},
		"pattern":         {Flow: []flow.Rule{{Match: "*", Limit: 5}}},
		"origin":          {Flow: []flow.Rule{{Resource: "r", Limit: 5, Origin: "a"}}},
		"queue":           {Flow: []flow.Rule{throttle("r", 5, 0)}},
		"one step":        {Breaker: []breaker.Rule{{Resource: "r", Threshold: 0.5}}},
		"two steps":       {Breaker: []breaker.Rule{{Resource: "r", Threshold: 0.5}}, Isolation: []isolation.Rule{{Resource: "r", Limit: 9}}},
		"shadow":          {Flow: []flow.Rule{{Resource: "r", Limit: 5, Shadow: true}}},
		"related":         {Flow: []flow.Rule{{Resource: "other", Limit: 5, Related: "r"}}},
		"window and step": {Flow: []flow.Rule{{Resource: "r", Limit: 5}}, Isolation: []isolation.Rule{{Resource: "r", Limit: 9}}},
	} {
		t.Run(name, func(t *testing.T) {
			var passes []core.Pass
			var ends []core.End
			var contexts []any
			c := clock.NewVirtual(begin)
			e := core.New(core.Config{Clock: c, Logger: quiet, Observer: core.Observer{
				Passed: func(ctx context.Context, p core.Pass) {
					contexts, passes = append(contexts, ctx.Value(callName{})), append(passes, p)
				},
				Ended: func(end core.End) { ends = append(ends, end) },
			}})
			defer e.Close()
			require.NoError(t, e.Load(set))
			var want []core.Pass
			var wantEnds []core.End
			for i := range 9 {
				options := []core.Option{core.Tokens(1), core.Origin("a")}
				if i == 3 {
					options = append(options, core.LongLived())
				}
				guard, err := e.Entry(context.WithValue(t.Context(), callName{}, i), "r", options...)
				at := c.Now()
				if err == nil {
					want = append(want, core.Pass{Resource: "r", Tokens: 1, At: at})
					wantEnds = append(wantEnds, core.End{
						Resource: "r", At: at.Add(time.Millisecond), Duration: time.Millisecond, Failed: i == 1, Ignored: i == 2, LongLived: i == 3,
					})
					assert.Equal(t, i, contexts[len(contexts)-1])
				}
				if i == 1 {
					guard.MarkFailed()
				}
				if i == 2 {
					guard.MarkIgnored()
				}
				c.Advance(time.Millisecond)
				guard.Exit()
				guard.Exit()
				if name == "queue" {
					c.Advance(time.Second)
				}
			}
			require.NotEmpty(t, want)
			assert.Equal(t, want, passes)
			assert.Equal(t, wantEnds, ends)
		})
	}
}

func TestObserverReceivesThePassOfACallThatWaited(t *testing.T) {
	var passes []core.Pass
	e := core.New(core.Config{Logger: quiet, Observer: core.Observer{
		Passed: func(_ context.Context, p core.Pass) { passes = append(passes, p) },
	}})
	defer e.Close()
	load(t, e, throttle("r", 1000, time.Second))
	require.Equal(t, 3, enter(e, "r", 3))
	assert.Len(t, passes, 3)
}

func TestCallIsNotMadeIfTheObserverOfPassesPanics(t *testing.T) {
	e := core.New(core.Config{Clock: clock.NewVirtual(begin), Logger: quiet, Observer: core.Observer{
		Passed: func(context.Context, core.Pass) { panic("observer") },
	}})
	defer e.Close()
	require.NoError(t, e.Load(rules.Set{Isolation: []isolation.Rule{{Name: "i", Resource: "r", Limit: 1}}}))
	for range 3 {
		assert.PanicsWithValue(t, "observer", func() { enter(e, "r", 1) })
	}
	assert.Zero(t, e.Resource("r").Snapshot().InFlight)
}

// BenchmarkEntryObserved compares calls that nobody observes with those that somebody does.
func BenchmarkEntryObserved(b *testing.B) {
	for name, observer := range map[string]core.Observer{
		"nobody": {}, "passes and ends": {Passed: func(context.Context, core.Pass) {}, Ended: func(core.End) {}},
	} {
		for _, rule := range []flow.Rule{{Resource: "other", Limit: 1}, {Resource: "r", Limit: flow.MaxLimit}} {
			b.Run(fmt.Sprint(name, ", rule of ", rule.Resource), func(b *testing.B) {
				e := core.New(core.Config{Logger: quiet, Observer: observer})
				defer e.Close()
				load(b, e, rule)
				b.ReportAllocs()
				for b.Loop() {
					guard, _ := e.Entry(context.Background(), "r")
					guard.Exit()
				}
			})
		}
	}
}
