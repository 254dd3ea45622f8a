package scenario_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/cmd/penstock/internal/scenario"
)

// A rule of each kind is called pay, and each refuses calls.
const threeKinds = `rules:
  flow: [{name: pay, resource: pay, limit: 5}]
  isolation: [{name: pay, resource: pay, limit: 2}]
  breaker: [{name: pay, resource: pay, strategy: errorCount, threshold: 2, openFor: 100s}]
cases:
- name: it
  load:
    - pay at 0s x3 serviceTime=200ms
    - pay at 2s x9
    - pay at 5s x2 fails=1
    - pay at 6s
  expect: `

func TestRulesOfSeveralKindsAreToldApart(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"{blockedBy: {flow pay: 4, isolation pay: 1, breaker pay: 1}, states: [{rule: pay, to: open}]}": "",
		"{states: [{at: 5s, rule: breaker pay, to: open}]}":                                             "",
		"{blockedBy: pay}": `3 rules are called "pay": write "flow pay" or "isolation pay" or "breaker pay": got 0, want 1..` + "\n" +
			`by "breaker pay": got 1, want 0` + "\n" + `by "flow pay": got 4, want 0` + "\n" + `by "isolation pay": got 1, want 0`,
		"{states: [{rule: isolation pay, to: open}]}": `change 1: got 5s pay open, want _ isolation pay open`,
	} {
		suite, err := scenario.ParseSuite("s", []byte(threeKinds+text))
		require.NoError(t, err, text)
		failures, err := suite.Cases[0].Run(t.Context(), suite.Rules)
		require.NoError(t, err, text)
		var got []string
		for _, f := range failures {
			for _, d := range f.Differences {
				got = append(got, d.Where+": got "+d.Got+", want "+d.Want)
			}
		}
		assert.Equal(t, want, strings.Join(got, "\n"), text)
	}
}
