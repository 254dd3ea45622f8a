package seats_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/rule"
	"github.com/penstock-go/penstock/rule/kindtest"
	"github.com/penstock-go/penstock/rules"

	"github.com/penstock-go/penstock/examples/seats"
)

func TestKindKeepsThePromisesOfKinds(t *testing.T) {
	of := seats.Kind().Of
	kindtest.Run(t, kindtest.Options{Kind: seats.Kind(), Rules: []kindtest.Rule{
		{
			Rule: of(seats.Rule{Name: "few", Resource: "r", Seats: 8}), Passes: 8,
			Stricter: of(seats.Rule{Name: "few", Resource: "r", Seats: 3}),
		},
		{
			Rule: of(seats.Rule{Name: "queue", Resource: "r", Seats: 2, MaxWait: time.Minute}), Passes: 2,
			Stricter: of(seats.Rule{Name: "queue", Resource: "r", Seats: 1, MaxWait: time.Second}),
		},
	}})
}

// load puts rules in force.
func load(t testing.TB, e *core.Engine, of ...seats.Rule) {
	t.Helper()
	var set rules.Set
	for _, r := range of {
		set.Custom = append(set.Custom, seats.Kind().Of(r))
	}
	require.NoError(t, e.Load(set))
}

func newEngine(t testing.TB) *core.Engine {
	e := core.New(core.Config{Kinds: []rule.Definition{seats.Kind()}, Logger: slog.New(slog.DiscardHandler)})
	t.Cleanup(e.Close)
	return e
}

// Calls that wait have a rule that changes, and then is a shadow.
func TestWaitsFollowTheRule(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newEngine(t)
		begun := time.Now()
		var ended []string
		var mu sync.Mutex
		enter := func(name string) {
			go func() {
				guard, err := e.Entry(t.Context(), "r")
				mu.Lock()
				defer mu.Unlock()
				ended = append(ended, fmt.Sprint(name, " ", time.Since(begun), " ", errors.Is(err, core.ErrBlocked)))
				time.AfterFunc(time.Hour, guard.Exit)
			}()
			synctest.Wait()
		}
		load(t, e, seats.Rule{Resource: "r", Seats: 1, MaxWait: 10 * time.Second})
		for _, name := range []string{"a", "b", "c", "d"} {
			enter(name)
		}
		time.Sleep(time.Second)
		load(t, e, seats.Rule{Resource: "r", Seats: 2, MaxWait: 10 * time.Second})
		time.Sleep(time.Second)
		load(t, e, seats.Rule{Resource: "r", Seats: 2, MaxWait: 10 * time.Second, Shadow: true})
		synctest.Wait()
		assert.ElementsMatch(t, []string{"a 0s false", "b 1s false", "c 2s false", "d 2s false"}, ended)
		load(t, e, seats.Rule{Resource: "r", Seats: 1, MaxWait: 10 * time.Second})
		enter("e")
		time.Sleep(10 * time.Second)
		synctest.Wait()
		assert.Equal(t, "e 12s true", ended[4])
		time.Sleep(time.Hour)
	})
}

// Calls come, wait, give up and end while the rule changes: never are more under way than may be.
func TestNoMoreThanTheSeatsAreTakenWhileCallsGiveUpAndRulesChange(t *testing.T) {
	e := newEngine(t)
	load(t, e, seats.Rule{Resource: "r", Seats: 3, MaxWait: time.Minute})
	var under, most atomic.Int64
	var calls sync.WaitGroup
	for g := range 8 {
		calls.Go(func() {
			for n := range 300 {
				ctx, cancel := context.WithCancel(t.Context())
				if (g+n)%3 == 0 {
					go cancel()
				}
				guard, err := e.Entry(ctx, "r")
				if err == nil {
					if now := under.Add(1); now > most.Load() {
						most.Store(now)
					}
					under.Add(-1)
				}
				guard.Exit()
				cancel()
			}
		})
	}
	for n := range 50 {
		load(t, e, seats.Rule{Resource: "r", Seats: 2 + n%2, MaxWait: time.Minute})
	}
	calls.Wait()
	assert.LessOrEqual(t, most.Load(), int64(3))
	assert.Equal(t, []float64{0, 0}, e.Explain("r")[0].Gauges)
}
