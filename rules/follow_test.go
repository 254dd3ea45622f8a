package rules_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/rule"
	"github.com/penstock-go/penstock/rules"
)

func TestLimitsThatFollowASignalAreReadAndWritten(t *testing.T) {
	const document = `flow:
  - resource: imports
    limit: 200
    follow:
      signal: memory
      from: 0.7
      to: 0.9
      least: 20
  - resource: queries
    limit: 50
    follow:
      signal: connectionsLeft
      from: 40
      least: 5
`
	set, err := rules.Parse("", []byte(document))
	require.NoError(t, err)
	assert.Equal(t, []flow.Follow{
		{Signal: rule.SignalMemory, From: 0.7, To: 0.9, Least: 20}, {Signal: "connectionsLeft", From: 40, Least: 5},
	}, []flow.Follow{set.Flow[0].Follow, set.Flow[1].Follow})
	written, err := set.YAML()
	require.NoError(t, err)
	again, err := rules.Parse("", written)
	require.NoError(t, err)
	assert.Equal(t, set, again)
	assert.Contains(t, string(written), "    follow:\n      signal: memory\n      from: 0.7\n      to: 0.9\n      least: 20\n")
}
