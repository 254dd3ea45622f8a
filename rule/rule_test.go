package rule_test

import (
	"cmp"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/internal/document"
	"github.com/penstock-go/penstock/rule"
)

// pool is a rule of a kind that only this test knows.
type pool struct {
	Name, Resource, Match string
	Shared                bool
	Size                  int
	Origin                string
	Shadow                bool
}

func common(p *pool) rule.Common {
	return rule.Common{
		Name: &p.Name, Resource: &p.Resource, Match: &p.Match, Shared: &p.Shared, Origin: &p.Origin, Shadow: &p.Shadow,
	}
}

func spec() rule.Spec[pool] {
	return rule.Spec[pool]{
		Kind: "pool", Common: common,
		Fields: []rule.Field[pool]{
			rule.FieldOf("size", func(p *pool) *int { return &p.Size }).Says("how large it is"),
		},
		Defaults: func(p *pool) { p.Size = cmp.Or(p.Size, 10) },
		Validate: func(p *pool) (faults []rule.Fault) {
			if !rule.Within(p.Size, 1, 100) {
				faults = append(faults, rule.Fault{Field: "size", Message: "is out of range"})
			}
			return faults
		},
		New: func(*pool, rule.Env) rule.Limiter { return nil },
	}
}

func TestDefineRefusesIncompleteKinds(t *testing.T) {
	for name, spoil := range map[string]func(*rule.Spec[pool]){
		"no name":   func(s *rule.Spec[pool]) { s.Kind = "" },
		"no common": func(s *rule.Spec[pool]) { s.Common = nil },
		"no New":    func(s *rule.Spec[pool]) { s.New = nil },
		"no origin": func(s *rule.Spec[pool]) {
			s.Common = func(p *pool) rule.Common {
				c := common(p)
				c.Origin = nil
				return c
			}
		},
	} {
		s := spec()
		spoil(&s)
		assert.Panics(t, func() { rule.Define(s) }, name)
	}
}

func TestRuleIsCompletedJudgedAndCompared(t *testing.T) {
	kind := rule.Define(spec())
	r := kind.Of(pool{Resource: "db"})
	complete := r.WithDefaults()
	assert.Equal(t, pool{Name: "db", Resource: "db", Size: 10}, complete.Value())
	assert.Equal(t, pool{Resource: "db"}, r.Value(), "the rule itself stays as it is")
	assert.Equal(t, rule.Key{Kind: "pool", Name: "db"}, complete.Key())
	assert.Equal(t, `pool "db"`, complete.Key().String())
	assert.False(t, r.Equal(complete))
	assert.True(t, complete.Equal(kind.Of(pool{Name: "db", Resource: "db", Size: 10})))

	other := spec()
	other.Kind = "other"
	assert.False(t, complete.Equal(rule.Define(other).Of(complete.Value().(pool))), "of another kind")

	assert.Empty(t, r.Faults())
	assert.Equal(t, []rule.Fault{
		{Field: "resource", Message: "is missing: name the resource that the rule guards, or write a pattern in match"},
		{Field: "perResource", Message: "has no effect without match: remove it"},
		{Field: "size", Message: "is out of range"},
		{Field: "name", Message: "is \"a\\x00\": it has a character U+0000, which cannot be seen; remove it"},
	}, kind.Faults(pool{Name: "a\x00", Shared: true, Size: 1000}))
}

func TestFieldsAreReadAndWrittenAsDocumentsHaveThem(t *testing.T) {
	kind := rule.Define(spec())
	draft := kind.Draft()
	assert.Empty(t, draft.Set("size", document.Value{Type: document.Number, Text: "7"}))
	assert.Empty(t, draft.Set("perResource", document.Value{Type: document.Boolean, Text: "false"}))
	assert.Equal(t, pool{Shared: true, Size: 7}, draft.Value())
	assert.Equal(t, document.Value{Type: document.Number, Text: "7"}, draft.Get("size"))
	assert.Equal(t, `is "7": must be a number, such as 100 or 2.5; remove the quotes`,
		draft.Set("size", document.Value{Type: document.Text, Text: "7"}))
	copied := draft.Clone()
	draft.Reset("perResource")
	assert.False(t, draft.SameField("perResource", copied))
	assert.True(t, draft.SameField("name", copied))
	assert.Panics(t, func() { draft.Get("colour") })
}

func TestKindWithoutAdoptStartsAnew(t *testing.T) {
	assert.Nil(t, rule.Define(spec()).Of(pool{}).Adopt(nil, rule.Env{}))
}

func TestTargetCoversWhatItNamesOrMatchesButItsExceptions(t *testing.T) {
	except := rule.StringsOf("x:internal", "x:debug*")
	for _, tt := range []struct {
		target          rule.Target
		resource        string
		covers, excepts bool
	}{
		{rule.Target{Resource: "x*"}, "x*", true, false},
		{rule.Target{Resource: "x*"}, "x:y", false, false},
		{rule.Target{Match: "x*", Except: except}, "x:y", true, false},
		{rule.Target{Match: "x*", Except: except}, "x:debug:y", false, true},
		{rule.Target{Match: "x*", Except: except}, "y", false, false},
	} {
		covers, excepts := tt.target.Covers(tt.resource)
		assert.Equal(t, []bool{tt.covers, tt.excepts}, []bool{covers, excepts}, "%+v of %s", tt.target, tt.resource)
	}
}

func TestAttributesDifferByTheirType(t *testing.T) {
	assert.False(t, rule.String("7").Equal(rule.Int(7)))
	text, ok := rule.String("u1").Text()
	assert.True(t, ok)
	assert.Equal(t, "u1", text)
	_, ok = rule.Int(7).Text()
	assert.False(t, ok)
	number, ok := rule.Int(7).Number()
	assert.True(t, ok)
	assert.EqualValues(t, 7, number)
	assert.False(t, rule.Int(1).Equal(rule.Bool(true)))
	value, ok := rule.Bool(true).Boolean()
	assert.True(t, value && ok)
	_, ok = rule.Int(1).Boolean()
	assert.False(t, ok)
	assert.False(t, rule.Attribute{}.IsSet())
	assert.True(t, rule.String("").IsSet())
	assert.Nil(t, rule.String("a").Parts())
}

func TestCompositeAttributeHasAllParts(t *testing.T) {
	parts := [rule.MaxKeys]rule.Attribute{rule.String("a/b"), rule.Bool(false)}
	assert.Len(t, rule.Composite(&parts, 2).Parts(), 2)
	assert.Equal(t, `rule.Attribute{rule.String("a/b"), rule.Bool(false)}`, rule.Composite(&parts, 2).GoString())
	assert.Equal(t, "a/b/false", rule.Composite(&parts, 2).String())
	assert.False(t, rule.Composite(&parts, 3).IsSet())
}

func TestCollectionsKeepTheirEntries(t *testing.T) {
	texts := []string{"a", "", "b:1", "12:", "ü"}
	list := rule.StringsOf(texts...)
	assert.Equal(t, texts, slices.Collect(list.All()))
	assert.Equal(t, 5, list.Len())
	assert.Equal(t, rule.StringsOf(texts...), list)
	assert.NotEqual(t, rule.StringsOf("ab"), rule.StringsOf("a", "b"))

	entries := []rule.NumberEntry{
		{Key: rule.String("7"), Value: 1.5},
		{Key: rule.Int(7), Value: 1e-9},
		{Key: rule.Bool(true), Value: 0},
	}
	m := rule.NumberMapOf(entries...)
	assert.Equal(t, fmt.Sprintf("%#v", entries), fmt.Sprintf("%#v", slices.Collect(m.All())))
	assert.Equal(t, 3, m.Len())
	assert.Zero(t, rule.NumberMap{})
}

// loud is a rule with the collections.
type loud struct {
	name, resource, match string
	shared                bool
	origin                string
	shadow                bool
	list                  rule.Strings
	values                rule.NumberMap
}

func TestCollectionsInDocuments(t *testing.T) {
	text := func(s string) document.Value { return document.Value{Type: document.Text, Text: s} }
	number := func(s string) document.Value { return document.Value{Type: document.Number, Text: s} }
	draft := rule.Define(rule.Spec[loud]{
		Kind: "loud",
		Common: func(r *loud) rule.Common {
			return rule.Common{
				Name: &r.name, Resource: &r.resource, Match: &r.match, Shared: &r.shared, Origin: &r.origin, Shadow: &r.shadow,
			}
		},
		Fields: []rule.Field[loud]{
			rule.FieldOf("list", func(r *loud) *rule.Strings { return &r.list }),
			rule.FieldOf("values", func(r *loud) *rule.NumberMap { return &r.values }),
		},
		New: func(*loud, rule.Env) rule.Limiter { return nil },
	}).Draft()
	assert.Empty(t, draft.Set("list", text("one")))
	assert.Equal(t, document.Value{Type: document.List, Items: []document.Value{text("one")}}, draft.Get("list"))
	two := document.Value{Type: document.List, Items: []document.Value{text("a"), text("b")}}
	assert.Empty(t, draft.Set("list", two))
	assert.Equal(t, two, draft.Get("list"))
	assert.Equal(t, `has an entry 2 that is 7: must be text; put it in quotes, "7"`,
		draft.Set("list", document.Value{Type: document.List, Items: []document.Value{text("a"), number("7")}}))

	values := document.Value{Type: document.Mapping, Entries: []document.Entry{
		{Key: "7", KeyType: document.Text, Value: number("10")},
		{Key: "7", KeyType: document.Number, Value: number("0.5")},
	}}
	assert.Empty(t, draft.Set("values", values))
	assert.Equal(t, values, draft.Get("values"))
	values.Entries = append(values.Entries, values.Entries[0])
	assert.Equal(t, `has the key "7" twice: remove one`, draft.Set("values", values))
	assert.Equal(t, `has an entry 7 that is "x": must be a number, such as 100 or 2.5`,
		draft.Set("values", document.Value{Type: document.Mapping, Entries: []document.Entry{{Key: "7", KeyType: document.Number, Value: text("x")}}}))
	assert.Equal(t, `is "x": must be a mapping to numbers, such as {vip: 1000}`, draft.Set("values", text("x")))
}

func TestExitTookTheTimeSinceItsStart(t *testing.T) {
	assert.Equal(t, time.Second, rule.Exit{Start: clock.Instant(5), Now: clock.Instant(5 + time.Second)}.Took())
	assert.Zero(t, rule.Exit{Start: 5, Now: 4}.Took())
}

func TestUncompiledRuleIsACopyOnceItWasCompiled(t *testing.T) {
	compiled := 0
	of := spec()
	of.Compile = func(*pool, uint64) any { compiled++; return compiled }
	r := rule.Define(of).Of(pool{Resource: "r", Size: 1}).WithDefaults()
	assert.Same(t, r, r.Uncompiled())
	r.NewLimiter(rule.Env{Version: 1})
	r.NewLimiter(rule.Env{Version: 2})
	assert.Equal(t, 1, compiled, "once for all limiters")
	again := r.Uncompiled()
	assert.NotSame(t, r, again)
	assert.True(t, r.Equal(again))
	again.NewLimiter(rule.Env{Version: 3})
	assert.Equal(t, 2, compiled)
}

func TestRuleThatLooksAtTooManyAttributesIsAMistake(t *testing.T) {
	s := spec()
	s.Attributes = func(p *pool) []string { return make([]string, p.Size) }
	kind := rule.Define(s)
	assert.Empty(t, kind.Faults(pool{Resource: "r", Size: rule.MaxKeys}))
	assert.Equal(t, []rule.Fault{{"name", "is that of a rule that looks at 5 attributes: 4 is the most"}},
		kind.Faults(pool{Resource: "r", Size: rule.MaxKeys + 1}))
}

func TestDefineRefusesTwoFieldsOfOneNameAndExamplesOfUnknownFields(t *testing.T) {
	define := func(fields []rule.Field[pool], examples ...rule.Example[pool]) func() {
		return func() {
			rule.Define(rule.Spec[pool]{
				Kind: "toy", Common: common, Fields: fields, Examples: examples,
				New: func(*pool, rule.Env) rule.Limiter { return nil },
			})
		}
	}
	size := rule.FieldOf("size", func(r *pool) *int { return &r.Size })
	assert.PanicsWithValue(t, `rule: Define of kind "toy": two fields are called "size"`,
		define([]rule.Field[pool]{size, size}))
	assert.PanicsWithValue(t, `rule: Define of kind "toy": the example "one" shows a field "limit" that the kind does not have`,
		define(nil, rule.Example[pool]{About: "one", Fields: []string{"resource", "limit"}}))
	assert.NotPanics(t, define(nil, rule.Example[pool]{About: "one", Fields: []string{"resource"}}))
}

func TestFieldOfAKindStandsInPlaceOfTheOneOfAllKinds(t *testing.T) {
	s := spec()
	s.Fields = append(s.Fields, rule.FieldOf("name", func(p *pool) *string { return &p.Name }).
		Required("is missing: name the pool").Says("of the pool"))
	var paths []string
	kind := rule.Define(s)
	for _, f := range kind.Fields() {
		paths = append(paths, f.Path)
	}
	assert.Equal(t, []string{"name", "resource", "match", "perResource", "size", "origin", "shadow"}, paths)
	assert.Equal(t, "of the pool", kind.Fields()[0].About)
	assert.Equal(t, "is missing: name the pool", kind.Fields()[0].Missing)
}

func TestExamplesShowFieldsOfEveryKindThatTheKindLeavesOut(t *testing.T) {
	s := spec()
	s.Examples = []rule.Example[pool]{{About: "one", Rule: pool{Resource: "r", Size: 3}, Fields: []string{"resource", "size"}}}
	examples := rule.Define(s).Examples()
	assert.Len(t, examples, 2)
	assert.Equal(t, []string{"name", "match", "perResource", "size", "origin", "shadow"}, examples[1].Fields)
	assert.Empty(t, examples[1].Rule.WithDefaults().Faults())

	s.Examples = append(s.Examples, rule.Example[pool]{
		Rule: pool{Match: "r"}, Fields: []string{"name", "match", "perResource", "origin", "shadow"},
	})
	assert.Len(t, rule.Define(s).Examples(), 2, "all are shown")
}
