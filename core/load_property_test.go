package core_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/rules"
)

// Whatever is loaded after whatever else, it is judged as if it were the first,
// and what is in force then is what was given.
func TestLoadsOneAfterTheOther(t *testing.T) {
	rule := rapid.Custom(func(t *rapid.T) flow.Rule {
		return flow.Rule{
			Name:     rapid.SampledFrom([]string{"", "a", "b", "c", "d"}).Draw(t, "name"),
			Resource: rapid.SampledFrom([]string{"a", "b", "c", "d", "e"}).Draw(t, "resource"),
			Limit:    rapid.SampledFrom([]float64{1, 2, 3, 4, 5, 6, 7, 8, -1}).Draw(t, "limit"),
		}
	})
	rapid.Check(t, func(t *rapid.T) {
		e := core.New(core.Config{Clock: clock.NewVirtual(begin), Logger: quiet})
		defer e.Close()
		var before []flow.Rule
		for range rapid.IntRange(1, 10).Draw(t, "loads") {
			given := rapid.SliceOfN(rule, 0, 5).Draw(t, "rules")
			if rapid.Bool().Draw(t, "like the last") { // some of those before, elsewhere
				given = append(given[:min(len(given), 2)], before...)
			}
			set := rules.Set{Flow: given}
			err := e.Load(set)
			if wrong := set.Validate(); wrong != nil {
				require.Equal(t, wrong, err)
				set.Flow = before
			} else {
				require.NoError(t, err)
			}
			before = set.Flow
			require.ElementsMatch(t, rules.NewTable().WithRules(set, set.All()).Flow, inForce(e))
			require.Equal(t, len(set.Flow), e.Status().Rules)
		}
	})
}

func inForce(e *core.Engine) []flow.Rule {
	all := []flow.Rule{}
	for _, r := range e.Snapshot().Resources {
		for _, applied := range r.Rules {
			all = append(all, applied.Rule.Value().(flow.Rule))
		}
	}
	return all
}
