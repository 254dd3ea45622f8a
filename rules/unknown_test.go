package rules_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/rule"
	"github.com/penstock-go/penstock/rules"
)

func TestParseKnownLeavesOutListsOfUnknownKinds(t *testing.T) {
	for name, test := range map[string]struct {
		document string
		known    int
		unknown  []rule.Kind
	}{
		"beside a kind that is known":  {"flow: [{resource: a, limit: 1}]\nquota: [{resource: a, perDay: 1}]", 1, []rule.Kind{"quota"}},
		"alone":                        {"quota: [{match: 'a:*', perDay: 1}, {name: b}]", 0, []rule.Kind{"quota"}},
		"in JSON":                      {`{"tenantQuota": [{"resource": "a"}], "flow": []}`, 0, []rule.Kind{"tenantQuota"}},
		"without rules":                {"quota: []", 0, []rule.Kind{"quota"}},
		"with fields of its own alone": {"quota: [{perDay: 1, deep: {er: [1, 2]}}]", 0, []rule.Kind{"quota"}},
		"two of them":                  {"quota: [{resource: a}]\nflow: []\ndeny: [{resource: a}]", 0, []rule.Kind{"quota", "deny"}},
		"one that seems misspelled":    {"flows: [{resource: a, limit: 1}]", 0, []rule.Kind{"flows"}},
		"one that has a field's name":  {"values: [{resource: a}]", 0, []rule.Kind{"values"}},
	} {
		t.Run(name, func(t *testing.T) {
			set, unknown, err := rules.NewTable().ParseKnown("a.yaml", []byte(test.document))
			require.NoError(t, err)
			assert.Equal(t, test.known, set.Len())
			var kinds []rule.Kind
			for _, u := range unknown {
				kinds = append(kinds, u.Kind)
				assert.Equal(t, u.Kind == "flows", u.Meant == rules.KindFlow)
				assert.Equal(t, "a.yaml", u.Problem.Document)
				assert.Contains(t, u.Problem.Message, "unknown kind")
				assert.NotZero(t, u.Problem.Line)
			}
			assert.Equal(t, test.unknown, kinds)
			_, err = rules.Parse("a.yaml", []byte(test.document))
			var problems rules.Problems
			require.ErrorAs(t, err, &problems)
			assert.Len(t, problems, len(unknown), "to Parse each is a mistake")
		})
	}
}

func TestParseKnownFindsEveryOtherMistake(t *testing.T) {
	for name, test := range map[string]struct{ document, want string }{
		"in the rules of a known kind":  {"quota: [{resource: a}]\nflow: [{resource: a, limit: -1}]", "a.yaml:2:29: flow rule \"a\": limit is -1"},
		"no list":                       {"quota: 7", "a.yaml:1:1: unknown field: the fields here are flow"},
		"a mapping":                     {"metadata: {name: a}", "a.yaml:1:1: unknown field: the fields here are flow"},
		"a list of texts":               {"quota: [a, b]", "a.yaml:1:1: unknown field: the fields here are flow"},
		"no name that kinds can have":   {"Quota: [{resource: a}]", "a.yaml:1:1: unknown field: the fields here are flow"},
		"a field that has slipped out":  {"values: [{a: 1}]", "a.yaml:1:1: unknown field \"values\""},
		"a kind twice":                  {"quota: [{resource: a}]\nquota: []", "a.yaml:2:1: a list of rules is given twice, first on line 1: remove one"},
		"syntax":                        {"quota: [{resource: a}", "the document cannot be read"},
		"a list that stands in for one": {"quota: *a", "a.yaml:1:"},
	} {
		t.Run(name, func(t *testing.T) {
			set, _, err := rules.NewTable().ParseKnown("a.yaml", []byte(test.document))
			require.ErrorContains(t, err, test.want)
			assert.Zero(t, set.Len())
		})
	}
}

// A list of a document of another kind is not shown by name.
func TestUnknownKindsAreNamedIfTheyLookLikeRules(t *testing.T) {
	_, err := rules.Parse("a.yaml", []byte("tenants: [{password: x}]"))
	require.EqualError(t, err, "rules: a.yaml:1:1: unknown kind: the kinds here are flow, isolation, breaker, hotParam, access, adaptive, fault")
	_, err = rules.Parse("a.yaml", []byte("tenants: [{resource: x}]"))
	require.ErrorContains(t, err, `unknown kind "tenants": the kinds here are flow`)
	_, err = rules.Parse("a.yaml", []byte("brekaer: [{threshold: 1}]"))
	require.ErrorContains(t, err, `unknown kind "brekaer": did you mean "breaker"?`)
}
