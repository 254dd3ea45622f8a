package serve_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/rule"
	"github.com/penstock-go/penstock/rules"
	"github.com/penstock-go/penstock/serve"
)

// How calls end no proxy says; and a data plane refuses what is over its quota.
func TestRulesThatCountByOutcomeOrDemoteAreNamed(t *testing.T) {
	counts := rules.Set{Flow: []flow.Rule{{Resource: "a", Limit: 5, Counts: rule.CountsFailures}}}
	require.ErrorContains(t, serve.Check(counts), "depend on how calls end")
	require.ErrorContains(t, serve.CheckQuotas(counts), "depend on how calls end")
	demotes := rules.Set{Flow: []flow.Rule{{Resource: "a", Limit: 5, OnExceed: rule.ExceedDemote}}}
	require.NoError(t, serve.Check(demotes))
	assert.ErrorContains(t, serve.CheckQuotas(demotes), "rules that demote refuse no call")
}
