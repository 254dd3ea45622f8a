package rules_test

import (
	"encoding/json"
	"fmt"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/penstock-go/penstock/fleet"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/rule"
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

// patterns draws globs and regular expressions.
func patterns() *rapid.Generator[string] {
	escaped := func(special string) func(string) string {
		return func(name string) string {
			var b strings.Builder
			for _, r := range name {
				if strings.ContainsRune(special, r) {
					b.WriteByte('\\')
				}
				b.WriteRune(r)
			}
			return b.String()
		}
	}
	short := rapid.StringOfN(rapid.SampledFrom([]rune("ab-: /.*?[]!~\\é日")), 1, 20, -1)
	glob := rapid.Map(rapid.SliceOfN(rapid.OneOf(
		rapid.SampledFrom([]string{"*", "?", "[abc]", "[!a-z]", "[é日]"}),
		rapid.Map(short, escaped(`*?[\`)),
	), 1, 8), func(parts []string) string { return strings.Join(parts, "") })
	return rapid.OneOf(
		glob.Filter(func(g string) bool { return !strings.HasPrefix(g, "~") }),
		rapid.Map(short, func(name string) string { return "~^" + regexp.QuoteMeta(name) + "(a|b)+.*$" }),
	)
}

// soundRule draws every kind of rule with every field that it may have.
func soundRule() *rapid.Generator[flow.Rule] {
	return rapid.Custom(func(t *rapid.T) flow.Rule {
		rule := flow.Rule{
			Name:   rapid.OneOf(rapid.Just(""), names()).Draw(t, "name"),
			Limit:  rapid.Float64Range(0, flow.MaxLimit).Draw(t, "limit"),
			Origin: rapid.OneOf(rapid.Just(""), names(), rapid.Just(rule.OtherOrigins)).Draw(t, "origin"),
			Shadow: rapid.Bool().Draw(t, "shadow"),
		}
		if rapid.Bool().Draw(t, "pattern") {
			rule.Match = patterns().Draw(t, "match")
			rule.Shared = rapid.Bool().Draw(t, "shared")
		} else {
			rule.Resource = names().Draw(t, "resource")
		}
		if rapid.Bool().Draw(t, "warm") {
			rule.WarmUp = flow.WarmUp{
				Period:     duration(1, flow.MaxPeriod).Draw(t, "period"),
				ColdFactor: rapid.Float64Range(1.001, flow.MaxColdFactor).Draw(t, "coldFactor"),
				Step:       duration(flow.MinWindow, time.Minute).Draw(t, "step"),
			}
		}
		kind := rapid.SampledFrom([]func(*rapid.T, *flow.Rule){sliding, fixed, bucket, throttle}).Draw(t, "kind")
		kind(t, &rule)
		shareIn(t, &rule)
		return rule
	})
}

// shareIn may make a rule one for the whole fleet, in a mode that goes with all fields.
func shareIn(t *rapid.T, r *flow.Rule) {
	if !rapid.Bool().Draw(t, "fleet") {
		return
	}
	r.Scope = rule.ScopeFleet
	r.Fleet = rule.Fleet{
		Mode:     fleet.ModeShare,
		OnOutage: rapid.SampledFrom([]fleet.OnOutage{"", fleet.OutageLast, fleet.OutageShare, fleet.OutageOpen, fleet.OutageClosed}).Draw(t, "onOutage"),
	}
}

func sliding(t *rapid.T, rule *flow.Rule) {
	bucket := rapid.IntRange(1, int(time.Hour/time.Millisecond)).Draw(t, "bucket")
	least := max(1, (10+bucket-1)/bucket)
	most := min(flow.MaxBuckets, int(flow.MaxWindow/time.Millisecond)/bucket)
	rule.Buckets = rapid.IntRange(least, most).Draw(t, "buckets")
	rule.Window = time.Duration(bucket*rule.Buckets) * time.Millisecond
	rule.Strict = rapid.Bool().Draw(t, "strict")
	relate(t, rule)
}

func fixed(t *rapid.T, rule *flow.Rule) {
	rule.Algorithm = flow.FixedWindow
	rule.Window = duration(flow.MinFixedWindow, flow.MaxWindow).Draw(t, "window")
	relate(t, rule)
}

func relate(t *rapid.T, rule *flow.Rule) {
	if rapid.Bool().Draw(t, "relate") {
		rule.Related = "related to " + rapid.SampledFrom([]string{"a", "b"}).Draw(t, "related")
	}
}

func bucket(t *rapid.T, rule *flow.Rule) {
	rule.Algorithm = flow.TokenBucket
	rule.Window = duration(flow.MinWindow, flow.MaxWindow).Draw(t, "window")
	rule.MaxWait = duration(0, flow.MaxMaxWait).Draw(t, "maxWait")
	rule.Overdraft = rapid.Bool().Draw(t, "overdraft")
	rule.WarmUp.Step = 0
	if rule.WarmUp.Period == 0 {
		rule.Burst = rapid.OneOf(rapid.Just(0.0), rapid.Float64Range(1, flow.MaxLimit)).Draw(t, "burst")
	}
}

func throttle(t *rapid.T, rule *flow.Rule) {
	rule.Algorithm = flow.Throttle
	rule.Window = duration(flow.MinWindow, flow.MaxWindow).Draw(t, "window")
	rule.MaxWait = duration(0, flow.MaxMaxWait).Draw(t, "maxWait")
}

func duration(least, most time.Duration) *rapid.Generator[time.Duration] {
	return rapid.Map(rapid.Int64Range(int64(least), int64(most)), func(n int64) time.Duration { return time.Duration(n) })
}

func soundSet() *rapid.Generator[rules.Set] {
	return rapid.Custom(func(t *rapid.T) rules.Set {
		name := func(r flow.Rule) string { return flow.Kind().WithDefaults(r).Name }
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
			fields := map[string]any{
				"name": r.Name, "limit": r.Limit, "window": r.Window.String(), "algorithm": r.Algorithm,
				"strict": r.Strict, "maxWait": r.MaxWait.String(), "perResource": !r.Shared, "overdraft": r.Overdraft, "shadow": r.Shadow,
			}
			for field, value := range map[string]any{
				"resource": r.Resource, "match": r.Match, "buckets": r.Buckets, "burst": r.Burst, "origin": r.Origin, "related": r.Related,
			} {
				if !reflect.ValueOf(value).IsZero() {
					fields[field] = value
				}
			}
			if w := r.WarmUp; w.Period > 0 {
				warmUp := map[string]any{"period": w.Period.String(), "coldFactor": w.ColdFactor}
				if w.Step > 0 {
					warmUp["step"] = w.Step.String()
				}
				fields["warmUp"] = warmUp
			}
			if r.Scope == rule.ScopeFleet {
				fields["scope"], fields["fleet"] = r.Scope, map[string]any{"mode": r.Fleet.Mode, "onOutage": r.Fleet.OnOutage}
			}
			list = append(list, fields)
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
