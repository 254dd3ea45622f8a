package inforce_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/penstock-go/penstock/core/internal/call"
	"github.com/penstock-go/penstock/core/internal/inforce"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/internal/leap"
	"github.com/penstock-go/penstock/rule"
)

func complete(of flow.Rule) rule.Rule { return flow.Kind().Of(of).WithDefaults() }

func TestARuleCountsLikeItsTargetDoes(t *testing.T) {
	all := []flow.Rule{
		{Resource: "a"},
		{Resource: "b"},
		{Resource: "a", Origin: "mobile"},
		{Resource: "a", Related: "b"},
		{Match: "a*"},
		{Match: "b*"},
		{Match: "a*", Shared: true},
		{Match: "a*", Shared: true, Related: "b"},
	}
	for _, before := range all {
		before := complete(before)
		present := inforce.NewRule(before, new(inforce.ForcedState), nil)
		for _, after := range all {
			target := complete(after).Target()
			assert.Equal(t, inforce.CountLike(target, before.Target()), present.CountsLike(&target), "%+v, then %+v", before.Value(), after)
		}
	}
}

func TestTargetsCountTheSameCallsWhateverTheirOriginAndShadow(t *testing.T) {
	a := rule.Target{Name: "a", Match: "x*"}
	assert.True(t, inforce.CountLike(a, rule.Target{Name: "b", Match: "x*", Origin: "mobile", Shadow: true}))
	assert.False(t, inforce.CountLike(a, rule.Target{Match: "x*", Shared: true}))
	assert.False(t, inforce.CountLike(a, rule.Target{Resource: "x"}))
}

func TestRefusalsStayWhileTheAnswersDo(t *testing.T) {
	var node leap.Node
	first := complete(flow.Rule{Resource: "a", Limit: 1})
	key := first.Key()
	state := &inforce.State{Refusals: call.NewTalliedRefusals(&node, "a", &key, first)}
	refusals := state.Refusals
	next := complete(flow.Rule{Resource: "a", Limit: 2})
	state.Update(next)
	assert.Same(t, refusals, state.Refusals)
}
