package command

import (
	"bytes"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/list"
	"github.com/penstock-go/penstock/rule"
	"github.com/penstock-go/penstock/rules"
)

// naming is a kind of rule of the tests that names a list.
type naming struct {
	Name, Resource, Match, Origin string
	Shared, Shadow                bool
	List                          string
}

// namingRules returns rules that name lists.
func namingRules(t *testing.T, lists ...string) (set rules.Set) {
	t.Helper()
	common := func(r *naming) rule.Common {
		return rule.Common{
			Name: &r.Name, Resource: &r.Resource, Match: &r.Match, Shared: &r.Shared, Origin: &r.Origin, Shadow: &r.Shadow,
		}
	}
	kind := rule.Define(rule.Spec[naming]{
		Kind: "naming", Phase: rule.PhaseAccess, Reason: rule.Denied, Common: common,
		Fields: slices.Concat(rule.TargetFields(common), rule.ScopeFields(common)),
		Lists:  func(r naming) []string { return []string{r.List} },
		New:    func(naming, rule.Env) rule.Limiter { return nil },
	})
	for _, name := range lists {
		set.Custom = append(set.Custom, kind.Of(naming{Name: "rule-" + name, Resource: "orders", List: name}))
	}
	return set
}

func TestRulesWhoseListsAreMissingAreWarnedOf(t *testing.T) {
	registry := list.NewRegistry()
	registry.Set("here", &list.List{})
	var out bytes.Buffer
	env := Env{Err: &out}
	env.warnOfLists(namingRules(t, "here", "away"), registry, "lists/")
	assert.Equal(t, "penstock: warning: naming rule \"rule-away\" names list \"away\", which is not at lists/\n", out.String())

	out.Reset()
	env.warnOfLists(namingRules(t, "away"), list.NewRegistry(), "")
	require.Contains(t, out.String(), "which is not there: --lists names a directory with lists\n")
}
