package rules_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/fleet"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/rule"
	"github.com/penstock-go/penstock/rules"
)

func TestParseReadsHowAFleetSharesALimit(t *testing.T) {
	t.Parallel()
	const document = `flow:
  - {name: quota, resource: "partners:call", limit: 10000, scope: fleet, fleet: {mode: ask, onOutage: closed}}
  - {name: short, resource: a, limit: 5, scope: fleet}
  - {name: own, resource: a, limit: 5, scope: instance}
`
	set, err := rules.Parse("", []byte(document))
	require.NoError(t, err)
	assert.Equal(t, rule.Fleet{Mode: fleet.ModeAsk, OnOutage: fleet.OutageClosed}, set.Flow[0].Fleet)
	assert.Equal(t, rule.ScopeFleet, set.Flow[1].Scope)

	written, err := set.YAML()
	require.NoError(t, err)
	assert.Contains(t, string(written), "scope: fleet")
	assert.NotContains(t, string(written), "mode: lease", "the default")
	again, err := rules.Parse("", written)
	require.NoError(t, err)
	for i := range set.Flow {
		assert.Equal(t, flow.Kind().WithDefaults(set.Flow[i]), flow.Kind().WithDefaults(again.Flow[i]))
	}
	assert.Equal(t, rule.Fleet{Mode: fleet.ModeLease, OnOutage: fleet.OutageLast}, flow.Kind().WithDefaults(again.Flow[1]).Fleet)
}

func TestParseSaysWhatIsWrongWithTheFieldsOfAFleet(t *testing.T) {
	t.Parallel()
	for _, m := range []mistake{
		{
			"a misspelled mode", "flow:\n  - {resource: a, limit: 1, scope: fleet, fleet: {mode: leese}}",
			[]string{`2:57 flow rule "a": fleet.mode is "leese": did you mean "lease"?`},
		},
		{
			"a scope of another system", "flow:\n  - {resource: a, limit: 1, scope: cluster}",
			[]string{`2:36 flow rule "a": scope is "cluster": must be "instance" or "fleet"`},
		},
		{
			"a fleet without the scope", "flow:\n  - {resource: a, limit: 1, fleet: {onOutage: open}}",
			[]string{`2:47 flow rule "a": fleet.onOutage has no effect without scope "fleet": remove it, or add scope: fleet`},
		},
		{
			"an unknown field", "flow:\n  - {resource: a, limit: 1, scope: fleet, fleet: {outage: open}}",
			[]string{`2:51 flow rule "a": unknown field "fleet.outage": did you mean "fleet.onOutage"?`},
		},
		{
			"a limit that each call is asked for cannot warm up",
			"flow:\n  - {resource: a, limit: 1, warmUp: {period: 1s}, scope: fleet, fleet: {mode: ask}}",
			[]string{`2:46 flow rule "a": warmUp.period has no effect with scope "fleet" unless fleet.mode is "share"`},
		},
	} {
		m.run(t)
	}
}

func TestParseReadsHowAFleetSharesLimitsOfValues(t *testing.T) {
	t.Parallel()
	const document = `hotParam:
  - {name: tenants, match: "api:*", param: tenant, limit: 100, scope: fleet}
  - {name: logins, resource: a, param: account, limit: 5, window: 5m, scope: fleet, fleet: {mode: ask, onOutage: share}}
`
	set, err := rules.Parse("", []byte(document))
	require.NoError(t, err)
	assert.Equal(t, rule.Fleet{Mode: fleet.ModeLease, OnOutage: fleet.OutageLast}, set.HotParam[0].Fleet)
	assert.Equal(t, rule.Fleet{Mode: fleet.ModeAsk, OnOutage: fleet.OutageShare}, set.HotParam[1].Fleet)

	written, err := set.YAML()
	require.NoError(t, err)
	assert.NotContains(t, string(written), "mode: lease", "the default")
	again, err := rules.Parse("", written)
	require.NoError(t, err)
	assert.Equal(t, set.HotParam, again.HotParam)
}

func TestParseSaysWhatValuesOfAFleetCannotHave(t *testing.T) {
	t.Parallel()
	for _, m := range []mistake{
		{
			"calls under way of a shadow rule, with an age",
			"hotParam:\n  - {resource: a, param: user, concurrency: 3, maxAge: 1m, shadow: true, scope: fleet, fleet: {mode: lease}}",
			[]string{
				`2:56 hotParam rule "a": maxAge stands beside scope "fleet"`,
				`2:68 hotParam rule "a": shadow is true, but a shadow rule does not wait for answers`,
				`2:102 hotParam rule "a": fleet.mode is "lease": instances share places of values by "ask"`,
			},
		},
		{
			"even spacing and a window",
			"hotParam:\n  - {resource: a, param: user, limit: 1, algorithm: throttle, scope: fleet, fleet: {mode: window}}",
			[]string{
				`2:70 hotParam rule "a": scope is "fleet", but instances do not space the calls of a value together`,
				`2:91 hotParam rule "a": fleet.mode is "window": instances share limits for each value by "lease" or "ask"`,
			},
		},
		{
			"a misspelled field", "hotParam:\n  - {resource: a, param: user, limit: 1, scope: fleet, fleet: {modes: ask}}",
			[]string{`2:64 hotParam rule "a": unknown field "fleet.modes": did you mean "fleet.mode"?`},
		},
	} {
		m.run(t)
	}
}
