package rules_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/penstock-go/penstock/rule"
	"github.com/penstock-go/penstock/rules"
)

type plain struct {
	Name, Resource, Match, Origin string
	Shared, Shadow                bool
}

// plainKind returns a kind with gauges.
func plainKind(name rule.Kind, gauges ...string) rule.Definition {
	var list []rule.Gauge
	for _, gauge := range gauges {
		list = append(list, rule.Gauge{Name: gauge})
	}
	return labelledKind(name, list...)
}

// byTenant returns a counter for one value of a label.
func byTenant(value string) rule.Gauge {
	return rule.Gauge{Name: "shed", Counter: true, Label: "tenant", LabelValue: value}
}

func labelledKind(name rule.Kind, gauges ...rule.Gauge) rule.Definition {
	common := func(p *plain) rule.Common {
		return rule.Common{
			Name: &p.Name, Resource: &p.Resource, Match: &p.Match, Shared: &p.Shared, Origin: &p.Origin, Shadow: &p.Shadow,
		}
	}
	spec := rule.Spec[plain]{
		Kind: name, Common: common,
		New:    func(*plain, rule.Env) rule.Limiter { return nil },
		Gauges: gauges,
	}
	return rule.Define(spec)
}

func TestKindsWhoseMetricsWouldBeTheSameAreRefused(t *testing.T) {
	for name, test := range map[string]struct {
		kinds []rule.Definition
		want  string
	}{
		"fine":                 {[]rule.Definition{plainKind("tenant", "quota"), plainKind("tenantQuota", "left"), plainKind("v2Limit")}, ""},
		"the same name":        {[]rule.Definition{plainKind("gate"), plainKind("gate")}, `rules: there are two kinds of rules "gate"`},
		"one that comes along": {[]rule.Definition{plainKind("flow")}, `rules: there are two kinds of rules "flow"`},
		"names that differ by case": {
			[]rule.Definition{plainKind("tenantQuota"), plainKind("TenantQuota")},
			`rules: the kind of rules "TenantQuota": its name must be in camel case, letters and digits, as in tenantQuota`,
		},
		"no letters":       {[]rule.Definition{plainKind("tenant_quota")}, `rules: the kind of rules "tenant_quota": its name must be in camel case, letters and digits, as in tenantQuota`},
		"not ASCII":        {[]rule.Definition{plainKind("größe")}, `rules: the kind of rules "größe": its name must be in camel case, letters and digits, as in tenantQuota`},
		"of the engine":    {[]rule.Definition{plainKind("rule", "blocked_total")}, `rules: the kind of rules "rule": metrics of the engine begin with "rule": give it another name`},
		"in two words":     {[]rule.Definition{plainKind("inFlight")}, `rules: the kind of rules "inFlight": metrics of the engine begin with "in": give it another name`},
		"a word of theirs": {[]rule.Definition{plainKind("ruler"), plainKind("sources")}, ""},
		"kind and gauge": {
			[]rule.Definition{plainKind("tenant", "quota_left"), plainKind("tenantQuota", "left")},
			`rules: the kinds of rules "tenant" and "tenantQuota" both have a metric penstock_tenant_quota_left: give a gauge or a kind another name`,
		},
		"two gauges": {
			[]rule.Definition{plainKind("tenant", "left", "left")},
			`rules: the kind of rules "tenant" has two metrics penstock_tenant_left: give the gauge another name`,
		},
		"a gauge like a metric of all kinds": {
			[]rule.Definition{plainKind("tenant", "state")},
			`rules: the kind of rules "tenant" has two metrics penstock_tenant_state: give the gauge another name`,
		},
		"a gauge in camel case": {
			[]rule.Definition{plainKind("tenant", "inFlight")},
			`rules: the kind of rules "tenant": the metric "penstock_tenant_inFlight" is not in snake case: give the gauge another name`,
		},
		"a gauge by label": {
			[]rule.Definition{labelledKind("tenant", rule.Gauge{Name: "left"}, byTenant("a"), byTenant("b"), rule.Gauge{Name: "shed"})}, "",
		},
		"a label value twice": {
			[]rule.Definition{labelledKind("tenant", byTenant("a"), byTenant("b"), byTenant("a"))},
			`rules: the kind of rules "tenant" has two metrics penstock_tenant_shed_total: give the gauge another name`,
		},
		"gauges of a label that are apart": {
			[]rule.Definition{labelledKind("tenant", byTenant("a"), rule.Gauge{Name: "left"}, byTenant("b"))},
			`rules: the kind of rules "tenant" has two metrics penstock_tenant_shed_total: give the gauge another name`,
		},
		"another label": {
			[]rule.Definition{labelledKind("tenant", byTenant("a"), rule.Gauge{Name: "shed", Counter: true, Label: "user", LabelValue: "b"})},
			`rules: the kind of rules "tenant" has two metrics penstock_tenant_shed_total: give the gauge another name`,
		},
		"a label of all metrics": {
			[]rule.Definition{labelledKind("tenant", rule.Gauge{Name: "left", Label: "rule", LabelValue: "a"})},
			`rules: the kind of rules "tenant": the label "rule" of the gauge "left" must be in snake case, and neither resource nor rule`,
		},
		"a label in camel case": {
			[]rule.Definition{labelledKind("tenant", rule.Gauge{Name: "left", Label: "byTenant", LabelValue: "a"})},
			`rules: the kind of rules "tenant": the label "byTenant" of the gauge "left" must be in snake case, and neither resource nor rule`,
		},
		"a counter like another metric": {
			[]rule.Definition{labelledKind("tenant", rule.Gauge{Name: "transitions", Counter: true})},
			`rules: the kind of rules "tenant" has two metrics penstock_tenant_transitions_total: give the gauge another name`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			define := func() { rules.NewTable(test.kinds...) }
			if test.want == "" {
				assert.NotPanics(t, define)
				return
			}
			assert.PanicsWithValue(t, test.want, define)
		})
	}
}
