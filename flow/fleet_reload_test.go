package flow_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/fleet"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/internal/sharing"
	"github.com/penstock-go/penstock/rule"
)

func TestChangedFleetRuleKeepsWhatItShares(t *testing.T) {
	t.Parallel()
	base := map[string]flow.Rule{
		"lease":          ofFleet(reject(100), fleet.ModeLease),
		"window":         ofFleet(reject(100), fleet.ModeWindow),
		"waiting":        ofFleet(patient(bucket(100, 10), time.Second), fleet.ModeLease),
		"ask":            ofFleet(reject(100), fleet.ModeAsk),
		"share":          ofFleet(reject(100), fleet.ModeShare),
		"share, waiting": ofFleet(throttle(100, time.Second), fleet.ModeShare),
	}
	for name, r := range base {
		for change, test := range map[string]struct {
			change func(*flow.Rule)
			adopts bool
		}{
			"a higher limit":    {func(r *flow.Rule) { r.Limit = 200 }, true},
			"another outage":    {func(r *flow.Rule) { r.Fleet.OnOutage = fleet.OutageClosed }, true},
			"another window":    {func(r *flow.Rule) { r.Window = 2 * time.Second }, true},
			"its own instance":  {func(r *flow.Rule) { r.Scope, r.Fleet = "", rule.Fleet{} }, false},
			"another mode":      {func(r *flow.Rule) { r.Fleet.Mode = otherMode(r.Fleet.Mode) }, false},
			"a name of its own": {func(r *flow.Rule) { r.Name = "renamed" }, false},
		} {
			s := newFleetScene(t, r, 1)
			in := s.instances[0]
			s.run(100*time.Millisecond, func(in *instance, _ int) { in.call(1, rule.PriorityNormal) })
			changed := r
			test.change(&changed)
			require.Empty(t, flow.Kind().Faults(changed))
			assert.Equal(t, test.adopts, in.load(changed), "%s, %s", name, change)
			before := len(in.passed)
			s.run(4*time.Second, func(in *instance, _ int) { in.call(1, rule.PriorityNormal) })
			assert.Greater(t, len(in.passed), before, "%s, %s", name, change)
			require.NotNil(t, in.limiter.Status(s.clock.Now()).Quota)
		}
	}
}

func otherMode(mode fleet.Mode) fleet.Mode {
	if mode == fleet.ModeAsk {
		return fleet.ModeLease
	}
	return fleet.ModeAsk
}

func TestLowerLimitOfTheFleetHoldsAfterAReload(t *testing.T) {
	t.Parallel()
	for name, r := range map[string]flow.Rule{
		"lease":    ofFleet(reject(1000), fleet.ModeLease),
		"window":   ofFleet(reject(1000), fleet.ModeWindow),
		"throttle": ofFleet(throttle(1000, 100*time.Millisecond), fleet.ModeLease),
		"ask":      ofFleet(reject(1000), fleet.ModeAsk),
		"share":    ofFleet(reject(1000), fleet.ModeShare),
	} {
		s := newFleetScene(t, r, 3)
		all := func(in *instance, _ int) { in.call(1, rule.PriorityNormal) }
		s.run(5*time.Second, all)
		r.Limit = 100
		for _, in := range s.instances {
			require.True(t, in.load(r), name)
		}
		s.run(7*time.Second, all)
		assert.LessOrEqual(t, s.total(7*time.Second, 12*time.Second), 650, "%s: five seconds, and what instances owe", name)
		assert.GreaterOrEqual(t, s.total(7*time.Second, 12*time.Second), 350, name)
		r.Limit = 0
		for _, in := range s.instances {
			require.True(t, in.load(r), name)
		}
		s.run(2*time.Second, all)
		assert.Zero(t, s.total(13*time.Second, 14*time.Second), "%s: a limit of 0 blocks all", name)
		for _, in := range s.instances {
			assert.Empty(t, in.waiting, name)
		}
	}
}

func TestRetiredFleetRuleLetsGoOfCallsThatWait(t *testing.T) {
	t.Parallel()
	for name, r := range map[string]flow.Rule{
		"lease": ofFleet(patient(bucket(1, 1), 10*time.Second), fleet.ModeLease),
		"ask":   ofFleet(throttle(1, 10*time.Second), fleet.ModeAsk),
		"share": ofFleet(throttle(1, 10*time.Second), fleet.ModeShare),
	} {
		s := newFleetScene(t, r, 1)
		in := s.instances[0]
		s.run(2*time.Second, func(in *instance, _ int) {
			if len(in.waiting) < 3 {
				in.call(1, rule.PriorityNormal)
			}
		})
		require.NotEmpty(t, in.waiting, name)
		in.limiter.(rule.Retirer).Retire(s.clock.Now())
		for _, c := range in.waiting {
			assert.True(t, c.woken, name)
			_, _, decision := c.waiter.Poll(s.clock.Now())
			assert.Equal(t, rule.Stale, decision, name)
		}
		in.waiting = nil
		next := in.rule.Adopt(in.limiter, rule.Env{Version: 9, Now: s.clock.Now(), Fleet: in.member, Signals: new(oneSignal)})
		assert.Nil(t, next, "%s: what was handed back is not gone on with", name)
		s.run(time.Second, nil)
		assert.Empty(t, in.member.Status(s.clock.Now()).Limits, "%s: the member knows it no more", name)
	}
}

func TestOldVersionThatIsRetiredLateTakesNothingFromTheNewOne(t *testing.T) {
	t.Parallel()
	r := ofFleet(reject(100), fleet.ModeLease)
	s := newFleetScene(t, r, 1)
	in := s.instances[0]
	old := in.limiter
	r.Limit = 50
	require.True(t, in.load(r))
	old.(rule.Retirer).Retire(s.clock.Now())
	s.run(2*time.Second, func(in *instance, _ int) { in.call(1, rule.PriorityNormal) })
	assert.Greater(t, s.total(0, 2*time.Second), 80)
}

func TestSettledTokensCountForTheFleet(t *testing.T) {
	t.Parallel()
	for name, r := range map[string]flow.Rule{
		"lease":    ofFleet(bucket(100, 50), fleet.ModeLease),
		"window":   ofFleet(reject(100), fleet.ModeWindow),
		"throttle": ofFleet(throttle(100, 50*time.Millisecond), fleet.ModeLease),
		"waiting":  ofFleet(patient(bucket(100, 50), 50*time.Millisecond), fleet.ModeLease),
		"ask":      ofFleet(reject(100), fleet.ModeAsk),
		"share":    ofFleet(reject(100), fleet.ModeShare),
	} {
		s := newFleetScene(t, r, 2)
		s.run(12*time.Second, func(in *instance, _ int) {
			in.call(1, rule.PriorityNormal)
		})
		without := s.total(6*time.Second, 12*time.Second)

		s = newFleetScene(t, r, 2)
		for _, in := range s.instances {
			in.onPass = func(c *fleetCall) { // it cost four more
				in.limiter.(rule.Settler).Settle(s.clock.Now(), s.clock.Now(), c.ticket, 4)
			}
		}
		s.run(12*time.Second, func(in *instance, _ int) { in.call(1, rule.PriorityNormal) })
		assert.Less(t, s.total(6*time.Second, 12*time.Second), without*3/4, name)
	}
}

func TestShadowRuleOfTheFleetNeverWaits(t *testing.T) {
	t.Parallel()
	for name, r := range map[string]flow.Rule{
		"ask":          ofFleet(reject(100), fleet.ModeAsk),
		"asked window": ofFleet(fixedWindow(100), fleet.ModeAsk),
		"throttle":     ofFleet(throttle(100, 0), fleet.ModeLease),
	} {
		r.Shadow = true
		s := newFleetScene(t, r, 2)
		s.run(6*time.Second, func(in *instance, _ int) {
			c := in.call(1, rule.PriorityNormal)
			require.Nil(t, c.waiter, name)
		})
		assert.InDelta(t, 500, s.total(time.Second, 6*time.Second), 130, name)
	}
}

func TestKeysOfLimitsAreTheirRulesAndResources(t *testing.T) {
	t.Parallel()
	key := func(r flow.Rule, resource string) string {
		member := sharing.NewMember(fleet.Config{Manual: true}, clock.NewVirtual(epoch.Time()), quiet, 1)
		flow.Kind().Of(ofFleet(r, fleet.ModeLease)).WithDefaults().NewLimiter(rule.Env{Now: epoch, Fleet: member, Resource: resource})
		return member.Status(epoch).Limits[0].Key
	}
	pattern := flow.Rule{Name: "a/b", Match: "*", Limit: 1}
	assert.Equal(t, "flow/quota", key(flow.Rule{Name: "quota", Resource: "r", Limit: 1}, "r"))
	assert.Equal(t, "flow/a%2Fb/orders/1", key(pattern, "orders/1"))
	pattern.Shared = true
	assert.Equal(t, "flow/a%2Fb", key(pattern, ""))
}

func TestCallsThatGoOnWithoutTheRuleAreNoDemandOfIt(t *testing.T) {
	t.Parallel()
	s := newFleetScene(t, ofFleet(throttle(10, 30*time.Second), fleet.ModeShare), 1)
	s.run(2*time.Second, nil)
	in := s.instances[0]
	for range 100 {
		in.call(1, rule.PriorityNormal)
	}
	require.NotEmpty(t, in.waiting)
	in.limiter.(rule.Retirer).Retire(s.clock.Now())
	in.poll()
	require.Empty(t, in.waiting)
	s.clock.Advance(time.Second)
	assert.LessOrEqual(t, in.limiter.Status(s.clock.Now()).Fleet.Demand, 2.0)
}
