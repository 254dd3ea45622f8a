package core_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/rules"
)

func TestOnlyResourcesOfRulesForOneResourceAreNamed(t *testing.T) {
	engine := core.New(core.Config{Logger: quiet})
	defer engine.Close()
	require.NoError(t, engine.Load(rules.Set{Flow: []flow.Rule{
		{Name: "all", Match: "*", Limit: 10},
		{Name: "one", Resource: "named", Limit: 10},
	}}))
	for _, resource := range []string{"matched", "named"} {
		guard, err := engine.Entry(t.Context(), resource)
		require.NoError(t, err)
		guard.Exit()
	}
	named := map[string]bool{}
	for _, s := range engine.Snapshot().Resources {
		named[s.Name] = s.Named()
	}
	assert.Equal(t, map[string]bool{"matched": false, "named": true}, named)
}
