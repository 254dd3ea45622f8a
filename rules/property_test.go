package rules_test

import (
	"encoding/json"
	"fmt"
	"strconv"
	"testing"
	"time"
	"unicode"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/rules"
)

// names draws what may be the name of a rule or a resource.
func names() *rapid.Generator[string] {
	visible := rapid.Rune().Filter(func(r rune) bool {
		return !unicode.IsControl(r) && r != '\u2028' && r != '\u2029' && r != '\ufeff' && r < '\ufffd'
	})
	awkward := rapid.SampledFrom([]rune(" -?:,[]{}#&*!|>'\"%@`.~<=+0123456789eExXnul\\/é日😀"))
	return rapid.Custom(func(t *rapid.T) string {
		return rapid.StringOfN(rapid.OneOf(visible, awkward), 1, 40, 160).Draw(t, "name")
	})
}

func soundRule() *rapid.Generator[flow.Rule] {
	return rapid.Custom(func(t *rapid.T) flow.Rule {
		bucket := rapid.IntRange(1, int(time.Hour/time.Millisecond)).Draw(t, "bucket")
		least := max(1, (10+bucket-1)/bucket)
		most := min(flow.MaxBuckets, int(flow.MaxWindow/time.Millisecond)/bucket)
		buckets := rapid.IntRange(least, most).Draw(t, "buckets")
		rule := flow.Rule{
			Name:     rapid.OneOf(rapid.Just(""), names()).Draw(t, "name"),
			Resource: names().Draw(t, "resource"),
			Limit:    rapid.Float64Range(0, flow.MaxLimit).Draw(t, "limit"),
			Window:   time.Duration(bucket*buckets) * time.Millisecond,
		}
		if rapid.Bool().Draw(t, "throttle") {
			rule.Control = flow.Throttle
			rule.MaxWait = time.Duration(rapid.Int64Range(0, int64(flow.MaxMaxWait)).Draw(t, "maxWait"))
		} else {
			rule.Buckets = buckets
			rule.Strict = rapid.Bool().Draw(t, "strict")
		}
		if rapid.Bool().Draw(t, "warm") {
			rule.WarmUp = flow.WarmUp{
				Period:     time.Duration(rapid.Int64Range(1, int64(flow.MaxPeriod)).Draw(t, "period")),
				ColdFactor: rapid.Float64Range(1.001, flow.MaxColdFactor).Draw(t, "coldFactor"),
				Step:       time.Duration(rapid.Int64Range(int64(flow.MinWindow), int64(time.Minute)).Draw(t, "step")),
			}
		}
		return rule
	})
}

func soundSet() *rapid.Generator[rules.Set] {
	return rapid.Custom(func(t *rapid.T) rules.Set {
		name := func(r flow.Rule) string { return r.WithDefaults().Name }
		return rules.Set{Flow: rapid.SliceOfNDistinct(soundRule(), 0, 20, name).Draw(t, "rules")}
	})
}

func TestASoundSetReadsBackAsItWasWritten(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		set := soundSet().Draw(t, "set")
		document, err := set.YAML()
		require.NoError(t, err)
		back, err := rules.Parse("", document)
		require.NoError(t, err, "%s", document)
		require.Len(t, back.Flow, set.Len())
		for i, rule := range set.WithDefaults().Flow {
			assert.Equal(t, rule, back.Flow[i], "%s", document)
		}
	})
}

// TestYAMLAndJSONSayTheSame writes rules as JSON in a way of its own.
func TestYAMLAndJSONSayTheSame(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		set := soundSet().Draw(t, "set").WithDefaults()
		list := []map[string]any{}
		for _, r := range set.Flow {
			rule := map[string]any{
				"name": r.Name, "resource": r.Resource, "limit": r.Limit, "window": r.Window.String(),
				"control": r.Control, "algorithm": r.Algorithm, "strict": r.Strict, "maxWait": r.MaxWait.String(), "buckets": r.Buckets,
			}
			if w := r.WarmUp; w.Period > 0 {
				rule["warmUp"] = map[string]any{"period": w.Period.String(), "coldFactor": w.ColdFactor, "step": w.Step.String()}
			}
			list = append(list, rule)
		}
		document, err := json.MarshalIndent(map[string]any{"flow": list}, "", rapid.SampledFrom([]string{"", " ", "\t"}).Draw(t, "indent"))
		require.NoError(t, err)
		back, err := rules.Parse("", document)
		require.NoError(t, err, "%s", document)
		require.Len(t, back.Flow, set.Len())
		for i, rule := range set.Flow {
			assert.Equal(t, rule, back.Flow[i], "%s", document)
		}
	})
}

// TestAMistakeIsFoundWhereverItStands plants one bad limit into a sound list.
func TestAMistakeIsFoundWhereverItStands(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 50).Draw(t, "rules")
		bad := rapid.IntRange(0, n-1).Draw(t, "bad")
		document := "flow:\n"
		for i := range n {
			limit := "1"
			if i == bad {
				limit = "-1"
			}
			document += fmt.Sprintf("- name: rule %d\n  resource: r\n  limit: %s\n", i, limit)
		}
		_, err := rules.Parse("doc", []byte(document))
		assert.ErrorContains(t, err, "doc:"+strconv.Itoa(3*bad+4)+":10: flow rule \"rule "+strconv.Itoa(bad)+"\": limit is -1")
	})
}
