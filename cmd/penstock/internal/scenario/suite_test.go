package scenario_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/cmd/penstock/internal/scenario"
	"github.com/penstock-go/penstock/rules"
)

func TestASuiteNamesItsRuleFilesOrHoldsTheRules(t *testing.T) {
	t.Parallel()
	const cases = "\ncases: [{name: a, load: a 1/s for 1s, expect: {passed: 1}}]"
	for document, want := range map[string][]string{
		"rules: limits.yaml":                                  {"limits.yaml"},
		"rules: [a.yaml, ../rules]":                           {"a.yaml", "../rules"},
		"rules: {flow: []}":                                   nil,
		"rules:\n  flow: # none\n  - {resource: a, limit: 1}": nil,
	} {
		suite, err := scenario.ParseSuite("s", []byte(document+cases))
		require.NoError(t, err, document)
		assert.Equal(t, want, suite.RuleFiles, document)
		require.Len(t, suite.Cases, 1)
		assert.Equal(t, "a", suite.Cases[0].Name)
	}
}

func TestInlineRulesKeepTheirPlaces(t *testing.T) {
	t.Parallel()
	suite, err := scenario.ParseSuite("s", []byte(
		"cases: [{name: a, load: a 1/s for 1s, expect: {passed: 1}}]\nrules:\n  # of the shop\n  flow:\n    - {resource: ä, limit: 1}\n    - resource: b\n      limit: 2\n"))
	require.NoError(t, err)
	assert.Equal(t, 2, suite.Rules.Len())
	at, _ := suite.Rules.Position(rules.KindFlow, "b")
	assert.Equal(t, rules.Position{Document: "s", Line: 6, Column: 7}, at)
	for _, lineBreak := range []string{"\n", "\r\n", "\r", "\u2028"} {
		_, err = scenario.ParseSuite("s", []byte(strings.ReplaceAll("cases: []\nduration: 5\nrules: {flow: [{resource: a, limit: x}]}\n", "\n", lineBreak)))
		assert.Contains(t, lines(t, err), `s:3:37: flow rule "a": limit is "x"`, "%q", lineBreak)
	}
}

func TestEveryMistakeInASuiteIsReportedWithItsPlace(t *testing.T) {
	t.Parallel()
	const rest = "\ncases: [{name: a, load: a 1/s for 1s, expect: {passed: 1}}]"
	for _, test := range []struct{ name, document, want string }{
		{"nothing there", "{}", "s:1:1: rules is missing: write them out, or name the files or directories that hold them\ns:1:1: cases is missing: list what is tested"},
		{"not a mapping", "5", "s:1:1: the document is 5: must be a mapping of rules, duration, cases"},
		{"no cases", "rules: a\ncases: []", "s:2:8: cases is a list: must be a list of cases, each with name, load and expect"},
		{"no rules named", "rules: []" + rest, "s:1:8: rules is an empty list: name a file, or write flow: [] for no rules"},
		{"rules left empty", "rules:" + rest, "s:1:7: rules is left empty: must be rules, or the path of a file or a directory that holds them"},
		{"rules in braces", `{rules: {flow: []}, cases: [{name: a, load: a 1/s for 1s, expect: {passed: 1}}]}`, "s:1:9: rules is written out in a document in braces: put the rules into a file of their own and name it here"},
		{
			"in the rules", "duration: 5\nrules: {flow: [{resource: a, limt: 1}]}" + rest,
			`s:2:30: flow rule "a": unknown field "limt": did you mean "limit"?`,
		},
		{
			"in the rules at the end", "cases: [{name: a, load: a 1/s for 1s, expect: {passed: 1}}]\nrules:\n  flow:\n    - {resource: a, limit: -1}",
			`s:4:28: flow rule "a": limit is -1: must be from 0 (blocks all) to 1000000000 tokens per window`,
		},
		{"an empty case", "rules: a\ncases: [{}]", `s:2:9: name is missing: say in words what is tested` + "\n" +
			`s:2:9: load is missing: write what calls come, such as "orders 100/s for 10s"` + "\n" +
			"s:2:9: expect is missing: write what you expect of the calls"},
		{"the same name", "rules: a\ncases:\n- {name: a, load: a 1/s for 1s, expect: {passed: 1}}\n- {name: a, load: a 1/s for 1s, expect: {passed: 1}}", `s:4:3: name is "a", as that of the case on line 3: give one of them another`},
		{
			"in a case", "rules: a\ncases:\n- name: [a]\n  load: {streams: [a 1/y], seeed: 1}\n  duration: -1\n  seed: x\n  expct: {}",
			"s:3:9: name is a list: must be text\n" +
				`s:4:22: rate is "1/y": must be calls per second, minute or hour, such as 100/s or 6000/m` + "\n" +
				`s:4:28: unknown field "seeed": did you mean "seed"?` + "\n" +
				"s:5:13: duration is -1s: must be longer than 0s\n" +
				`s:6:9: seed is "x": must be a number, such as 100 or 2.5` + "\n" +
				`s:7:3: unknown field "expct": did you mean "expect"?`,
		},
		{"expecting nothing", "rules: a\ncases: [{name: a, load: a 1/s for 1s, expect: {}}]", "s:2:47: expect is empty: write what you expect of the calls, such as passed: 100x10"},
		{
			"numbers of single resources", "rules: a\ncases:\n- {name: a, load: [a 1/s for 1s, b 1/s for 1s], expect: {inFlight: 1, rtP99: 5, passed: 1}}",
			"s:3:68: inFlight is that of a single resource: name it, resource: a\n" +
				"s:3:78: rtP99 is that of a single resource: name it, resource: a",
		},
		{
			"in what is expected", "rules: a\ncases:\n- name: a\n  load: [orders 1/s for 1s, carts 1/s for 1s]\n  expect:\n  - {resource: order, passd: 1, total: {passed: 1 2, ceiling: 3}}\n" +
				"  - {maxWait: soon, waits: -1, blockedBy: {a: many}}\n  - 7",
			`s:6:16: unknown resource "order": did you mean "orders"?` + "\n" +
				`s:6:23: unknown field "passd": did you mean "passed"?` + "\n" +
				"s:6:49: total.passed is a sequence: must be one number, such as 100, or a range\n" +
				`s:6:54: unknown field "ceiling": those here are offered, passed, blocked, waited, completed, failed, good` + "\n" +
				`s:7:15: maxWait has "soon": must be a number, such as 200ms, with a tolerance, as 200ms±5%, a range, as 200ms.., or _ for any` + "\n" +
				`s:7:28: waits has "-1": must be a number, such as 200ms, with a tolerance, as 200ms±5%, a range, as 200ms.., or _ for any` + "\n" +
				`s:7:47: blockedBy has "many": must be a number, such as 100, with a tolerance, as 100±5%, a range, as 100.., or _ for any` + "\n" +
				"s:8:5: expect is 7: must be a mapping of resource, value, attrs, each, waits, maxWait, blockedBy, states, total, offered, passed, blocked, waited, completed, failed, good, ceiling, inFlight, rtP50, rtP99",
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			suite, err := scenario.ParseSuite("s", []byte(test.document))
			assert.Equal(t, test.want, lines(t, err))
			assert.Empty(t, suite)
		})
	}
}
