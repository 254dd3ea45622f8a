package isolation_test

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/internal/document"
	"github.com/penstock-go/penstock/isolation"
	"github.com/penstock-go/penstock/rule"
)

func TestWithDefaultsFillsIn(t *testing.T) {
	t.Parallel()
	tests := map[string]struct{ rule, want isolation.Rule }{
		"a bare rule": {
			isolation.Rule{Resource: "r", Limit: 5},
			isolation.Rule{Name: "r", Resource: "r", Limit: 5},
		},
		"a pattern": {
			isolation.Rule{Match: "a:*", Limit: 5},
			isolation.Rule{Name: "a:*", Match: "a:*", Limit: 5},
		},
		"calls that wait": {
			isolation.Rule{Resource: "r", MaxWait: time.Second},
			isolation.Rule{Name: "r", Resource: "r", MaxWait: time.Second, MaxQueue: 1000, Order: isolation.FIFO},
		},
		"what is set": {
			isolation.Rule{Name: "n", Resource: "r", MaxWait: time.Second, MaxQueue: 1, Order: isolation.LIFO},
			isolation.Rule{Name: "n", Resource: "r", MaxWait: time.Second, MaxQueue: 1, Order: isolation.LIFO},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			before := test.rule
			got := isolation.Kind().WithDefaults(test.rule)
			assert.Equal(t, test.want, got)
			assert.Equal(t, before, test.rule, "the receiver stays as it is")
			assert.Equal(t, got, isolation.Kind().WithDefaults(got), "what is complete stays as it is")
			assert.Empty(t, isolation.Kind().Faults(got))
		})
	}
}

func TestValidateReportsEveryMistake(t *testing.T) {
	t.Parallel()
	const noEffect = "has no effect without maxWait: remove it or set maxWait"
	tests := map[string]struct {
		rule isolation.Rule
		want []rule.Fault
	}{
		"the ends of all ranges": {
			rule: isolation.Rule{Resource: "r", Limit: 1_000_000, MaxWait: 24 * time.Hour, MaxQueue: 1_000_000},
		},
		"all blocked": {rule: isolation.Rule{Resource: "r", MaxWait: 1, MaxQueue: 1}},
		"nothing guarded": {isolation.Rule{Limit: 1}, []rule.Fault{
			{Field: "resource", Message: "is missing: name the resource that the rule guards, or write a pattern in match"},
		}},
		"below all ranges": {
			isolation.Rule{Resource: "r", Limit: -1, MaxWait: -1, MaxQueue: -1, Order: "random"},
			[]rule.Fault{
				{Field: "limit", Message: "is -1: must be from 0 (blocks all) to 1000000 calls under way"},
				{Field: "maxWait", Message: "is -1ns: must be from 0s (no waiting) to 24h0m0s"},
				{Field: "maxQueue", Message: "is -1: must be from 1 to 1000000 waiting calls"},
				{Field: "order", Message: `is "random": must be "fifo" or "lifo"`},
			},
		},
		"beyond all ranges": {
			isolation.Rule{Resource: "r", Limit: 1_000_001, MaxWait: 24*time.Hour + 1, MaxQueue: 1_000_001},
			[]rule.Fault{
				{Field: "limit", Message: "is 1000001: must be from 0 (blocks all) to 1000000 calls under way"},
				{Field: "maxWait", Message: "is 24h0m0.000000001s: must be from 0s (no waiting) to 24h0m0s"},
				{Field: "maxQueue", Message: "is 1000001: must be from 1 to 1000000 waiting calls"},
			},
		},
		"a queue in which nobody may wait": {
			isolation.Rule{Resource: "r", Limit: 1, MaxQueue: 1, Order: isolation.LIFO},
			[]rule.Fault{{Field: "maxQueue", Message: noEffect}, {Field: "order", Message: noEffect}},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			assert.ElementsMatch(t, test.want, isolation.Kind().Faults(test.rule))
		})
	}
}

func TestKindIsComplete(t *testing.T) {
	t.Parallel()
	kind := isolation.Kind()
	assert.Equal(t, rule.Kind("isolation"), kind.Kind())
	assert.Equal(t, rule.PhaseConcurrency, kind.Phase())
	assert.Equal(t, rule.Overloaded, kind.Reason())

	var fields, shown []string
	for _, f := range kind.Fields() {
		fields = append(fields, f.Path)
		assert.NotEmpty(t, f.About, f.Path)
	}
	for _, e := range kind.Examples() {
		assert.Empty(t, e.Rule.Faults(), e.About)
		shown = append(shown, e.Fields...)
	}
	slices.Sort(shown)
	assert.Subset(t, shown, fields, "the examples show all fields")
	assert.Len(t, kind.Gauges(), len(newLimiter(t, fairRule(1, 1)).Status(epoch).Gauges)+4, "those of the fleet come last")
}

func TestRuleIsReadFromADocument(t *testing.T) {
	t.Parallel()
	draft := isolation.Kind().Draft()
	text := func(text string) document.Value { return document.Value{Type: document.Text, Text: text} }
	number := func(text string) document.Value { return document.Value{Type: document.Number, Text: text} }
	for field, value := range map[string]document.Value{
		"name": text("pool"), "match": text("a:*"), "perResource": {Type: document.Boolean, Text: "false"}, "limit": number("10"),
		"maxWait": text("2s"), "maxQueue": number("100"), "order": text("lifo"), "origin": text("mobile"),
		"shadow": {Type: document.Boolean, Text: "true"},
	} {
		require.Empty(t, draft.Set(field, value), field)
		assert.Equal(t, value, draft.Get(field))
	}
	assert.Equal(t, isolation.Rule{
		Name: "pool", Match: "a:*", Shared: true, Limit: 10, MaxWait: 2 * time.Second, MaxQueue: 100, Order: isolation.LIFO,
		Origin: "mobile", Shadow: true,
	}, draft.Value())
	assert.Equal(t, `is "lfio": did you mean "lifo"?`, draft.Set("order", text("lfio")))
	assert.Equal(t, "is 2.5: must be a whole number, such as 10", draft.Set("limit", number("2.5")))
}
