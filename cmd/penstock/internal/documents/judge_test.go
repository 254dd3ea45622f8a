package documents_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/cmd/penstock/internal/documents"
	"github.com/penstock-go/penstock/rules"
)

// judge calls Judge with documents given as alternating names and data.
func judge(pairs ...string) documents.Collection {
	var read []documents.Document
	for i := 0; i < len(pairs); i += 2 {
		read = append(read, documents.Document{Name: pairs[i], Data: []byte(pairs[i+1])})
	}
	return documents.Judge(rules.NewTable(), read, documents.Mistakes)
}

func TestJudgeFindsMistakesInAndAcrossDocuments(t *testing.T) {
	c := judge(
		"a.yaml", "flow: [{resource: a, limit: 1}]",
		"b.yaml", "flow: [{resource: b, limit: -1}]",
		"c.yaml", "flow: [{resource: a, limit: 2}, {resource: c, limit: 3}]",
		"d.yaml", "flow: [{resource: d, limit: 4}]",
	)
	require.Len(t, c.Problems, 2)
	assert.Equal(t, "b.yaml", c.Problems[0].Document)
	assert.Contains(t, c.Problems[1].Error(), "c.yaml:1:8: flow rule \"a\": name is taken by the rule at a.yaml:1:8")
	assert.Equal(t, "2 mistakes in 2 of 4 documents", c.Summary())

	var names []string
	for _, rule := range c.Rules.Flow {
		names = append(names, rule.Name)
	}
	assert.Equal(t, []string{"a", "d"}, names, "the rules of sound documents")
}

func TestJudgeOfTenThousandRules(t *testing.T) {
	var pairs []string
	for i := range 5 {
		var document strings.Builder
		document.WriteString("flow:\n")
		for j := range 2000 {
			fmt.Fprintf(&document, "  - {name: rule-%d-%d, resource: orders, limit: 100}\n", i, j)
		}
		pairs = append(pairs, fmt.Sprintf("%d.yaml", i), document.String())
	}
	c := judge(pairs...)
	assert.Equal(t, "5 documents, 10000 rules, no mistakes", c.Summary())
}

func TestCompareListsRulesAndDocuments(t *testing.T) {
	from := judge(
		"gone.yaml", "flow: [{resource: gone, limit: 1}]",
		"shop.yaml", "flow: [{resource: pay, limit: 1}, {resource: kept, limit: 1}, {resource: both, limit: 1}, {resource: still, limit: 1}]",
		"words.yaml", "flow: [] # a",
	)
	to := judge(
		"new.yaml", "flow: [{resource: kept, limit: 1}, {resource: both, limit: 2}, {resource: new, limit: 1}]",
		"shop.yaml", "flow: [{resource: still, limit: 1, window: 1s}, {resource: pay, limit: 5}]",
		"words.yaml", "flow: [] # b",
	)
	changes := documents.Compare(from, to)
	var told []string
	for _, c := range changes.Rules {
		told = append(told, fmt.Sprintf("%s %s %s>%s %v", c.Word(), c.Name, c.From, c.To, c.Fields))
	}
	assert.Equal(t, []string{
		"added new >new.yaml [resource none -> new limit none -> 1]",
		"changed both shop.yaml>new.yaml [limit 1 -> 2]",
		"changed pay shop.yaml>shop.yaml [limit 1 -> 5]",
		"removed gone gone.yaml> [resource gone -> none limit 1 -> none]",
		"moved kept shop.yaml>new.yaml []",
	}, told)
	assert.Equal(t, []documents.DocumentChange{
		{Name: "gone.yaml", Change: rules.Removed},
		{Name: "new.yaml", Change: rules.Added},
		{Name: "shop.yaml", Change: rules.Changed},
		{Name: "words.yaml", Change: rules.Changed},
	}, changes.Documents)
	assert.False(t, changes.None())
	assert.True(t, documents.Compare(to, to).None())
}
