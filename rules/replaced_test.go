package rules_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/isolation"
	"github.com/penstock-go/penstock/rule"
	"github.com/penstock-go/penstock/rules"
)

// manyRules returns a set of so many rules of two kinds, with a limit for each rule.
func manyRules(flows, isolations int, limit func(place int) int) (set rules.Set) {
	for place := range flows {
		set.Flow = append(set.Flow, flow.Rule{Resource: fmt.Sprint("r", place), Limit: float64(limit(place))})
	}
	for place := range isolations {
		set.Isolation = append(set.Isolation, isolation.Rule{Resource: fmt.Sprint("r", place), Limit: limit(place)})
	}
	return set
}

// replaced compares two sets.
func replaced(from, to rules.Set, isSound func(rule.Rule) bool) ([]rules.Replacement, bool) {
	return rules.NewTable().Replaced(func(kind rule.Kind) (count int, at func(place int) rule.Rule) {
		var present []rule.Rule
		for r := range from.All() {
			if r.Type().Kind() == kind {
				present = append(present, r)
			}
		}
		return len(present), func(place int) rule.Rule { return present[place] }
	}, to, isSound)
}

func TestReplacedIsByKindAndPlace(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		size := rapid.SampledFrom([]int{0, 1, 70, 300})
		before := [2]int{size.Draw(t, "flows"), size.Draw(t, "isolations")}
		after := [2]int{size.Draw(t, "flows"), size.Draw(t, "isolations")}
		every := rapid.SampledFrom([]int{1, 2, 100, 5000}).Draw(t, "every")
		from := manyRules(before[0], before[1], func(int) int { return 1 })
		to := manyRules(after[0], after[1], func(place int) int {
			if place%every == 0 {
				return 2
			}
			return 1
		})
		var want []string
		for i, kind := range []rule.Kind{rules.KindFlow, rules.KindIsolation} {
			for place := range max(before[i], after[i]) {
				if place >= before[i] || place >= after[i] || place%every == 0 {
					want = append(want, fmt.Sprint(kind, place, place < before[i], place < after[i], place < before[i] && place < after[i]))
				}
			}
		}
		found, sound := replaced(from, to, func(rule.Rule) bool { return true })
		require.True(t, sound)
		var got []string
		for _, r := range found {
			there := r.To
			if there == nil {
				there = r.From
			}
			require.Equal(t, fmt.Sprint("r", r.Place), there.Key().Name)
			got = append(got, fmt.Sprint(there.Type().Kind(), r.Place, r.From != nil, r.To != nil, r.KeepsKey))
		}
		require.Equal(t, want, got)
	})
}

func TestReplacedSaysThatOneOfTheRulesIsNotSound(t *testing.T) {
	t.Parallel()
	from, to := manyRules(2000, 0, func(int) int { return 1 }), manyRules(2000, 0, func(int) int { return 2 })
	for _, at := range []int{0, 999, 1000, 1999} {
		found, sound := replaced(from, to, func(r rule.Rule) bool { return r.Key().Name != fmt.Sprint("r", at) })
		assert.False(t, sound, at)
		assert.Nil(t, found)
	}
	found, sound := replaced(from, from, func(rule.Rule) bool { return false })
	assert.True(t, sound, "only those that differ are asked about")
	assert.Empty(t, found)
}
