package core_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/rule"
	"github.com/penstock-go/penstock/rules"
)

// A call sees one set or the other, whichever way its resource comes by its
// rules: each set refuses every call by one of its rules.
func TestACallSeesASetOfPatternsWhole(t *testing.T) {
	closed, open := 0.0, 1e6
	for name, sets := range map[string][2][]flow.Rule{
		"limits cross": {
			{{Name: "a", Match: "n*", Limit: closed}, {Name: "b", Match: "*", Limit: open}},
			{{Name: "a", Match: "n*", Limit: open}, {Name: "b", Match: "*", Limit: closed}},
		},
		"one for the other": {{{Name: "a", Match: "n*", Limit: closed}}, {{Name: "b", Match: "~^n", Limit: closed}}},
		"shared or not":     {{{Name: "a", Match: "n*", Limit: closed, Shared: true}}, {{Name: "a", Match: "n*", Limit: closed}}},
		"another limiter": {
			{{Name: "a", Match: "n*", Limit: closed, Algorithm: flow.TokenBucket}}, {{Name: "a", Match: "n*", Limit: closed}},
		},
		"a queue or a window": {
			{{Name: "a", Match: "n*", Limit: closed, Algorithm: flow.Throttle}, {Name: "b", Match: "*", Limit: open}},
			{{Name: "a", Match: "n*", Limit: open, Algorithm: flow.Throttle, MaxWait: time.Hour}, {Name: "b", Match: "*", Limit: closed}},
		},
		"origins": {
			{{Name: "a", Match: "n*", Limit: closed, Origin: "me"}, {Name: "b", Match: "n*", Limit: open, Origin: rule.OtherOrigins}},
			{{Name: "a", Match: "n*", Limit: open, Origin: "you"}, {Name: "b", Match: "n*", Limit: closed, Origin: rule.OtherOrigins}},
		},
		"shadows": {
			{{Name: "a", Match: "n*", Limit: closed, Shadow: true}, {Name: "b", Match: "*", Limit: closed}},
			{{Name: "a", Match: "n*", Limit: closed}, {Name: "b", Match: "*", Limit: closed, Shadow: true}},
		},
		"a pattern or a name": {
			{{Name: "a", Match: "n*", Limit: closed}},
			append(namedRules(40), flow.Rule{Name: "a", Match: "n*", Limit: open}),
		},
	} {
		t.Run(name, func(t *testing.T) {
			e := core.New(core.Config{Logger: quiet, MaxResources: 15})
			defer e.Close()
			require.NoError(t, e.Load(rules.Set{Flow: sets[0]}))
			handles := make([]*core.Resource, 40)
			for i := range handles {
				handles[i] = e.Resource(fmt.Sprint("n", i))
			}
			var passed atomic.Int64
			storm(t, e, 16, 6000, func(i int) rules.Set { return rules.Set{Flow: sets[i%2]} }, func(i int) {
				var err error
				var guard core.Guard
				if i%2 == 0 {
					guard, err = e.Entry(context.Background(), fmt.Sprint("n", i%40), core.Origin("me"))
				} else {
					guard, err = handles[i%40].Entry(context.Background(), core.Origin("me"))
				}
				if err == nil {
					passed.Add(1)
					guard.Exit()
				}
			})
			assert.Zero(t, passed.Load())
			assert.LessOrEqual(t, len(e.Snapshot().Resources), 15+40+1)
		})
	}
}

// Every call is the first of its name, at any moment of a swap over many names, and
// each set refuses it, some by a rule that comes to name it.
func TestNewNamesDuringASwapSeeAWholeSet(t *testing.T) {
	e := core.New(core.Config{Logger: quiet, MaxResources: 1_000_000})
	defer e.Close()
	set := func(i int) rules.Set {
		a, b := float64(i%2)*1e6, float64((i+1)%2)*1e6
		set := rules.Set{Flow: []flow.Rule{{Name: "a", Match: "n*", Limit: a}, {Name: "b", Match: "~^n", Limit: b}}}
		for j := range 20 {
			set.Flow = append(set.Flow, flow.Rule{Name: fmt.Sprint("g", j), Match: fmt.Sprintf("*-%d", j), Limit: 1e6 + a})
			set.Flow = append(set.Flow, flow.Rule{Name: fmt.Sprint("x", j), Resource: fmt.Sprint("n", i*20+j), Limit: 1e6})
		}
		return set
	}
	require.NoError(t, e.Load(set(1)))
	for i := range 2000 {
		enter(e, fmt.Sprint("n-", i%50, "-", i), 1)
	}
	var passed atomic.Int64
	storm(t, e, 8, 2000, set, func(i int) {
		guard, err := e.Entry(context.Background(), fmt.Sprint("n", i))
		if err == nil {
			passed.Add(1)
			guard.Exit()
		}
	})
	assert.Zero(t, passed.Load())
}

func namedRules(n int) (rules []flow.Rule) {
	for i := range n {
		rules = append(rules, flow.Rule{Name: fmt.Sprint("named", i), Resource: fmt.Sprint("n", i), Limit: 0})
	}
	return rules
}

// Once Load has returned, every call acts by the new set.
func TestALoadThatReturnedHolds(t *testing.T) {
	e := core.New(core.Config{Logger: quiet, MaxResources: 5})
	defer e.Close()
	var wg sync.WaitGroup
	stop := make(chan struct{})
	for g := range 4 {
		wg.Go(func() {
			for i := 0; ; i++ {
				select {
				case <-stop:
					return
				default:
					enter(e, fmt.Sprint("x", (g*31+i)%20), 1)
					e.Explain(fmt.Sprint("y", i%20))
				}
			}
		})
	}
	handles := map[string]*core.Resource{}
	for i := range 400 {
		closed, open := [2]string{"x", "y"}[i%2], [2]string{"y", "x"}[i%2]
		load(t, e, flow.Rule{Name: "r", Match: closed + "*", Limit: 0})
		for n := range 10 {
			name := fmt.Sprint(closed, n)
			if handles[name] == nil {
				handles[name] = e.Resource(name)
			}
			_, err := handles[name].Entry(context.Background())
			require.ErrorIs(t, err, core.ErrBlocked, name)
			require.Zero(t, enter(e, name, 1), name)
			require.Len(t, e.Explain(name), 1)
			require.Equal(t, 1, enter(e, fmt.Sprint(open, n), 1))
		}
	}
	close(stop)
	wg.Wait()
}
