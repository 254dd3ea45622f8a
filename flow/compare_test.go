package flow_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/rule"
)

// What a comparison hands out tells the same of itself as another copy of the rule, of which nothing is known yet.
func TestComparedRulesTellTheSameOfThemselves(t *testing.T) {
	kind := flow.Kind()
	others := []flow.Rule{
		{Resource: "plain", Limit: 1},
		{Resource: "other", Origin: "app", Limit: 1},
		{Match: "x*", Shared: true, Limit: 1, Shadow: true},
		{Resource: "a", Related: "b", Limit: 1},
		{Resource: "a", Limit: 1, OnExceed: rule.ExceedDemote},
		{Resource: "a", Limit: 1, Counts: rule.CountsFailures},
		{Resource: "a", Limit: 1, Scope: rule.ScopeFleet},
		{Resource: "a", Limit: 2, Follow: flow.Follow{Signal: rule.SignalCPU, From: .5, To: .9, Least: 1}},
		{Resource: "a", Limit: 2, Algorithm: flow.TokenBucket, MaxWait: 1e9, FairBy: rule.StringsOf("tenant")},
	}
	present := []rule.Rule{kind.Of(others[0]).WithDefaults(), kind.Of(others[0]).WithDefaults()}
	var places []int
	at := func(place int) rule.Rule { return present[place] }
	kind.Compare(len(present), at, others, func(place int, from, to rule.Rule) bool {
		places = append(places, place)
		assert.Equal(t, place < len(present), from != nil)
		of := kind.Of(others[place]).WithDefaults()
		assert.True(t, of.Equal(to))
		assert.Equal(t, of.Target(), to.Target())
		assert.Equal(t, of.Attributes(), to.Attributes())
		assert.Equal(t, of.Signals(), to.Signals())
		assert.Equal(t, of.Fleet(), to.Fleet())
		assert.Equal(t, of.Demotes(), to.Demotes())
		assert.Equal(t, of.Phase(), to.Phase())
		assert.Equal(t, of.Counts(), to.Counts())
		return true
	})
	assert.Equal(t, []int{1, 2, 3, 4, 5, 6, 7, 8}, places)

	kind.Compare(len(present), at, others[:1], func(place int, from, to rule.Rule) bool {
		assert.Equal(t, 1, place)
		assert.Same(t, present[1], from)
		assert.Nil(t, to)
		return true
	})
}
