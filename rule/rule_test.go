package rule_test

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/penstock-go/penstock/clock"
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
		Fields: slices.Concat(rule.TargetFields(common), []rule.Field[pool]{
			rule.WholeField("size", func(p *pool) *int { return &p.Size }).Says("how large it is"),
		}, rule.ScopeFields(common)),
		Defaults: func(p pool) pool {
			rule.SetDefault(&p.Size, 10)
			return p
		},
		Validate: func(p pool) (faults []rule.Fault) {
			if !rule.Within(p.Size, 1, 100) {
				faults = append(faults, rule.Fault{Field: "size", Message: "is out of range"})
			}
			return faults
		},
		New: func(pool, rule.Env) rule.Limiter { return nil },
	}
}

func TestDefineRefusesIncompleteKinds(t *testing.T) {
	for name, spoil := range map[string]func(*rule.Spec[pool]){
		"no name":   func(s *rule.Spec[pool]) { s.Kind = "" },
		"no common": func(s *rule.Spec[pool]) { s.Common = nil },
		"no fields": func(s *rule.Spec[pool]) { s.Fields = nil },
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
	assert.Empty(t, draft.Set("size", rule.Value{Type: rule.Number, Text: "7"}))
	assert.Empty(t, draft.Set("perResource", rule.Value{Type: rule.Boolean, Text: "false"}))
	assert.Equal(t, pool{Shared: true, Size: 7}, draft.Value())
	assert.Equal(t, rule.Value{Type: rule.Number, Text: "7"}, draft.Get("size"))
	assert.Equal(t, `is "7": must be a number, such as 100 or 2.5; remove the quotes`,
		draft.Set("size", rule.Value{Type: rule.Text, Text: "7"}))
	copied := draft.Clone()
	draft.Reset("perResource")
	assert.False(t, draft.SameField("perResource", copied))
	assert.True(t, draft.SameField("name", copied))
	assert.Panics(t, func() { draft.Get("colour") })
}

func TestKindWithoutAdoptStartsAnew(t *testing.T) {
	assert.Nil(t, rule.Define(spec()).Of(pool{}).Adopt(nil, rule.Env{}))
}

func TestTargetsCountTheSameCallsWhateverTheirOriginAndShadow(t *testing.T) {
	a := rule.Target{Name: "a", Match: "x*"}
	assert.True(t, a.CountsLike(rule.Target{Name: "b", Match: "x*", Origin: "mobile", Shadow: true}))
	assert.False(t, a.CountsLike(rule.Target{Match: "x*", Shared: true}))
	assert.False(t, a.CountsLike(rule.Target{Resource: "x"}))
}

func TestAttributesDifferByTheirType(t *testing.T) {
	assert.NotEqual(t, rule.String("7"), rule.Int(7))
	text, ok := rule.String("u1").Text()
	assert.True(t, ok)
	assert.Equal(t, "u1", text)
	_, ok = rule.Int(7).Text()
	assert.False(t, ok)
	number, ok := rule.Int(7).Number()
	assert.True(t, ok)
	assert.EqualValues(t, 7, number)
	assert.False(t, rule.Attribute{}.IsSet())
	assert.True(t, rule.String("").IsSet())
}

func TestExitTookTheTimeSinceItsStart(t *testing.T) {
	assert.Equal(t, time.Second, rule.Exit{Start: clock.Instant(5), Now: clock.Instant(5 + time.Second)}.Took())
}
