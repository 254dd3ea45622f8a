package core_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/breaker"
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/hotparam"
	"github.com/penstock-go/penstock/isolation"
	"github.com/penstock-go/penstock/rule"
	"github.com/penstock-go/penstock/rules"
)

func TestCancelledCallHasTakenNothing(t *testing.T) {
	many := func(n int) (set rules.Set) {
		for i := range n {
			set.Isolation = append(set.Isolation, isolation.Rule{Name: fmt.Sprint(i), Resource: "r", Limit: 3})
		}
		return set
	}
	bucket := flow.Rule{Resource: "r", Limit: 3, Algorithm: flow.TokenBucket}
	for name, set := range map[string]rules.Set{
		"window":        {Flow: []flow.Rule{{Resource: "r", Limit: 3}}},
		"fixed window":  {Flow: []flow.Rule{{Resource: "r", Limit: 3, Algorithm: flow.FixedWindow, Window: time.Minute}}},
		"bucket":        {Flow: []flow.Rule{bucket}},
		"isolation":     many(1),
		"two":           many(2),
		"twelve":        many(12),
		"hotParam":      {HotParam: []hotparam.Rule{{Resource: "r", Param: rule.StringsOf("user"), Limit: 3}}},
		"hotParam pool": {HotParam: []hotparam.Rule{{Resource: "r", Param: rule.StringsOf("user"), Concurrency: 3}}},
		"all": {
			Flow:      []flow.Rule{{Name: "w", Resource: "r", Limit: 3}, bucket},
			Isolation: many(1).Isolation,
			HotParam:  []hotparam.Rule{{Resource: "r", Param: rule.StringsOf("user"), Limit: 3}, {Name: "pool", Resource: "r", Param: rule.StringsOf("user"), Concurrency: 3}},
		},
		"a shadow": {Flow: []flow.Rule{{Resource: "r", Limit: 3}}, Isolation: []isolation.Rule{{Resource: "r", Limit: 3, Shadow: true}}},
	} {
		t.Run(name, func(t *testing.T) {
			e, _ := newEngine(t)
			require.NoError(t, e.Load(set))
			enter := func() (core.Guard, error) { return e.Entry(context.Background(), "r", core.String("user", "u")) }
			for range 10 { // more than would pass
				guard, err := enter()
				require.NoError(t, err)
				require.Nil(t, guard.WouldBlock())
				guard.Cancel()
				guard.Cancel()
				guard.Exit()
			}
			guards := make([]core.Guard, 3)
			for i := range guards {
				var err error
				guards[i], err = enter()
				require.NoError(t, err)
				require.Nil(t, guards[i].WouldBlock())
			}
			if name != "a shadow" {
				_, err := enter()
				require.ErrorIs(t, err, core.ErrBlocked, "and no more than that")
			}
			for i := range guards {
				guards[i].Exit()
				guards[i].Cancel()
			}
			snapshot := e.Resource("r").Snapshot()
			assert.EqualValues(t, 3, snapshot.Passed)
			assert.EqualValues(t, 3, snapshot.Completed)
			assert.Zero(t, snapshot.InFlight)
		})
	}
}

func TestCancelOfTheZeroGuardDoesNothing(*testing.T) {
	var guard core.Guard
	guard.Cancel()
}

func TestCancelOfACallWithoutRulesAndOfAStream(t *testing.T) {
	e, _ := newEngine(t)
	for _, opts := range [][]core.Option{nil, {core.LongLived()}, {core.Tokens(7)}} {
		guard, err := e.Entry(context.Background(), "free", opts...)
		require.NoError(t, err)
		guard.Cancel()
	}
	assert.Zero(t, e.Resource("free").Snapshot().Passed)
}

func TestCancelledProbeIsNoProbe(t *testing.T) {
	e, c := newEngine(t)
	require.NoError(t, e.Load(rules.Set{Breaker: []breaker.Rule{{
		Resource: "r", Strategy: breaker.ErrorCount, Threshold: 1, MinCalls: 1, OpenFor: time.Second, Probes: 1,
	}}}))
	guard, err := e.Entry(context.Background(), "r")
	require.NoError(t, err)
	guard.MarkFailed()
	guard.Exit()
	_, err = e.Entry(context.Background(), "r")
	require.ErrorIs(t, err, core.ErrBlocked)
	c.Advance(time.Second)
	for range 5 {
		probe, err := e.Entry(context.Background(), "r")
		require.NoError(t, err)
		_, err = e.Entry(context.Background(), "r")
		require.ErrorIs(t, err, core.ErrBlocked)
		probe.MarkFailed()
		probe.Cancel()
	}
}

func TestCancelAllocatesNothing(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector allocates")
	}
	e, _ := newEngine(t, flow.Rule{Resource: "r", Limit: 1})
	assert.Zero(t, testing.AllocsPerRun(100, func() {
		guard, err := e.Entry(context.Background(), "r")
		if err != nil {
			t.Error(err)
		}
		guard.Cancel()
	}))
}
