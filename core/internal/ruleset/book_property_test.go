package ruleset_test

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/core/internal/ruleset"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/rule"
	"github.com/penstock-go/penstock/rules"
)

// model is what the code and the sources hold, and nothing else.
type model struct {
	owners    map[string][]flow.Rule
	documents map[ruleset.DocumentKey]modelDocument // the last sound version of each
}

type modelDocument struct {
	created int64
	rules   []flow.Rule
}

// inForce is the rules in force by the order of precedence: owners by name, then
// documents by creation, source and name.
func (m *model) inForce() map[string]flow.Rule {
	inForce := make(map[string]flow.Rule)
	put := func(rules []flow.Rule) {
		for _, r := range rules {
			r = flow.Kind().WithDefaults(r)
			if _, taken := inForce[r.Name]; !taken {
				inForce[r.Name] = r
			}
		}
	}
	for _, owner := range slices.Sorted(maps.Keys(m.owners)) {
		put(m.owners[owner])
	}
	keys := slices.SortedFunc(maps.Keys(m.documents), func(a, b ruleset.DocumentKey) int {
		return cmp.Or(cmp.Compare(m.documents[a].created, m.documents[b].created),
			cmp.Compare(a.Source, b.Source), cmp.Compare(a.Document, b.Document))
	})
	for _, key := range keys {
		put(m.documents[key].rules)
	}
	return inForce
}

func drawRules(t *rapid.T) (drawn []flow.Rule) {
	names := rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"u", "v", "w", "x"}), 0, 4, rapid.ID[string]).Draw(t, "names")
	for _, name := range names {
		drawn = append(drawn, flow.Rule{Resource: name, Limit: float64(rapid.IntRange(1, 3).Draw(t, "limit"))})
	}
	return drawn
}

func document(rules []flow.Rule) []byte {
	text := "flow:"
	for _, r := range rules {
		text += fmt.Sprintf("\n- {resource: %s, limit: %v}", r.Resource, r.Limit)
	}
	if len(rules) == 0 {
		text += " []"
	}
	return []byte(text)
}

// Whatever comes in whatever order, the rules in force are those of the model, the
// changes lead from one state to the next, and what cannot be applied is reported.
func TestRulesInForceDependOnlyOnWhatCodeAndSourcesHold(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		book := ruleset.New(ruleset.Config{Table: rules.NewTable(), MaxRemoval: 1})
		m := &model{owners: map[string][]flow.Rule{}, documents: map[ruleset.DocumentKey]modelDocument{}}
		known := make(map[rule.Key]rule.Rule) // by the changes
		for range rapid.IntRange(1, 20).Draw(t, "steps") {
			var outcome ruleset.Outcome
			if rapid.Bool().Draw(t, "code") {
				outcome = m.load(t, book)
			} else {
				outcome = m.deliver(t, book)
			}
			for _, c := range outcome.Changes {
				require.Equal(t, c.From == nil, known[c.Key()] == nil)
				require.True(t, c.From == nil || c.From.Equal(known[c.Key()]))
				require.False(t, c.From != nil && c.To != nil && c.From.Equal(c.To), "no change")
				if known[c.Key()] = c.To; c.To == nil {
					delete(known, c.Key())
				}
			}
			want := m.inForce()
			require.Len(t, known, len(want))
			require.Equal(t, len(want), book.Len())
			for name, r := range want {
				require.Equal(t, r, known[rule.Key{Kind: rules.KindFlow, Name: name}].Value())
			}
			m.checkDocuments(t, book, want)
		}
	})
}

func (m *model) load(t *rapid.T, book *ruleset.Book) ruleset.Outcome {
	owner := rapid.SampledFrom([]string{"", "lib"}).Draw(t, "owner")
	given := drawRules(t)
	if rapid.IntRange(0, 4).Draw(t, "mistake") == 0 {
		_, err := book.Load(owner, rules.Set{Flow: append(given, flow.Rule{Resource: "u", Limit: -1})})
		require.Error(t, err)
		_, err = book.Load(owner, rules.Set{Flow: append(given, flow.Rule{Resource: "y"}, flow.Rule{Resource: "y"})})
		require.ErrorContains(t, err, "is taken by")
		return ruleset.Outcome{}
	}
	m.owners[owner] = given
	outcome, err := book.Load(owner, rules.Set{Flow: given})
	require.NoError(t, err)
	return outcome
}

func (m *model) deliver(t *rapid.T, book *ruleset.Book) ruleset.Outcome {
	source := rapid.SampledFrom([]string{"s", "z"}).Draw(t, "source")
	delivery := ruleset.Delivery{Complete: rapid.IntRange(0, 3).Draw(t, "complete") == 0}
	names := rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"a", "b"}), 0, 2, rapid.ID[string]).Draw(t, "documents")
	for _, name := range names {
		d := ruleset.Document{Name: name, Created: rapid.Int64Range(1, 3).Draw(t, "created"), Revision: 9}
		key := ruleset.DocumentKey{Source: source, Document: name}
		if rapid.IntRange(0, 4).Draw(t, "broken") == 0 {
			d.Data = []byte("flow: [{resource: u}]")
		} else {
			given := drawRules(t)
			d.Data = document(given)
			m.documents[key] = modelDocument{d.Created, given}
		}
		delivery.Documents = append(delivery.Documents, d)
	}
	if delivery.Complete {
		for key := range m.documents {
			if key.Source == source && !slices.Contains(names, key.Document) {
				delete(m.documents, key)
			}
		}
	} else if rapid.Bool().Draw(t, "remove") {
		delivery.Removed = []string{"a"}
		if !slices.Contains(names, "a") {
			delete(m.documents, ruleset.DocumentKey{Source: source, Document: "a"})
		} else {
			delivery.Removed = nil
		}
	}
	return book.Deliver(book.Source(source), delivery, clock.Instant(1))
}

// checkDocuments checks that exactly the documents of which some rule is not in force
// say so.
func (m *model) checkDocuments(t *rapid.T, book *ruleset.Book, inForce map[string]flow.Rule) {
	for key, d := range m.documents {
		status, ok := book.Document(book.Source(key.Source), key.Document)
		require.True(t, ok)
		mine := 0
		for _, r := range d.rules {
			source, at := book.Where(rule.Key{Kind: rules.KindFlow, Name: r.Resource})
			if source == key.Source && at.Document == key.Document {
				require.Equal(t, flow.Kind().WithDefaults(r), inForce[r.Resource])
				mine++
			}
		}
		require.Equal(t, mine, status.Rules)
		if mine < len(d.rules) {
			require.Error(t, status.Rejected)
		}
	}
}
