package hotparam_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/penstock-go/penstock/fleet"
	"github.com/penstock-go/penstock/hotparam"
	"github.com/penstock-go/penstock/rule"
)

func TestFleetRulesLeaseByDefault(t *testing.T) {
	t.Parallel()
	complete := hotparam.Kind().WithDefaults(shared(hotparam.Rule{Limit: 5}))
	assert.Equal(t, rule.Fleet{Mode: fleet.ModeLease, OnOutage: fleet.OutageLast}, complete.Fleet)
	assert.Empty(t, hotparam.Kind().Faults(complete))

	local := shared(hotparam.Rule{Limit: 5})
	local.Scope = rule.ScopeInstance
	assert.Empty(t, hotparam.Kind().Faults(local))
	assert.Empty(t, hotparam.Kind().WithDefaults(local).Scope, "the same as none")
}

func TestMistakesInFleetRulesSayWhatToDo(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		change func(*hotparam.Rule)
		want   rule.Fault
	}{
		"a scope that is not known": {
			func(r *hotparam.Rule) { r.Scope = "cluster" },
			rule.Fault{Field: "scope", Message: `is "cluster": must be "instance" or "fleet"`},
		},
		"calls under way, by leases": {
			func(r *hotparam.Rule) { r.Limit, r.Concurrency, r.Fleet.Mode = 0, 5, fleet.ModeLease },
			rule.Fault{Field: "fleet.mode", Message: `is "lease": instances share places of values by "ask"; ` +
				`remove fleet.mode, or set it to that`},
		},
		"calls under way, with an age": {
			func(r *hotparam.Rule) { r.Limit, r.Concurrency, r.MaxAge = 0, 5, time.Minute },
			rule.Fault{Field: "maxAge", Message: `stands beside scope "fleet", where places are given back when calls end, ` +
				`or their instance does: remove it, or remove scope`},
		},
		"even spacing": {
			func(r *hotparam.Rule) { r.Algorithm = hotparam.Throttle },
			rule.Fault{Field: "scope", Message: `is "fleet", but instances do not space the calls of a value together: ` +
				`set algorithm to "tokenBucket" or "slidingWindow", or remove scope, and each instance has the limit`},
		},
		"a window": {
			func(r *hotparam.Rule) { r.Algorithm, r.Fleet.Mode = hotparam.SlidingWindow, fleet.ModeWindow },
			rule.Fault{Field: "fleet.mode", Message: `is "window": instances share limits for each value by "lease" or "ask"`},
		},
		"shares": {
			func(r *hotparam.Rule) { r.Fleet.Mode = fleet.ModeShare },
			rule.Fault{Field: "fleet.mode", Message: `is "share": instances share limits for each value by "lease" or "ask"`},
		},
		"a behaviour in an outage that is not known": {
			func(r *hotparam.Rule) { r.Fleet.OnOutage = "panic" },
			rule.Fault{Field: "fleet.onOutage", Message: `is "panic": must be "last", "share", "open" or "closed"`},
		},
		"a field without the scope": {
			func(r *hotparam.Rule) { r.Scope, r.Fleet.OnOutage = "", fleet.OutageOpen },
			rule.Fault{Field: "fleet.onOutage", Message: `has no effect without scope "fleet": remove it, or add scope: fleet`},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := shared(hotparam.Rule{Limit: 5, Window: time.Minute})
			if test.change(&r); r.Concurrency > 0 {
				r.Window = 0
			}
			assert.Equal(t, []rule.Fault{test.want}, hotparam.Kind().Faults(r))
		})
	}
}
