package core_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"runtime"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/hotparam"
	"github.com/penstock-go/penstock/rule"
	"github.com/penstock-go/penstock/rules"
)

// outcome is how a call of a test ends.
type outcome int

const (
	succeeds outcome = iota
	fails
	isIgnored
)

func end(g *core.Guard, how outcome) {
	switch how {
	case fails:
		g.Fail(errors.New("wrong password"))
	case isIgnored:
		g.MarkIgnored()
	}
	g.Exit()
}

// countingSets are rules that let a minute have four calls of the outcome.
func countingSets(counts rule.Counts) map[string]rules.Set {
	user := rule.StringsOf("user")
	flowRule := func(r flow.Rule) rules.Set {
		r.Name, r.Resource, r.Limit, r.Window, r.Counts = "r", "a", 4, time.Minute, counts
		return rules.Set{Flow: []flow.Rule{r}}
	}
	valueRule := func(r hotparam.Rule) rules.Set {
		r.Name, r.Resource, r.Param, r.Limit, r.Window, r.Counts = "r", "a", user, 4, time.Minute, counts
		return rules.Set{HotParam: []hotparam.Rule{r}}
	}
	shadowed := flowRule(flow.Rule{})
	shadowed.Flow = append(shadowed.Flow, flow.Rule{Name: "shadow", Match: "*", Limit: 1, Shadow: true, Counts: counts})
	return map[string]rules.Set{
		"slidingWindow":         flowRule(flow.Rule{}),
		"fixedWindow":           flowRule(flow.Rule{Algorithm: flow.FixedWindow}),
		"tokenBucket":           flowRule(flow.Rule{Algorithm: flow.TokenBucket}),
		"beside a shadow":       shadowed,
		"value":                 valueRule(hotparam.Rule{}),
		"value, sliding window": valueRule(hotparam.Rule{Algorithm: hotparam.SlidingWindow}),
		"value, fixed window":   valueRule(hotparam.Rule{Algorithm: hotparam.FixedWindow}),
		"a value of its own":    valueRule(hotparam.Rule{Values: rule.NumberMapOf(rule.NumberEntry{Key: rule.String("u1"), Value: 4})}),
	}
}

func TestOnlyCallsOfTheOutcomeTakeTokens(t *testing.T) {
	user := core.String("user", "u1")
	for counts, counted := range map[rule.Counts]outcome{rule.CountsFailures: fails, rule.CountsSuccesses: succeeds} {
		for name, set := range countingSets(counts) {
			t.Run(string(counts)+"/"+name, func(t *testing.T) {
				e, c := newEngineOf(t, set)
				call := func(how outcome) bool {
					g, err := e.Entry(t.Context(), "a", user)
					if err == nil {
						c.Advance(time.Millisecond)
						end(&g, how)
					}
					return err == nil
				}
				for range 3 {
					for range 20 {
						for _, how := range []outcome{succeeds, fails, isIgnored} {
							assert.True(t, how == counted || call(how))
						}
					}
					for range 4 {
						assert.True(t, call(counted))
					}
					assert.False(t, call(counted))
					assert.False(t, call(isIgnored), "nothing is left")
					c.Advance(2 * time.Minute)
				}
			})
		}
	}
}

// Calls under way hold their tokens; that of one which is not counted is free as soon as it has ended.
func TestCallsUnderWayHoldTheirTokens(t *testing.T) {
	user := core.String("user", "u1")
	for name, set := range countingSets(rule.CountsFailures) {
		t.Run(name, func(t *testing.T) {
			e, _ := newEngineOf(t, set)
			var guards [4]core.Guard
			for i := range guards {
				var err error
				guards[i], err = e.Entry(t.Context(), "a", user)
				require.NoError(t, err)
			}
			assert.Zero(t, enter(e, "a", 3, user))
			end(&guards[0], fails)
			assert.Zero(t, enter(e, "a", 1, user))
			end(&guards[1], succeeds)
			assert.Equal(t, 5, enter(e, "a", 5, user), "one after the other, and each ends well")
			guards[2].Settle(0)
			end(&guards[2], fails)
			end(&guards[3], isIgnored)
			guards[3].Exit()
			passed := 0
			for ; passed < 10; passed++ {
				g, err := e.Entry(t.Context(), "a", user)
				if err != nil {
					break
				}
				end(&g, fails)
			}
			assert.Equal(t, 3, passed)
		})
	}
}

// A call that ends after its rule was changed gives back all the same.
func TestCallsOfAnEarlierVersionGiveBack(t *testing.T) {
	e, _ := newEngine(t, flow.Rule{Name: "r", Resource: "a", Limit: 2, Window: time.Minute, Counts: rule.CountsFailures})
	g, err := e.Entry(t.Context(), "a", core.Tokens(2))
	require.NoError(t, err)
	load(t, e, flow.Rule{Name: "r", Resource: "a", Limit: 3, Window: time.Minute})
	assert.Equal(t, 1, enter(e, "a", 5))
	g.Exit()
	assert.Equal(t, 2, enter(e, "a", 5))
}

// Many goroutines try passwords: no more than the limit fail of each account, and once all have
// ended exactly as many tokens are taken as calls have failed.
func TestNoMoreThanTheLimitFailHoweverManyComeAtOnce(t *testing.T) {
	const workers, each, limit, accounts = 100, 60, 5, 4
	for name, set := range map[string]rules.Set{
		"values": {HotParam: []hotparam.Rule{{
			Name: "r", Resource: "a", Param: rule.StringsOf("user"), Limit: limit, Window: time.Hour,
			Algorithm: hotparam.SlidingWindow, Counts: rule.CountsFailures,
		}}},
		"buckets": {HotParam: []hotparam.Rule{{
			Name: "r", Resource: "a", Param: rule.StringsOf("user"), Limit: limit, Window: 24 * time.Hour, Counts: rule.CountsFailures,
		}}},
		"origins": {Flow: []flow.Rule{
			{Name: "0", Resource: "a", Limit: limit, Window: time.Hour, Origin: "0", Counts: rule.CountsFailures},
			{Name: "1", Resource: "a", Limit: limit, Window: time.Hour, Origin: "1", Counts: rule.CountsFailures, Algorithm: flow.TokenBucket},
			{Name: "2", Resource: "a", Limit: limit, Window: time.Hour, Origin: "2", Counts: rule.CountsFailures, Algorithm: flow.FixedWindow},
			{Name: "3", Resource: "a", Limit: limit, Window: time.Hour, Origin: rule.OtherOrigins, Counts: rule.CountsFailures},
		}},
	} {
		t.Run(name, func(t *testing.T) {
			e, _ := newEngineOf(t, set)
			var failed, most, underWay [accounts]atomic.Int64
			var group sync.WaitGroup
			for w := range workers {
				group.Go(func() {
					random := rand.New(rand.NewPCG(uint64(w), 1))
					for range each {
						who := random.IntN(accounts)
						name := strconv.Itoa(who)
						g, err := e.Entry(context.Background(), "a", core.String("user", name), core.Origin(name))
						if err != nil {
							runtime.Gosched()
							continue
						}
						n := underWay[who].Add(1)
						for m := most[who].Load(); n > m && !most[who].CompareAndSwap(m, n); m = most[who].Load() {
						}
						runtime.Gosched()
						how := outcome(random.IntN(30) % 3 * min(1, random.IntN(4)))
						if how == fails {
							failed[who].Add(1)
						}
						underWay[who].Add(-1)
						end(&g, how)
					}
				})
			}
			group.Wait()
			for who := range accounts {
				assert.LessOrEqual(t, failed[who].Load(), int64(limit))
				assert.LessOrEqual(t, most[who].Load(), int64(limit))
				var left int64
				for range limit + 1 {
					name := strconv.Itoa(who)
					g, err := e.Entry(context.Background(), "a", core.String("user", name), core.Origin(name))
					if err == nil {
						left++
						end(&g, fails)
					}
				}
				assert.Equal(t, limit-failed[who].Load(), left)
			}
		})
	}
}

func TestCallsThatGiveBackDoNotAllocate(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector allocates")
	}
	user := core.String("user", "u1")
	for name, set := range countingSets(rule.CountsFailures) {
		e, _ := newEngineOf(t, set)
		ctx := context.Background()
		assert.Zero(t, testing.AllocsPerRun(200, func() {
			g, _ := e.Entry(ctx, "a", user)
			g.Exit()
		}), name)
	}
}
