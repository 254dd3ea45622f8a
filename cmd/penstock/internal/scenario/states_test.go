package scenario

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/rule"
	"github.com/penstock-go/penstock/rules"
	"github.com/penstock-go/penstock/simulate"
)

// broken is the outcome of a load under which a breaker opened and closed again.
func broken() observation {
	o := observe(simulate.Result{States: []simulate.StateChange{
		{T: 3.2, Resource: "pay", Rule: "pay-errors", Kind: "breaker", From: "closed", To: "open"},
		{T: 8.2, Resource: "pay", Rule: "pay-errors", Kind: "breaker", From: "open", To: "halfOpen"},
		{T: 8.25, Resource: "pay", Rule: "pay-errors", Kind: "breaker", From: "halfOpen", To: "closed"},
		{T: 9, Resource: "other", Rule: "other-errors", Kind: "breaker", From: "closed", To: "open"},
	}}, "pay", rules.Set{})
	o.rules = []rule.Key{{Kind: "breaker", Name: "pay-errors"}, {Kind: "breaker", Name: "other-errors"}}
	return o
}

func TestExpectedStatesAreComparedInOrder(t *testing.T) {
	t.Parallel()
	const all = "3.2s pay-errors open, 8.2s pay-errors halfOpen, 8.25s pay-errors closed"
	for text, want := range map[string][]Difference{
		"[{at: 3.2s, rule: pay-errors, to: open}, {at: 8.2, rule: pay-errors, to: halfOpen}, {at: 8.25, rule: pay-errors, to: closed}]": nil,
		"[{at: 3s..4s, rule: pay-errors, to: open}, {at: 8.3±0.1, rule: pay-errors, to: halfOpen}, {rule: pay-errors, to: closed}]":     nil,
		"[{at: 3.2s, rule: pay-errors, to: open}, …]":   nil,
		"[{at: 3.2s, rule: pay-errors, to: open}, ...]": nil,
		"[…]": nil,
		"[{at: 3.2s, rule: pay-errors, to: open}]": {
			{"change 2", "8.2s pay-errors halfOpen", "none"}, {"change 3", "8.25s pay-errors closed", "none"},
		},
		"[]": {{"change 1", "3.2s pay-errors open", "none"}, {"change 2", "8.2s pay-errors halfOpen", "none"}, {"change 3", "8.25s pay-errors closed", "none"}},
		"{at: 3.201, rule: pay-errors, to: open}": {
			{"change 1", "3.2s pay-errors open", "3.201 pay-errors open"},
			{"change 2", "8.2s pay-errors halfOpen", "none"},
			{"change 3", "8.25s pay-errors closed", "none"},
		},
		"[{at: 3.2s, rule: pay-errors, to: halfOpen}, …]": {{"change 1", "3.2s pay-errors open", "3.2s pay-errors halfOpen"}},
		"[{rule: pay-error, to: open}, …]": {
			{`change 1, no rule is called "pay-error": did you mean "pay-errors"?`, "3.2s pay-errors open", "_ pay-error open"},
		},
		"[_, {}]": nil, // a mistake
		"[{at: _, rule: pay-errors, to: open}, {rule: pay-errors, to: halfOpen}, {rule: pay-errors, to: closed}, {at: 10, rule: pay-errors, to: open}]": {
			{"change 4", "none", "10 pay-errors open"},
		},
	} {
		r, root := open("d", []byte("x: "+text))
		require.NotNil(t, root, text)
		e := r.expectStates(root.Content[1])
		if text == "[_, {}]" {
			assert.EqualError(t, r.problems.Err(), "rules: d:1:5: a change of state is \"_\": must be a mapping of at, rule, to\n"+
				"rules: d:1:8: rule is missing: name the rule whose state changes\n"+
				"rules: d:1:8: to is missing: say what the state becomes, such as open")
			continue
		}
		require.NoError(t, r.problems.Err(), text)
		failure := e.check(broken())
		if want == nil {
			assert.Nil(t, failure, text)
			continue
		}
		require.NotNil(t, failure, text)
		assert.Equal(t, want, failure.Differences, text)
		assert.Equal(t, all, failure.Got)
		assert.Equal(t, "are not as expected", failure.Message)
	}
}

func TestUnknownStateIsAMistake(t *testing.T) {
	t.Parallel()
	r, root := open("d", []byte("x: [{rule: a, to: opened}, {rule: a, to: broken}, {rule: a, to: [open]}]"))
	require.NotNil(t, root)
	r.expectStates(root.Content[1])
	assert.EqualError(t, r.problems.Err(), "rules: d:1:19: to is \"opened\": did you mean \"open\"?\n"+
		"rules: d:1:42: to is \"broken\": must be closed, open, halfOpen, ready, listMissing, normal, limited, active, ended, off\n"+
		"rules: d:1:65: to is a list: must be text")
}
