package isolation_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/penstock-go/penstock/isolation"
	"github.com/penstock-go/penstock/rule"
)

// patientRule is a rule for which calls wait up to a second.
func patientRule(limit int) isolation.Rule {
	return isolation.Rule{Limit: limit, MaxWait: time.Second}
}

// With twice as many calls as there are places for, no more than the limit are ever under way, and the
// limit is used.
func TestFleetHasNoMoreCallsUnderWayThanItsLimit(t *testing.T) {
	t.Parallel()
	const ms = time.Millisecond
	for name, test := range map[string]struct {
		limit, instances int
		service          time.Duration
		first            float64 // share of the demand
		used             float64 // of the limit, at least
		requests         float64 // a second and instance, at most
	}{
		"all alike":                    {40, 8, 20 * ms, 1. / 8, .99, 6},
		"one has most, 5 a place":      {40, 8, 20 * ms, .9, .92, 60},
		"one has most, 50 a place":     {400, 8, 20 * ms, .9, .97, 80},
		"fewer places than instances":  {3, 8, 20 * ms, 1. / 8, .97, 6},
		"one instance":                 {40, 2, 20 * ms, 1, .99, 6},
		"a hundred instances":          {500, 100, 200 * ms, .01, .99, 6},
		"no multiple of the instances": {41, 8, 20 * ms, 1. / 8, .98, 6},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, patientRule(test.limit))
			w.service = test.service
			w.join(w.rates(test.instances, 2, test.first)...)
			w.run(3 * time.Second)
			got := w.measure(4 * time.Second)
			t.Logf("most %d, used %.3f, %.1f requests, passes %d to %d", got.most, got.used, got.requests, slices.Min(got.passes), slices.Max(got.passes))
			assert.LessOrEqual(t, got.most, test.limit)
			assert.GreaterOrEqual(t, got.used, test.used)
			assert.LessOrEqual(t, got.requests, test.requests)
		})
	}
}

// Of a limit of fewer places than instances, each has its part.
func TestFleetGivesPlacesByTurns(t *testing.T) {
	t.Parallel()
	w := newWorld(t, patientRule(3))
	w.join(w.rates(8, 2, 1./8)...)
	w.run(3 * time.Second)
	got := w.measure(6 * time.Second)
	mean := 3 * 6 * time.Second / w.service / 8
	for i, passes := range got.passes {
		assert.InEpsilon(t, mean, passes, .3, "instance %d", i)
	}
}

// Who does not call does not keep places from those who do: a single instance has all of them.
func TestFleetGivesPlacesToWhomCallsThem(t *testing.T) {
	t.Parallel()
	w := newWorld(t, isolation.Rule{Limit: 20})
	w.join(2000, 0, 0, 0, 0)
	w.run(2 * time.Second)
	got := w.measure(3 * time.Second)
	assert.LessOrEqual(t, got.most, 20)
	assert.GreaterOrEqual(t, got.used, .75, "all but those that the others keep for their first calls")
}

// Below the limit no call is refused for want of a place that another instance has.
func TestFleetRefusesFewCallsBelowItsLimit(t *testing.T) {
	t.Parallel()
	w := newWorld(t, isolation.Rule{Limit: 100})
	w.join(w.rates(8, .4, 1./8)...)
	w.run(3 * time.Second)
	got := w.measure(5 * time.Second)
	refused, passed := 0, 0
	for i, m := range w.instances {
		refused, passed = refused+m.refused, passed+got.passes[i]
	}
	assert.Less(t, float64(refused)/float64(passed), .02, "%d of %d", refused, passed)
	assert.LessOrEqual(t, got.requests, 12.)
}

// busyWorld is a fleet of eight with twice the demand, for some time already.
func busyWorld(t *testing.T, r isolation.Rule) *world {
	w := newWorld(t, r)
	w.join(w.rates(8, 2, 1./8)...)
	w.run(3 * time.Second)
	return w
}

func withOutage(r isolation.Rule, o rule.Fleet) isolation.Rule {
	r.Fleet = o
	return r
}

// Places of instances that are killed are used again within .85 s, whenever that is and whichever they are.
func TestPlacesOfKilledInstancesAreFreeAgain(t *testing.T) {
	t.Parallel()
	for first := range 3 {
		for phase := time.Duration(0); phase < 250*time.Millisecond; phase += 50 * time.Millisecond {
			t.Run(fmt.Sprint(first, " ", phase), func(t *testing.T) {
				t.Parallel()
				w := busyWorld(t, patientRule(40))
				w.run(phase)
				for i := range 3 {
					w.instances[(first+i*(first+1))%8].kill()
				}
				assert.LessOrEqual(t, w.measure(850*time.Millisecond).most, 40)
				got := w.measure(500 * time.Millisecond)
				assert.LessOrEqual(t, got.most, 40)
				assert.GreaterOrEqual(t, got.used, .99)
			})
		}
	}
}

// An instance that is stopped for less than a lease changes nothing.
func TestHiccupsOfInstancesAreHarmless(t *testing.T) {
	t.Parallel()
	for limit, used := range map[int]float64{3: .85, 40: .96} { // a turn may come while an instance is stopped
		w := busyWorld(t, patientRule(limit))
		var hiccup func()
		hiccup = func() {
			m := w.instances[w.random.IntN(8)]
			m.pause()
			w.after(time.Duration(50+w.random.IntN(400))*time.Millisecond, func() { m.resume(); hiccup() })
		}
		hiccup()
		got := w.measure(10 * time.Second)
		assert.LessOrEqual(t, got.most, limit)
		t.Logf("limit %d: used %.3f", limit, got.used)
		assert.GreaterOrEqual(t, got.used, used)
	}
}

// While an instance is paused for longer than a lease, its calls are under way beside all others. When it
// goes on, it begins none before it has places.
func TestAPausedInstanceHasOnlyTheCallsThatItHad(t *testing.T) {
	t.Parallel()
	for range 5 {
		w := busyWorld(t, patientRule(40))
		w.run(time.Duration(w.random.IntN(1000)) * time.Millisecond)
		m := w.instances[2]
		m.pause()
		frozen := m.underWay
		during := w.measure(2 * time.Second)
		assert.LessOrEqual(t, during.most, 40+frozen)
		assert.GreaterOrEqual(t, during.used, .9)
		m.resume()
		assert.LessOrEqual(t, w.measure(200*time.Millisecond).most, 40+frozen)
		assert.LessOrEqual(t, w.measure(time.Second).most, 40)
	}
}

// The store is killed and is back, empty, at once or after two seconds.
func TestTheLimitHoldsWhenTheStoreLosesItsState(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		onOutage     string
		down         time.Duration
		during, used float64 // of the limit, while it is down and from .3 s after that on
	}{
		{"last", 0, 1, .99},
		{"last", 2 * time.Second, .99, .99},
		{"share", 2 * time.Second, .99, .99},
		{"closed", 0, 1, .99},
		{"closed", 2 * time.Second, 0, .99},
	} {
		t.Run(test.onOutage+" "+test.down.String(), func(t *testing.T) {
			t.Parallel()
			w := busyWorld(t, withOutage(patientRule(40), outage(test.onOutage)))
			w.isDown = true
			w.store.Flush()
			if test.down > 0 {
				w.run(800 * time.Millisecond)
				got := w.measure(test.down - 800*time.Millisecond)
				assert.LessOrEqual(t, got.most, 40)
				assert.InDelta(t, test.during, got.used, .02)
			}
			w.store.Flush()
			w.isDown = false
			assert.LessOrEqual(t, w.measure(300*time.Millisecond).most, 40)
			got := w.measure(3 * time.Second)
			assert.LessOrEqual(t, got.most, 40)
			assert.GreaterOrEqual(t, got.used, test.used)
		})
	}
}

// An instance that is stopped while the store is killed and back, again and again.
func TestTheLimitHoldsWhenAnInstanceSleepsThroughARestart(t *testing.T) {
	t.Parallel()
	w := busyWorld(t, patientRule(40))
	for i := range 5 {
		m := w.instances[i]
		m.pause()
		w.store.Flush()
		w.run(300 * time.Millisecond)
		m.resume()
		got := w.measure(2 * time.Second)
		assert.LessOrEqual(t, got.most, 40)
		assert.GreaterOrEqual(t, got.used, .9)
	}
}

// One instance is cut off from the store. The others share the limit; it goes on as its rule says.
func TestAnInstanceThatIsCutOffGoesOnAsItsRuleSays(t *testing.T) {
	t.Parallel()
	for onOutage, more := range map[string]int{"last": 5, "share": 5, "closed": 5, "open": 1000} {
		w := busyWorld(t, withOutage(patientRule(40), outage(onOutage)))
		m := w.instances[1]
		m.isCut = true
		w.run(time.Second)
		passes := m.passes
		got := w.measure(time.Second)
		assert.LessOrEqual(t, got.most, 40+more, onOutage)
		assert.GreaterOrEqual(t, got.used, .98, onOutage)
		if onOutage == "closed" {
			assert.LessOrEqual(t, got.most, 40)
			assert.Zero(t, got.passes[1], "of %d before", passes)
		} else {
			assert.Positive(t, got.passes[1], onOutage)
		}
		m.isCut = false
		w.run(600 * time.Millisecond)
		assert.LessOrEqual(t, w.measure(time.Second).most, 40, onOutage)
	}
}

// Answers that are lost take no places with them.
func TestLostAnswersTakeNoPlaces(t *testing.T) {
	t.Parallel()
	w := newWorld(t, patientRule(40))
	w.loss = .02
	w.join(w.rates(8, 2, .5)...)
	w.run(3 * time.Second)
	got := w.measure(5 * time.Second)
	assert.LessOrEqual(t, got.most, 40)
	assert.GreaterOrEqual(t, got.used, .9)
}

// Without word of grants, instances find out by asking.
func TestFleetNeedsNoNotices(t *testing.T) {
	t.Parallel()
	w := newWorld(t, patientRule(40))
	w.isSilent = true
	w.join(w.rates(8, 2, 1./8)...)
	w.run(3 * time.Second)
	got := w.measure(3 * time.Second)
	assert.LessOrEqual(t, got.most, 40)
	assert.GreaterOrEqual(t, got.used, .98)
}

func TestAFleetLimitCanBeLoweredAndRaised(t *testing.T) {
	t.Parallel()
	w := busyWorld(t, patientRule(40))
	for version, limit := range []int{16, 80, 0, 40} {
		w.rule.Limit = limit
		for _, m := range w.instances {
			m.limiter = sound(t, w.rule).Adopt(m.limiter, ruleEnv(uint64(version)+2, m)).(limiter)
			m.limiter.Activate(w.now())
			m.plan()
		}
		w.run(time.Second)
		got := w.measure(2 * time.Second)
		assert.LessOrEqual(t, got.most, limit)
		if limit > 0 {
			assert.GreaterOrEqual(t, got.used, .9, "%d", limit)
		}
	}
}

// When a rule goes, its places are free for others as soon as its calls have ended.
func TestPlacesOfARetiredRuleGoBack(t *testing.T) {
	t.Parallel()
	w := busyWorld(t, patientRule(40))
	for _, m := range w.instances[:4] {
		m.rate = 0
		m.limiter.Retire(w.now())
		m.plan()
	}
	w.run(100 * time.Millisecond)
	got := w.measure(time.Second)
	assert.LessOrEqual(t, got.most, 40)
	assert.GreaterOrEqual(t, got.used, .98)
}

func TestACallUnderALimitOfTheFleetAllocatesNothing(t *testing.T) {
	l := leased(t)
	now := epoch.Add(time.Second)
	passed := 0
	allocs := testing.AllocsPerRun(100, func() {
		ticket, decision := l.Acquire(rule.Call{Now: now, Tokens: 1})
		if decision == rule.Pass {
			passed++
			l.Done(ticket, rule.Exit{Now: now})
		}
	})
	assert.Positive(t, passed)
	assert.Zero(t, allocs)
}

// Instances that start while the store is away have their part of the limit, if they know how many there
// are to be; else they have nothing to go by.
func TestInstancesThatStartInAnOutageHaveTheirPart(t *testing.T) {
	t.Parallel()
	for _, onOutage := range []string{"last", "share"} {
		for _, expected := range []int{0, 4} {
			w := newWorld(t, withOutage(patientRule(40), outage(onOutage)))
			w.isDown, w.expected = true, expected
			w.join(w.rates(4, 2, .25)...)
			w.run(2 * time.Second)
			got := w.measure(3 * time.Second)
			assert.LessOrEqual(t, got.most, 40)
			if expected > 0 {
				assert.GreaterOrEqual(t, got.used, .95, onOutage)
			} else {
				assert.Zero(t, got.used, onOutage)
			}
			w.isDown = false
			w.run(time.Second)
			got = w.measure(3 * time.Second)
			assert.LessOrEqual(t, got.most, 40)
			assert.GreaterOrEqual(t, got.used, .95, onOutage)
		}
	}
}

// While a change of the limit is rolled out, the lower one is that of all: no more calls are under way, and
// the instances that have it, few or most, get their part of it.
func TestInstancesHaveTheirPartsWhileALimitIsRolledOut(t *testing.T) {
	t.Parallel()
	for _, change := range []struct{ before, after int }{{40, 16}, {16, 40}, {40, 5}} {
		for _, updated := range []int{1, 4, 7} {
			t.Run(fmt.Sprintf("%d of 8 from %d to %d", updated, change.before, change.after), func(t *testing.T) {
				t.Parallel()
				w := busyWorld(t, patientRule(change.before))
				w.rule.Limit = change.after
				for _, m := range w.instances[:updated] {
					m.limiter = sound(t, w.rule).Adopt(m.limiter, ruleEnv(2, m)).(limiter)
					m.limiter.Activate(w.now())
					m.plan()
				}
				w.run(time.Second)
				w.rule.Limit = min(change.before, change.after)
				got := w.measure(4 * time.Second)
				assert.LessOrEqual(t, got.most, w.rule.Limit)
				assert.GreaterOrEqual(t, got.used, .9)
				mean := 0
				for _, passes := range got.passes {
					mean += passes
				}
				for i, passes := range got.passes {
					assert.InEpsilon(t, float64(mean)/8, float64(passes), .3, "instance %d", i)
				}
			})
		}
	}
}
