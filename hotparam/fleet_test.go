package hotparam_test

import (
	"log/slog"
	"math"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/fleet"
	"github.com/penstock-go/penstock/hotparam"
	"github.com/penstock-go/penstock/internal/optional"
	"github.com/penstock-go/penstock/internal/sharing"
	"github.com/penstock-go/penstock/internal/sharing/lease"
	"github.com/penstock-go/penstock/rule"
)

// The numbers of gauges.
const (
	gaugeValues = iota
	gaugeMaxValues
	gaugeForgotten
	gaugeWithoutSlot
)

// bound is what a value may pass in a time by what leases promise: the burst, the rate over
// that time and the life of a lease, and one token on debt of each instance.
func bound(limit, burst float64, d time.Duration, instances int) float64 {
	return burst + limit*(d+time.Second).Seconds() + float64(instances)
}

func TestEachValueKeepsItsLimitInTheFleet(t *testing.T) {
	t.Parallel()
	for name, share := range map[string]func(i int) float64{
		"even":   func(int) float64 { return 2.0 / 8 },
		"skewed": func(i int) float64 { return []float64{1.8, 0.03}[min(i, 1)] },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newScene(t, shared(hotparam.Rule{Limit: 100, Burst: 20}), 8)
			random := rand.New(rand.NewPCG(1, 2))
			s.run(10*time.Second, func(in *instance, i int) {
				for _, value := range []string{"a", "b", "c"} {
					if random.Float64() < 100*share(i)/1000 { // twice the limit in all
						in.call(value)
					}
				}
			})
			for _, value := range []string{"a", "b", "c"} {
				assert.LessOrEqual(t, float64(s.total(value)), 20+100*10.0+8, "%s", value)
				assert.GreaterOrEqual(t, s.total(value), 900, "%s", value)
				assert.LessOrEqual(t, float64(s.most(value, time.Second)), bound(100, 20, 100*time.Millisecond, 8), "%s", value)
			}
		})
	}
}

func TestAskingKeepsTheLimitOfAValueExactly(t *testing.T) {
	t.Parallel()
	for _, algorithm := range []hotparam.Algorithm{hotparam.TokenBucket, hotparam.SlidingWindow} {
		t.Run(string(algorithm), func(t *testing.T) {
			t.Parallel()
			r := shared(hotparam.Rule{Limit: 5, Window: 5 * time.Minute, Algorithm: algorithm, Fleet: rule.Fleet{Mode: fleet.ModeAsk}})
			s := newScene(t, r, 8)
			s.run(4*time.Second, func(in *instance, i int) { in.call("victim-" + strconv.Itoa(i%2)) })
			assert.Equal(t, 5, s.total("victim-0"))
			assert.Equal(t, 5, s.total("victim-1"))
			assert.Less(t, s.requests, 800, "denials hold: nobody asks again")
		})
	}
}

func TestFewTokensLeasedAreAtMostOneMoreForEachInstance(t *testing.T) {
	t.Parallel()
	s := newScene(t, shared(hotparam.Rule{Limit: 5, Window: 5 * time.Minute}), 8)
	s.run(10*time.Second, func(in *instance, _ int) { in.call("victim") })
	assert.LessOrEqual(t, s.total("victim"), 5+8)
	assert.GreaterOrEqual(t, s.total("victim"), 5)
}

func TestFleetLimiterOfAnOlderVersionIsStale(t *testing.T) {
	t.Parallel()
	for _, mode := range []fleet.Mode{fleet.ModeLease, fleet.ModeAsk} {
		s := newScene(t, shared(hotparam.Rule{Limit: 5, Window: 5 * time.Minute, Fleet: rule.Fleet{Mode: mode}}), 1)
		in := s.instances[0]
		s.run(100*time.Millisecond, func(in *instance, _ int) { in.call("known") })
		old := in.limiter
		in.load(shared(hotparam.Rule{Limit: 3, Window: 5 * time.Minute, Fleet: rule.Fleet{Mode: mode}}))
		for _, value := range []string{"new", "known"} {
			c := rule.Call{Now: s.clock.Now(), Tokens: 1, Attribute: user(value)}
			_, decision := old.Acquire(c)
			if decision == rule.Wait {
				_, _, decision = old.(rule.Queue).Join(c, rule.Patience{Since: c.Now, Until: 1<<63 - 1, Wake: func() {}})
			}
			assert.NotEqual(t, rule.Pass, decision, "%s: %s", mode, value)
			assert.NotEqual(t, rule.Wait, decision, "%s: %s", mode, value)
		}
	}
}

func TestManyValuesGainNothing(t *testing.T) {
	t.Parallel()
	for name, mode := range map[string]fleet.Mode{"lease": fleet.ModeLease, "ask": fleet.ModeAsk} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			const instances, limit = 4, 5
			r := shared(hotparam.Rule{Limit: limit, Window: 5 * time.Minute, MaxValues: 100, Fleet: rule.Fleet{Mode: mode}})
			s := newScene(t, r, instances)
			next := 0
			const last = 20 * time.Second
			s.run(last, func(in *instance, _ int) {
				in.call("account-" + strconv.Itoa(next%1000)) // ten times as many as there are slots
				next++
			})
			allowed, most, all := limit+instances, 0, 0
			if mode == fleet.ModeAsk {
				allowed = limit
			}
			for value := range s.passed {
				most = max(most, s.total(value))
				all += s.total(value)
			}
			t.Logf("passed: %d of the worst account, %d in all; %d are allowed", most, all, allowed*1000)
			assert.LessOrEqual(t, most, 2*allowed, "its own limit and that of a cell")
			assert.LessOrEqual(t, all, allowed*1000)
			assert.LessOrEqual(t, s.instances[0].gauge(gaugeValues), 140.0, "there are places for two in five more")
			assert.Positive(t, s.instances[0].gauge(gaugeWithoutSlot))
		})
	}
}

func TestEvictedValuesLoseNothing(t *testing.T) {
	t.Parallel()
	s := newScene(t, shared(hotparam.Rule{Limit: 10, Window: time.Minute, MaxValues: 100}), 1)
	in := s.instances[0]
	s.run(time.Second, func(*instance, int) { in.call("victim") })
	passed := s.total("victim")
	assert.LessOrEqual(t, passed, 11)
	for round := range 300 { // newcomers take every slot that is as new
		s.run(200*time.Millisecond, func(*instance, int) { in.call("newcomer-" + strconv.Itoa(round)) })
		in.call("victim")
	}
	assert.LessOrEqual(t, s.most("victim", time.Minute), 10+10+1, "no more than a bucket and what fills it in a minute")
}

func TestSlotsOfValuesThatAreAsNewAreUsedAgain(t *testing.T) {
	t.Parallel()
	s := newScene(t, shared(hotparam.Rule{Limit: 10, MaxValues: 100}), 2)
	next := 0
	s.run(20*time.Second, func(in *instance, _ int) {
		if next++; next%100 == 0 { // 20 values a second
			assert.True(t, in.call("user-"+strconv.Itoa(next)), "the first call of a value passes")
		}
	})
	assert.Positive(t, s.instances[0].gauge(gaugeForgotten)+s.instances[1].gauge(gaugeForgotten))
	assert.Zero(t, s.instances[0].gauge(gaugeWithoutSlot))
}

func TestManyActiveValuesDoNotStarveOtherLimits(t *testing.T) {
	t.Parallel()
	s := newScene(t, shared(hotparam.Rule{Limit: 10}), 2)
	const limit = 1000
	budgets := make([]*lease.Budget, 2)
	for i, in := range s.instances {
		terms := fleet.Terms{Key: "flow/other", Limit: limit, Window: time.Second, Burst: 100}
		budgets[i] = in.member.Budget(terms, fleet.ModeLease, fleet.OutageLast, s.clock.Now())
	}
	next, passed, refused := 0, 0, 0
	calls := func(in *instance, i int) {
		for range 5 { // 10,000 values a second
			in.call("user-" + strconv.Itoa(next))
			next++
		}
		if s.clock.Now().Time().UnixMilli()%4 == 0 { // half of the limit
			if budgets[i].Take(s.clock.Now(), 1) {
				passed++
			} else {
				refused++
			}
		}
	}
	s.run(500*time.Millisecond, calls)
	passed, refused = 0, 0
	s.run(2500*time.Millisecond, calls)
	assert.LessOrEqual(t, float64(refused), 0.01*float64(passed))
	assert.LessOrEqual(t, s.largest, 256)
	status := s.instances[0].member.Status(s.clock.Now())
	require.Len(t, status.Limits, 2, "all values of the rule are one limit, in sum")
	assert.Equal(t, "hotParam/r", status.Limits[1].Key)
	assert.InDelta(t, 5000, status.Limits[1].Demand, 1500)
}

func TestOutageOfTheFleetGoesOnAsTheRuleSays(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		mode     fleet.Mode
		onOutage fleet.OnOutage
		known    [2]int // calls of a value that was called before, in ten seconds of outage
		fresh    [2]int // those of a value that comes only then
	}{
		{fleet.ModeLease, fleet.OutageLast, [2]int{80, 125}, [2]int{60, 125}},
		{fleet.ModeLease, fleet.OutageShare, [2]int{80, 125}, [2]int{80, 125}},
		{fleet.ModeLease, fleet.OutageClosed, [2]int{0, 5}, [2]int{0, 0}},
		{fleet.ModeLease, fleet.OutageOpen, [2]int{9000, 80_000}, [2]int{9000, 80_000}},
		{fleet.ModeAsk, fleet.OutageLast, [2]int{80, 125}, [2]int{80, 125}},
		{fleet.ModeAsk, fleet.OutageShare, [2]int{80, 125}, [2]int{80, 125}},
		{fleet.ModeAsk, fleet.OutageClosed, [2]int{0, 5}, [2]int{0, 0}},
	} {
		t.Run(string(test.mode)+" "+string(test.onOutage), func(t *testing.T) {
			t.Parallel()
			r := shared(hotparam.Rule{Limit: 10, Burst: 1, Fleet: rule.Fleet{Mode: test.mode, OnOutage: test.onOutage}})
			s := newScene(t, r, 4)
			all := func(values ...string) func(in *instance, i int) {
				return func(in *instance, _ int) {
					for _, value := range values {
						in.call(value)
					}
				}
			}
			s.run(5*time.Second, all("known"))
			s.isDown = true
			s.run(time.Second, all("known"))
			before := s.total("known")
			s.run(10*time.Second, all("known", "fresh"))
			within(t, test.known, s.total("known")-before)
			within(t, test.fresh, s.total("fresh"))
			assert.True(t, s.instances[0].limiter.Status(s.clock.Now()).Fleet.Outage)

			s.isDown = false
			s.run(2*time.Second, all("known", "fresh"))
			before = s.total("fresh")
			s.run(10*time.Second, all("known", "fresh"))
			within(t, [2]int{85, 115}, s.total("fresh")-before)
			assert.False(t, s.instances[0].limiter.Status(s.clock.Now()).Fleet.Outage)
		})
	}
}

func within(t *testing.T, want [2]int, got int) {
	t.Helper()
	assert.GreaterOrEqual(t, got, want[0])
	assert.LessOrEqual(t, got, want[1])
}

func TestNamedAndMissingValuesHaveLimitsInTheFleet(t *testing.T) {
	t.Parallel()
	r := shared(hotparam.Rule{
		Limit: 2, Window: time.Hour, Missing: rule.MissingShare, Fleet: rule.Fleet{Mode: fleet.ModeAsk},
		Values: rule.NumberMapOf(text("vip", 10), text("test-*", 1), text("banned", 0)),
	})
	s := newScene(t, r, 4)
	s.run(time.Second, func(in *instance, _ int) {
		for _, value := range []string{"vip", "test-1", "banned", "someone"} {
			in.call(value)
		}
	})
	assert.Equal(t, 10, s.total("vip"))
	assert.Equal(t, 1, s.total("test-1"))
	assert.Equal(t, 0, s.total("banned"))
	assert.Equal(t, 2, s.total("someone"))
	in := s.instances[0]
	_, decision := in.limiter.Acquire(rule.Call{Now: s.clock.Now(), Tokens: 1})
	assert.Equal(t, rule.Wait, decision, "calls without a value have a limit too")
	assert.Equal(t, rule.Never, in.limiter.RetryAfter(rule.Call{Now: s.clock.Now(), Tokens: 1, Attribute: user("banned")}))
	assert.InDelta(t, time.Hour/2, in.limiter.RetryAfter(rule.Call{Now: s.clock.Now(), Tokens: 1, Attribute: user("someone")}), float64(31*time.Minute))
}

func TestPenaltyIsOfTheInstance(t *testing.T) {
	t.Parallel()
	r := shared(hotparam.Rule{Limit: 10, Penalty: hotparam.Penalty{After: 20, Within: time.Second, For: time.Minute}})
	s := newScene(t, r, 2)
	s.run(2*time.Second, func(in *instance, i int) {
		if i == 0 {
			in.call("user")
		}
	})
	first, second := s.instances[0], s.instances[1]
	assert.InDelta(t, 1, first.gauge(4), 0, "a penalty there")
	assert.False(t, first.call("user"))
	assert.Zero(t, second.gauge(4))
	s.run(2*time.Second, nil)
	assert.True(t, second.call("user"))
}

func TestReloadOfAFleetRuleKeepsWhatValuesHaveUsed(t *testing.T) {
	t.Parallel()
	r := shared(hotparam.Rule{Limit: 10, Window: time.Hour, MaxValues: 200})
	s := newScene(t, r, 1)
	in := s.instances[0]
	calls := func(*instance, int) {
		in.call("a")
		in.call("vip")
	}
	s.run(time.Second, calls)
	require.LessOrEqual(t, s.total("a"), 11)
	for name, change := range map[string]func(){
		"a smaller table":     func() { r.MaxValues = 100 },
		"a value is named":    func() { r.Values = rule.NumberMapOf(text("vip", 10)) },
		"and is not any more": func() { r.Values = rule.NumberMap{} },
		"another behaviour":   func() { r.Fleet.OnOutage = fleet.OutageShare },
	} {
		change()
		before := s.total("a") + s.total("vip")
		require.True(t, in.load(r), name)
		s.run(time.Second, calls)
		assert.LessOrEqual(t, s.total("a")+s.total("vip"), before+1, name)
	}
	r.Limit = 20
	before := s.total("a")
	require.True(t, in.load(r))
	s.run(time.Second, calls)
	assert.LessOrEqual(t, s.total("a"), before+1, "the bucket is as empty as it was")
	s.run(6*time.Minute, calls)
	assert.InDelta(t, before+2, s.total("a"), 1, "and fills twice as fast")

	r.Algorithm = hotparam.SlidingWindow
	assert.False(t, in.load(r), "it counts in another way")
	r.Fleet.Mode = fleet.ModeAsk
	assert.False(t, in.load(r), "it is shared in another way")
	r.Scope, r.Fleet = "", rule.Fleet{}
	assert.False(t, in.load(r), "each instance has the limit")
	s.run(2*time.Second, nil)
	assert.Empty(t, in.member.Status(s.clock.Now()).Limits, "nothing is left in the fleet")
}

func TestSettledCallsAreChargedToTheFleet(t *testing.T) {
	t.Parallel()
	s := newScene(t, shared(hotparam.Rule{Limit: 10, Window: 10 * time.Second}), 2)
	in := s.instances[0]
	c := rule.Call{Now: s.clock.Now(), Tokens: 1, Attribute: user("a")}
	ticket, decision := in.limiter.Acquire(c)
	require.Equal(t, rule.Pass, decision)
	in.limiter.(rule.Settler).Settle(s.clock.Now(), c.Now, ticket, 14) // 15 in all
	s.run(500*time.Millisecond, nil)
	s.run(2*time.Second, func(in *instance, _ int) { in.call("a") })
	assert.LessOrEqual(t, s.total("a"), 2, "one on debt of each instance")

	ticket, decision = in.limiter.Acquire(rule.Call{Now: s.clock.Now(), Tokens: 1, Attribute: user("b")})
	require.Equal(t, rule.Pass, decision)
	assert.Greater(t, ticket, rule.Ticket(1<<60), "the value is known by its key from now on")
	in.limiter.(rule.Settler).Settle(s.clock.Now(), s.clock.Now(), ticket, -1)
	s.run(2*time.Second, func(in *instance, _ int) { in.call("b") })
	assert.GreaterOrEqual(t, s.total("b"), 10, "as though it had not been")
}

func TestIdleLimiterOfTheFleetHoldsNothing(t *testing.T) {
	t.Parallel()
	s := newScene(t, shared(hotparam.Rule{Limit: 10}), 1)
	in := s.instances[0]
	assert.True(t, in.limiter.Idle(s.clock.Now()))
	s.run(time.Second, func(*instance, int) { in.call("a") })
	assert.False(t, in.limiter.Idle(s.clock.Now()))
	s.run(10*time.Second, nil)
	assert.True(t, in.limiter.Idle(s.clock.Now()))
	assert.Zero(t, in.gauge(gaugeValues))
	in.limiter.(rule.Retirer).Retire(s.clock.Now())
	_, decision := in.limiter.Acquire(rule.Call{Now: s.clock.Now(), Tokens: 1, Attribute: user("a")})
	assert.Equal(t, rule.Stale, decision)
	s.run(2*time.Second, nil)
	assert.Zero(t, s.store.Len())
}

func TestStatusOfAFleetRuleShowsItsHottestValues(t *testing.T) {
	t.Parallel()
	for _, mode := range []fleet.Mode{fleet.ModeLease, fleet.ModeAsk} {
		s := newScene(t, shared(hotparam.Rule{Limit: 10, Fleet: rule.Fleet{Mode: mode}}), 1)
		in := s.instances[0]
		s.run(time.Second, func(*instance, int) { in.call("hot") })
		status := in.limiter.Status(s.clock.Now())
		require.NotEmpty(t, status.Values)
		assert.Equal(t, "hot", status.Values[0].Value)
		assert.InDelta(t, s.total("hot"), status.Values[0].Passed, 1)
		assert.Positive(t, status.Values[0].Refused)
		assert.InDelta(t, 1, status.Gauges[gaugeValues], 0)
		s.run(8*time.Second, func(*instance, int) { in.call("hot") })
		assert.InDelta(t, 1000, in.limiter.Status(s.clock.Now()).Fleet.Demand, 100)
	}
}

func TestShadowDoesNotAsk(t *testing.T) {
	t.Parallel()
	r := shared(hotparam.Rule{Limit: 10, Shadow: true, Fleet: rule.Fleet{Mode: fleet.ModeAsk}})
	_, isQueue := newScene(t, r, 1).instances[0].limiter.(rule.Queue)
	assert.False(t, isQueue)
}

func TestRuleOfTheFleetWithoutBackendLimitsTheInstance(t *testing.T) {
	t.Parallel()
	s := newService(t, shared(hotparam.Rule{Limit: 10, Window: time.Hour}))
	assert.Equal(t, 10, s.passes(user("a")))
}

func TestKeysOfValuesAreTheSameOnAllInstancesAndTellNothing(t *testing.T) {
	t.Parallel()
	s := newScene(t, shared(hotparam.Rule{Limit: 10}), 3)
	values := []rule.Attribute{
		user("7"), rule.Int(7), user("true"), rule.Bool(true), rule.Bool(false), user(""), user(strings.Repeat("x", 10_000)),
		composite(user("a"), user("b/c")), composite(user("a/b"), user("c")), composite(user("a"), rule.Int(1)),
	}
	s.run(20*time.Millisecond, func(in *instance, _ int) {
		for _, value := range values {
			in.limiter.Acquire(rule.Call{Now: s.clock.Now(), Tokens: 1, Attribute: value})
		}
	})
	s.run(time.Second, nil)
	assert.Len(t, s.keys, len(values))
	for key, instances := range s.keys {
		assert.Equal(t, 3, instances)
		assert.Regexp(t, "^hotParam/r/[0-9a-f]{32}$", key)
	}
}

func TestResourcesOfARuleShareTheTable(t *testing.T) {
	t.Parallel()
	for _, perResource := range []bool{true, false} {
		c := clock.NewVirtual(epoch.Time())
		m := sharing.NewMember(fleet.Config{Manual: true, Instance: "a"}, c, slog.New(slog.DiscardHandler), 1)
		r := hotparam.Kind().Of(hotparam.Rule{
			Name: "all", Match: "*", Shared: !perResource, Param: rule.StringsOf("user"), Limit: 10, Scope: rule.ScopeFleet,
		}).WithDefaults()
		compiled := rule.Env{Version: 1, Now: epoch, Fleet: m, Seed: 1}
		limiters := map[string]rule.Limiter{}
		for _, resource := range []string{"a", "b"} {
			env := compiled
			if env.Resource = resource; !perResource {
				env.Resource = ""
			}
			limiters[resource] = r.NewLimiter(env)
			limiters[resource].Acquire(rule.Call{Now: epoch, Tokens: 1, Attribute: user("someone")})
		}
		keys := map[string]bool{}
		c.Advance(20 * time.Millisecond)
		for _, batch := range m.Step(c.Now()) {
			for i := range batch.Requests {
				keys[strings.TrimRight(batch.Requests[i].Terms.Key, "0123456789abcdef")] = true
			}
		}
		if perResource {
			assert.Equal(t, map[string]bool{"hotParam/all/a/": true, "hotParam/all/b/": true}, keys)
			assert.InDelta(t, 2, limiters["a"].Status(c.Now()).Gauges[gaugeValues], 0, "of all resources")
		} else {
			assert.Equal(t, map[string]bool{"hotParam/all/": true}, keys)
		}
		limiters["a"].(rule.Retirer).Retire(c.Now())
		assert.Len(t, m.Status(c.Now()).Limits, 1)
		limiters["b"].(rule.Retirer).Retire(c.Now())
		assert.Empty(t, m.Status(c.Now()).Limits)
		again := r.NewLimiter(compiled)
		_, decision := again.Acquire(rule.Call{Now: c.Now(), Tokens: 1, Attribute: user("someone")})
		assert.Equal(t, rule.Pass, decision)
	}
}

func TestValuesAreRememberedLongerWhenTheProgramSettles(t *testing.T) {
	t.Parallel()
	s := newScene(t, shared(hotparam.Rule{Limit: 10, MaxValues: 100}), 1)
	in := s.instances[0]
	begin := func(value string) rule.Ticket {
		ticket, decision := in.limiter.Acquire(rule.Call{Now: s.clock.Now(), Tokens: 1, Attribute: user(value)})
		require.Equal(t, rule.Pass, decision)
		return ticket
	}
	start := s.clock.Now()
	in.limiter.(rule.Settler).Settle(start, start, begin("first"), 0)
	ticket := begin("long")
	begin("other")
	next := 0
	s.run(5*time.Second, func(*instance, int) {
		in.call("user-" + strconv.Itoa(next))
		next++
	})
	assert.Zero(t, in.gauge(gaugeForgotten))
	assert.Positive(t, in.gauge(gaugeWithoutSlot))
	in.limiter.(rule.Settler).Settle(s.clock.Now(), start, ticket, 100)
	s.run(time.Second, func(*instance, int) {
		in.call("long")
		in.call("other")
	})
	assert.LessOrEqual(t, s.total("long"), s.total("other")-5, "the call is charged when it ends")
}

// In an outage the status shows what values pass, all together.
func TestStatusInAnOutageShowsWhatValuesPass(t *testing.T) {
	t.Parallel()
	for _, mode := range []fleet.Mode{fleet.ModeLease, fleet.ModeAsk} {
		for _, onOutage := range []fleet.OnOutage{fleet.OutageLast, fleet.OutageShare, fleet.OutageOpen, fleet.OutageClosed} {
			s := newScene(t, shared(hotparam.Rule{Limit: 100, Burst: 20, Fleet: rule.Fleet{Mode: mode, OnOutage: onOutage}}), 2)
			calls := func(in *instance, _ int) {
				in.call("a")
				in.call("b")
			}
			s.run(4*time.Second, calls)
			s.isDown = true
			s.run(4*time.Second, calls)
			for value := range s.passed {
				s.passed[value] = nil
			}
			s.run(4*time.Second, calls)
			passed := float64(s.total("a")+s.total("b")) / 4
			var granted float64
			for _, in := range s.instances {
				status := in.limiter.Status(s.clock.Now())
				require.True(t, status.Fleet.Outage)
				granted += status.Fleet.Granted
			}
			switch onOutage {
			case fleet.OutageOpen:
				assert.InDelta(t, 4000, passed, 40)
				assert.True(t, math.IsInf(granted, 1), "%s", mode)
			case fleet.OutageClosed:
				assert.Zero(t, passed)
				assert.Zero(t, granted, "%s", mode)
			default:
				assert.InDelta(t, passed, granted, 0.1*passed, "%s %s", mode, onOutage)
				assert.Greater(t, passed, 160.0)
			}
		}
	}
}

// Values without a slot of their own that come from one source pass together what one value may: those from
// elsewhere find something left.
func TestValuesOfOneSourceWithoutASlotShareALimit(t *testing.T) {
	t.Parallel()
	for _, mode := range []fleet.Mode{fleet.ModeLease, fleet.ModeAsk} {
		t.Run(string(mode), func(t *testing.T) {
			t.Parallel()
			const limit = 10
			r := shared(hotparam.Rule{Limit: limit, Window: time.Hour, MaxValues: 100, Fleet: rule.Fleet{Mode: mode}})
			s := newScene(t, r, 1)
			limiter := s.instances[0].limiter.(optional.SourceReader)
			calls := func(from string, count int) (passed int) {
				for i := range count {
					source := rule.String(from)
					if from == "" {
						source = rule.String("elsewhere" + strconv.Itoa(i))
					}
					c := rule.Call{Now: s.clock.Now(), Tokens: 1, Attribute: user(from + "/" + strconv.Itoa(s.requests) + "/" + strconv.Itoa(i))}
					if _, decision := limiter.AcquireFrom(c, source); decision == rule.Pass {
						passed++
					} else if decision == rule.Wait {
						w, _, decision := limiter.(rule.Queue).Join(c, rule.Patience{Since: c.Now, Until: 1<<63 - 1, Wake: func() {}})
						if decision != rule.Block {
							passed++ // it is asked for
						}
						if w != nil {
							w.Leave(c.Now)
						}
					}
				}
				return passed
			}
			require.NotZero(t, calls("", 400))
			passed := calls("flooder", 2000)
			assert.Positive(t, passed)
			assert.LessOrEqual(t, passed, limit)
			s.run(2*time.Second, func(*instance, int) {})
			assert.GreaterOrEqual(t, calls("", 100), 50, "a cell has what is leased to it")
		})
	}
}
