package convert_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/access"
	"github.com/penstock-go/penstock/cmd/penstock/internal/convert"
	"github.com/penstock-go/penstock/rule"
)

func TestConvertedAuthorityRulesDoTheSame(t *testing.T) {
	allow := func(names ...string) access.Rule {
		return access.Rule{Resource: "r", Attribute: "origin", Allow: rule.StringsOf(names...), Missing: rule.MissingPass}
	}
	deny := func(names ...string) access.Rule {
		return access.Rule{Resource: "r", Attribute: "origin", Deny: rule.StringsOf(names...)}
	}
	for fields, want := range map[string]access.Rule{
		`"limitApp": "a", "strategy": 0`:                                  allow("a"),
		`"limitApp": "a,b", "strategy": 0`:                                allow("a", "b"),
		`"limitApp": "a,b"`:                                               allow("a", "b"),
		`"LimitApp": "a,b,a,,", "Strategy": 1`:                            deny("a", "b"),
		`"limitApp": "default", "strategy": 1`:                            deny("default"),
		`"limitApp": "a*,~b,[c", "strategy": 1`:                           deny(`a\*`, `\~b`, `\[c`),
		`"limitApp": "a", "strategy": 1, "id": 3, "app": "x", "port": 80`: deny("a"),
		`"limitApp": "a", "strategy": 1, "regex": true`: {
			Match: "~^(?:r)$", Attribute: "origin", Deny: rule.StringsOf("a"),
		},
	} {
		t.Run(fields, func(t *testing.T) {
			rules, findings := convertRule(t, fields)
			assert.Equal(t, []access.Rule{want}, rules.Access)
			assert.Empty(t, findings)
			assert.Equal(t, 1, rules.Len())
		})
	}
}

func TestAuthorityRulesThatCannotBeConvertedAreReported(t *testing.T) {
	long, many := strings.Repeat("a", 1025), strings.Join(manyNames(1001), ",")
	for fields, want := range map[string]string{
		`"limitApp": "", "strategy": 1`:  `left out: limitApp is "" and names nobody: name the callers, or remove the rule`,
		`"limitApp": ",", "strategy": 1`: `left out: limitApp is "," and names nobody`,
		`"limitApp": 5, "strategy": 1`:   `left out: limitApp is 5: must be text`,
		`"limitApp": "a", "strategy": 2`: `left out: strategy is 2, which Sentinel does not know`,
		`"limitApp": "` + long + `"`:     `left out: as a rule here, allow has an entry that`,
		`"limitApp": "` + many + `"`:     `left out: as a rule here, allow has 1001 entries`,
		`"strategy": 1`:                  `left out: there is neither a threshold (Go) nor a count (Java)`,
	} {
		t.Run(fields[:min(40, len(fields))], func(t *testing.T) {
			rules, findings := convertRule(t, fields)
			assert.Empty(t, rules)
			require.NotEmpty(t, findings)
			assert.Contains(t, findings[0], want)
		})
	}
}

func manyNames(count int) (names []string) {
	for i := range count {
		names = append(names, fmt.Sprint("app-", i))
	}
	return names
}

func TestBlanksAroundOriginsAreRemoved(t *testing.T) {
	rules, findings := convertRule(t, `"limitApp": "a, b ", "strategy": 1`)
	assert.Equal(t, rule.StringsOf("a", "b"), rules.Access[0].Deny)
	require.Len(t, findings, 1)
	assert.Contains(t, findings[0], `differs: Sentinel compares " b " with its blanks; here it is "b"`)
}

func TestOnlyTheFirstAuthorityRuleOfAResourceCounts(t *testing.T) {
	c := convert.Convert(convert.File{Name: "f", Data: []byte(
		`[{"resource": "r", "limitApp": "a"}, {"resource": "s", "limitApp": "a"}, {"resource": "r", "limitApp": "b"}, {"resource": "r", "count": 1}]`)})
	require.Len(t, c.Rules.Access, 2)
	require.Len(t, c.Rules.Flow, 1)
	require.Len(t, c.Findings, 1)
	assert.Contains(t, c.Findings[0].String(), `f:1:74: rule on "r": left out: Sentinel ignores all authority rules of a resource but the first`)
}

// A flow rule that lacks its count is not taken for an authority rule.
func TestFlowRulesWithoutACountAreNoAuthorityRules(t *testing.T) {
	rules, findings := convertRule(t, `"limitApp": "default", "strategy": 0, "grade": 1`)
	assert.Empty(t, rules)
	require.Len(t, findings, 1)
	assert.Contains(t, findings[0], "there is neither a threshold (Go) nor a count (Java)")
}
