package core_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/flow"
)

func named(name string, rule flow.Rule) flow.Rule {
	rule.Name = name
	return rule
}

// apart checks that passes are in order and at least so far from each other.
func apart(t *testing.T, passes []clock.Instant, distance time.Duration, queue string) {
	t.Helper()
	for i := 1; i < len(passes); i++ {
		require.GreaterOrEqual(t, passes[i].Sub(passes[i-1]), distance, "passes %d and %d of the queue %s", i-1, i, queue)
	}
}

// paced checks that passes keep a distance, but for what may have waited for later queues for so long.
func paced(t *testing.T, passes []clock.Instant, distance, behind time.Duration, queue string) {
	t.Helper()
	for last := range passes {
		for first := range last {
			let := passes[last].Sub(passes[first]) + behind // in which the queue has let them go on
			require.LessOrEqual(t, last-first, int(let/distance), "passes %d to %d of the queue %s", first, last, queue)
		}
	}
}

// Each queue lets calls go on at its distance; the last one decides when they pass.
func TestEveryQueueSpacesTheCallsThatItLetsGoOn(t *testing.T) {
	if testing.Short() {
		t.Skip("one goroutine, and long")
	}
	own := flow.Rule{Name: "own", Match: "*", Limit: 10, Algorithm: flow.Throttle, MaxWait: time.Second}
	shared := flow.Rule{Name: "shared", Match: "*", Shared: true, Limit: 100, Algorithm: flow.Throttle, MaxWait: time.Second}
	half := flow.Rule{Name: "half", Match: "[a-e]*", Shared: true, Limit: 40, Algorithm: flow.Throttle, MaxWait: time.Second}
	for _, list := range [][]flow.Rule{{own, shared}, {shared, own}, {half, shared, own}} {
		t.Run(list[0].Name, func(t *testing.T) {
			r := newTraffic(t, list...)
			names := []string{"a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k", "l", "m", "n"}
			const seconds = 10
			for i := range seconds * 400 { // three times what may pass, and bursts
				r.call(names[i*5%len(names)])
				if i%400 == 200 {
					for range 30 {
						r.call("a")
					}
				}
				r.advance(2500 * time.Microsecond)
			}
			r.advance(2 * time.Second)
			require.Empty(t, r.waiting)
			var all, some []clock.Instant
			for _, name := range names {
				paced(t, r.passes[name], 100*time.Millisecond, time.Second, "own of "+name)
				assert.Greater(t, len(r.passes[name]), 2*seconds, "%s passes, too", name)
			}
			for _, pass := range r.order {
				if all = append(all, pass.at); pass.name <= "e" {
					some = append(some, pass.at)
				}
			}
			apart(t, all, 10*time.Millisecond, "shared")
			assert.GreaterOrEqual(t, len(all), seconds*98, "and the shared queue is used to the full")
			if len(list) == 3 {
				paced(t, some, 25*time.Millisecond, time.Second, "half")
			}
		})
	}
}

func TestSeveralQueuesPassAtTheRateOfTheSlowest(t *testing.T) {
	inBubble(t, func(t *testing.T, e *core.Engine) {
		passed := make([]time.Duration, 10)
		comeInOrder(t, e, passed).Wait()
		for i, at := range passed {
			assert.Equal(t, time.Duration(i)*250*time.Millisecond, at, "first come, first served")
		}
		s := e.Resource("r").Snapshot()
		assert.EqualValues(t, 9, s.Waited, "once each")
	},
		named("fast", throttle("r", 10, time.Minute)),
		named("slow", throttle("r", 4, time.Minute)),
		named("bucket", flow.Rule{Resource: "r", Limit: 5, Burst: 3, Algorithm: flow.TokenBucket, MaxWait: time.Minute}),
	)
}

func TestEveryQueueLetsACallWaitNoLongerThanItsOwnMaxWait(t *testing.T) {
	inBubble(t, func(t *testing.T, e *core.Engine) {
		var wg sync.WaitGroup
		var mu sync.Mutex
		var passed int
		for range 40 {
			wg.Go(func() {
				start := time.Now()
				_, err := e.Entry(t.Context(), "r")
				assert.LessOrEqual(t, time.Since(start), 800*time.Millisecond, "%v", err)
				mu.Lock()
				defer mu.Unlock()
				if err == nil {
					passed++
				}
			})
			time.Sleep(50 * time.Millisecond)
		}
		wg.Wait()
		assert.GreaterOrEqual(t, passed, 19, "ten a second in two seconds")
	},
		named("first", throttle("r", 12, 500*time.Millisecond)),
		named("second", throttle("r", 10, 300*time.Millisecond)),
	)
}

func TestACancelledCallLosesNoPassOfAnyQueue(t *testing.T) {
	inBubble(t, func(t *testing.T, e *core.Engine) {
		const callers = 10
		start := time.Now()
		var wg sync.WaitGroup
		cancels := make([]context.CancelFunc, callers)
		passed := make([]time.Duration, callers)
		for i := range callers {
			ctx, cancel := context.WithCancel(t.Context())
			cancels[i] = cancel
			wg.Go(func() {
				if _, err := e.Entry(ctx, "r"); err == nil {
					passed[i] = time.Since(start)
				} else {
					assert.ErrorIs(t, err, context.Canceled)
				}
			})
			synctest.Wait()
		}
		for _, i := range []int{1, 4, 5, 9} { // the first, two in the middle, the last
			cancels[i]()
		}
		wg.Wait()
		assert.Equal(t, []time.Duration{
			0, 0, time.Second, 2 * time.Second, 0, 0, 3 * time.Second, 4 * time.Second, 5 * time.Second, 0,
		}, passed)
		for _, cancel := range cancels {
			cancel()
		}
		assert.Zero(t, e.Resource("r").Snapshot().Waiting)
	}, named("a", throttle("r", 2, time.Minute)), named("b", throttle("r", 1, time.Minute)))
}

func TestAWindowThatRefusesAfterTheWaitLosesNoPassOfAnyQueue(t *testing.T) {
	r := newTraffic(t,
		named("a", throttle("r", 10, time.Second)), named("b", throttle("r", 5, time.Second)),
		flow.Rule{Name: "window", Match: "*", Shared: true, Limit: 2, Algorithm: flow.FixedWindow},
	)
	r.call("r")
	r.call("r", core.Tokens(1)) // in 200 ms
	r.call("other")             // takes what that would have got
	r.advance(250 * time.Millisecond)
	assert.Equal(t, 1, r.refused["r"])
	r.advance(750 * time.Millisecond)
	r.call("r")
	assert.Len(t, r.passes["r"], 2)
}

// Calls of resources whose queues overlap in every way all come to an end, whoever
// gives up and whatever rules change meanwhile.
func TestCallsInSeveralQueuesNeverWaitForEachOther(t *testing.T) {
	queue := func(name, match string, shared bool, limit float64) flow.Rule {
		return flow.Rule{Name: name, Match: match, Shared: shared, Limit: limit, Algorithm: flow.Throttle, MaxWait: 20 * time.Second}
	}
	rules := func(i float64) []flow.Rule {
		return []flow.Rule{
			queue("x", "[ab]", true, 20+i), queue("y", "[bc]", true, 25-i), queue("z", "[ac]", true, 30),
			queue("own", "*", false, 15), queue("all", "*", true, 40+i),
		}
	}
	inBubble(t, func(t *testing.T, e *core.Engine) {
		var wg sync.WaitGroup
		var mu sync.Mutex
		passes := map[string][]time.Time{}
		random := rand.New(rand.NewPCG(1, 2))
		for i := range 600 {
			name := string(rune('a' + random.IntN(3)))
			patience := time.Duration(1+random.IntN(20_000)) * time.Millisecond
			wg.Go(func() {
				ctx, cancel := context.WithCancel(t.Context())
				defer time.AfterFunc(patience, cancel).Stop()
				_, err := e.Entry(ctx, name)
				if err == nil {
					mu.Lock()
					passes[name] = append(passes[name], time.Now())
					mu.Unlock()
				}
			})
			time.Sleep(time.Duration(random.IntN(40)) * time.Millisecond)
			if i%100 == 99 {
				load(t, e, rules(float64(i/100))...)
			}
		}
		wg.Wait()
		for name, at := range passes {
			assert.Greater(t, len(at), 50, name)
			assert.Zero(t, e.Resource(name).Snapshot().Waiting)
		}
	}, rules(0)...)
}

func TestManyGoroutinesAreSpacedByEveryQueue(t *testing.T) {
	inBubble(t, func(t *testing.T, e *core.Engine) {
		var mu sync.Mutex
		var all []clock.Instant
		each := map[string][]clock.Instant{}
		var wg sync.WaitGroup
		for i := range 64 {
			wg.Go(func() {
				name := fmt.Sprint(i % 8)
				for range 20 {
					if _, err := e.Entry(t.Context(), name); err == nil {
						now := e.Clock().Now()
						mu.Lock()
						all, each[name] = append(all, now), append(each[name], now)
						mu.Unlock()
					} else {
						time.Sleep(30 * time.Millisecond)
					}
				}
			})
		}
		wg.Wait()
		apart(t, all, 10*time.Millisecond, "shared")
		for name, passes := range each {
			paced(t, passes, 50*time.Millisecond, 300*time.Millisecond, name)
		}
		assert.Greater(t, len(all), 300)
	},
		flow.Rule{Name: "own", Match: "*", Limit: 20, Algorithm: flow.Throttle, MaxWait: 300 * time.Millisecond},
		flow.Rule{Name: "shared", Match: "*", Shared: true, Limit: 100, Algorithm: flow.Throttle, MaxWait: 300 * time.Millisecond},
	)
}

func TestWaitersPassThatTheOtherQueueHasLetGoOnWhenTheirsGoes(t *testing.T) {
	first, second := named("first", throttle("r", 2, time.Minute)), named("second", throttle("r", 1, time.Minute))
	inBubble(t, func(t *testing.T, e *core.Engine) {
		passed := make([]time.Duration, 8)
		callers := comeInOrder(t, e, passed)
		time.Sleep(2600 * time.Millisecond)
		load(t, e, first)
		callers.Wait()
		assert.Equal(t, []time.Duration{
			0, time.Second, 2 * time.Second,
			2600 * time.Millisecond, 2600 * time.Millisecond, 2600 * time.Millisecond, // let go on at 1.5, 2 and 2.5 s
			3 * time.Second, 3500 * time.Millisecond,
		}, passed)
		assert.Zero(t, e.Resource("r").Snapshot().Waiting)
	}, first, second)
}

func TestWaitersOfAQueueThatGoesPassByTheOther(t *testing.T) {
	first, second := named("first", throttle("r", 2, time.Minute)), named("second", throttle("r", 1, time.Minute))
	inBubble(t, func(t *testing.T, e *core.Engine) {
		passed := make([]time.Duration, 8)
		callers := comeInOrder(t, e, passed)
		time.Sleep(2600 * time.Millisecond)
		load(t, e, second)
		callers.Wait()
		slices.Sort(passed)
		for i, at := range passed {
			assert.Equal(t, time.Duration(i)*time.Second, at)
		}
		assert.Zero(t, e.Resource("r").Snapshot().Waiting)
	}, first, second)
}

// Calls come in pairs, one of which the throttle refuses: less than what passes a cold
// resource, unless refusals count twice.
func TestAThrottleAmongOthersCountsWhatItRefusesOnce(t *testing.T) {
	cold := flow.Rule{
		Name: "cold", Resource: "r", Limit: 100, Algorithm: flow.Throttle,
		WarmUp: flow.WarmUp{Period: 5 * time.Second, ColdFactor: 10},
	}
	e, c := newEngine(t, cold, named("other", throttle("r", 1e6, 0)))
	for range 60 * 4 {
		enter(e, "r", 2)
		c.Advance(250 * time.Millisecond)
	}
	assert.InDelta(t, 10, e.Resource("r").Snapshot().Rules[0].Quota.Effective, 1, "8 calls a second leave it cold")
}
