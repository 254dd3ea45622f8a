package rules_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/hotparam"
	"github.com/penstock-go/penstock/rule"
	"github.com/penstock-go/penstock/rules"
)

const hotParamDocument = `
hotParam:
  - name: per-user
    resource: orders
    param: user
    limit: 10
    burst: 20
    values: {vip: 1000, "7": 5, 7: 6, true: 7, "v-*": 8}
    penalty: {after: 100, within: 1m, for: 10m}
  - {match: "api:*", param: [tenant, user], limit: 2.5, control: throttle, maxWait: 1s, missing: block}
  - {resource: reports, param: ip, concurrency: 3, mask: hash}
`

func TestParseReadsLimitsForEachValue(t *testing.T) {
	set, err := rules.Parse("", []byte(hotParamDocument))
	require.NoError(t, err)
	require.Len(t, set.HotParam, 3)
	entry := func(key rule.Attribute, limit float64) rule.NumberEntry {
		return rule.NumberEntry{Key: key, Value: limit}
	}
	assert.Equal(t, hotparam.Rule{
		Name: "per-user", Resource: "orders", Param: rule.StringsOf("user"), Limit: 10, Window: time.Second,
		Algorithm: hotparam.TokenBucket, Burst: 20, MaxValues: 100_000, Missing: rule.MissingPass,
		Values: rule.NumberMapOf(
			entry(rule.String("vip"), 1000), entry(rule.String("7"), 5), entry(rule.Int(7), 6), entry(rule.Bool(true), 7),
			entry(rule.String("v-*"), 8),
		),
		Penalty: hotparam.Penalty{After: 100, Within: time.Minute, For: 10 * time.Minute},
	}, set.HotParam[0])
	assert.Equal(t, hotparam.Throttle, set.HotParam[1].Algorithm, "as control says")
	assert.Equal(t, rule.StringsOf("tenant", "user"), set.HotParam[1].Param)
	assert.Equal(t, 3, set.HotParam[2].Concurrency)
}

func TestLimitsForEachValueAreReadBackAsTheyAreWritten(t *testing.T) {
	set, err := rules.Parse("", []byte(hotParamDocument))
	require.NoError(t, err)
	document, err := set.YAML()
	require.NoError(t, err)
	assert.NotContains(t, string(document), "limit: 0", "a rule with concurrency has none")
	again, err := rules.Parse("", document)
	require.NoError(t, err, string(document))
	assert.Equal(t, set.HotParam, again.HotParam)
	assert.Empty(t, rules.Diff(set, again))
}

func TestDiffShowsLimitsOfValues(t *testing.T) {
	one := rules.Set{HotParam: []hotparam.Rule{{Resource: "r", Param: rule.StringsOf("user"), Limit: 1}}}
	two := rules.Set{HotParam: []hotparam.Rule{{
		Resource: "r", Param: rule.StringsOf("user"), Limit: 1,
		Values: rule.NumberMapOf(rule.NumberEntry{Key: rule.String("vip"), Value: 5}),
	}}}
	differences := rules.Diff(one.WithDefaults(), two.WithDefaults())
	require.Len(t, differences, 1)
	require.Len(t, differences[0].Fields, 1)
	assert.Equal(t, "values", differences[0].Fields[0].Field)
	assert.Equal(t, "{vip: 5}", differences[0].Fields[0].To)
}

func TestParseSaysWhatIsWrongWithLimitsForEachValue(t *testing.T) {
	for _, c := range []struct {
		rule string
		want []string
	}{
		{"resource: r, limit: 1", []string{"param is missing: write the attribute"}},
		{"resource: r, param: user", []string{"limit is missing: write how many tokens each value may take in a window, or concurrency"}},
		{"resource: r, param: user, concurrency: 0", []string{"concurrency is 0: must be from 1 to 1000000 calls under way"}},
		{"resource: r, param: user, concurrency: 3, limit: 1", []string{"limit stands beside concurrency"}},
		{"resource: r, param: user, concurrency: 3, burst: 1, window: 1s", []string{"window has no effect beside", "burst has no effect"}},
		{"resource: r, param: user, limit: 1, mask: stars", []string{`mask is "stars": must be "hash"`}},
		{"resource: r, param: user, limit: 1, control: throttle, algorithm: slidingWindow", []string{`control is "throttle", but algorithm is "slidingWindow"`}},
		{"resource: r, param: user, limit: 1, control: reject, algorithm: throttle", []string{`control is "reject", but algorithm is "throttle"`}},
		{"resource: r, param: user, limit: 1, values: {a: b}", []string{`values has an entry "a" that is "b": must be a number`}},
		{"resource: r, param: user, limit: 1, values: {a: -1, 'b[': 1}", []string{`values gives "a" the limit -1`, `values has a key "b[" that`}},
		{"resource: r, param: user, limit: -1, maxValues: 1, penalty: {after: 3}", []string{
			"limit is -1", "maxValues is 1: must be from 100", "penalty.within is 0s", "penalty.for is 0s",
		}},
	} {
		_, err := rules.Parse("", []byte("hotParam: [{"+c.rule+"}]"))
		var problems rules.Problems
		require.ErrorAs(t, err, &problems, c.rule)
		require.Len(t, problems, len(c.want), "%v", err)
		var got []string
		for _, p := range problems {
			got = append(got, p.Field+" "+p.Message)
		}
		for _, want := range c.want {
			assert.Condition(t, func() bool {
				for _, g := range got {
					if strings.HasPrefix(g, want) {
						return true
					}
				}
				return false
			}, "want %s\ngot  %v", want, got)
		}
	}
}
