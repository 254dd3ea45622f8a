package ruleset_test

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/core/internal/ruleset"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/isolation"
	"github.com/penstock-go/penstock/rule"
	"github.com/penstock-go/penstock/rules"
)

// The rules of an owner may be of several kinds, of which one goes, and two may change places.
func TestSetOfSeveralKindsIsReplacedPlaceByPlace(t *testing.T) {
	book := ruleset.New(ruleset.Config{Table: rules.NewTable(), MaxRemoval: 1})
	load := func(set rules.Set) (changed []string) {
		outcome, err := book.Load("", set)
		require.NoError(t, err)
		for _, c := range outcome.Changes {
			what := "changes"
			if c.From == nil {
				what = "comes"
			} else if c.To == nil {
				what = "goes"
			}
			changed = append(changed, c.Key().String()+" "+what)
		}
		slices.Sort(changed)
		return changed
	}
	a, b, c := flow.Rule{Resource: "a", Limit: 1}, flow.Rule{Resource: "b", Limit: 1}, isolation.Rule{Resource: "a", Limit: 1}

	assert.Len(t, load(rules.Set{Flow: []flow.Rule{a, b}, Isolation: []isolation.Rule{c}}), 3)
	assert.Empty(t, load(rules.Set{Flow: []flow.Rule{b, a}, Isolation: []isolation.Rule{c}}), "they have only moved")
	explicit := flow.Kind().WithDefaults(a)
	assert.Empty(t, load(rules.Set{Flow: []flow.Rule{b, explicit}, Isolation: []isolation.Rule{c}}), "the defaults are written")
	b.Limit = 2
	assert.Equal(t, []string{`flow "a" goes`, `flow "b" changes`}, load(rules.Set{Flow: []flow.Rule{b}, Isolation: []isolation.Rule{c}}))
	assert.Equal(t, []string{`flow "b" goes`}, load(rules.Set{Isolation: []isolation.Rule{c}}))
	assert.Equal(t, []string{`flow "a" comes`, `isolation "a" goes`}, load(rules.Set{Flow: []flow.Rule{a}}))
	assert.Equal(t, 1, book.Len())
	_, err := book.Load("", rules.Set{Flow: []flow.Rule{a, a}})
	assert.ErrorContains(t, err, "is taken by")
}

// A note is of the rule in force of a key, until there is none.
func TestNoteLastsAsLongAsThereIsARuleOfTheKey(t *testing.T) {
	book := ruleset.New(ruleset.Config{Table: rules.NewTable(), MaxRemoval: 1})
	load := func(limits ...float64) *ruleset.Change {
		var set rules.Set
		for _, limit := range limits {
			set.Flow = append(set.Flow, flow.Rule{Resource: "a", Limit: limit})
		}
		outcome, err := book.Load("", set)
		require.NoError(t, err)
		require.Len(t, outcome.Changes, 1)
		return &outcome.Changes[0]
	}
	key := rule.Key{Kind: rules.KindFlow, Name: "a"}

	first := load(1)
	assert.Nil(t, first.Note())
	first.SetNote("noted")
	assert.Equal(t, "noted", load(2).Note())
	assert.Equal(t, "noted", book.Note(key))
	assert.Equal(t, "noted", load().Note(), "of what goes")
	assert.Nil(t, book.Note(key))
	assert.Nil(t, load(1).Note(), "of what comes again")
}
