package rules_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/rule"
	"github.com/penstock-go/penstock/rules"
)

// mistake is a malformed document and what is to be said of it: all of it, in
// order, each as "line:column" and the beginning of the rest.
type mistake struct {
	name     string
	document string
	want     []string
}

func (m mistake) run(t *testing.T) {
	t.Helper()
	t.Run(m.name, func(t *testing.T) {
		set, err := rules.Parse("", []byte(m.document))
		assert.Equal(t, rules.Set{}, set, "the set of a document with mistakes is empty")
		var problems rules.Problems
		require.ErrorAs(t, err, &problems)
		require.Len(t, problems, len(m.want), "%v", err)
		for i, p := range problems {
			at, message, _ := strings.Cut(m.want[i], " ")
			assert.Equal(t, at, fmt.Sprintf("%d:%d", p.Line, p.Column), "%v", p)
			assert.Truef(t, strings.HasPrefix(p.Error(), at+": "+message), "want %s\ngot  %v", m.want[i], p)
		}
	})
}

func TestParseSaysWhatIsWrongWithADocument(t *testing.T) {
	deep := func(n int) string { return strings.Repeat("[", n) + strings.Repeat("]", n) }
	for _, m := range []mistake{
		{"no bytes", "", []string{"1:1 the document is empty: write \"flow: []\" for a document without rules"}},
		{"white space", " \n\r\n\n", []string{"1:1 the document is empty"}},
		{"comments only", "# flow:\n#  - a\n", []string{"1:1 the document is empty"}},
		{"null", "null", []string{"1:1 the document is empty"}},
		{"a marker of a document only", "---\n", []string{"2:1 the document is empty"}},
		{"byte order mark only", "\ufeff", []string{"1:1 the document is empty"}},
		{"text", "flow", []string{`1:1 the document is text: must be a mapping`}},
		{"number", " 12", []string{"1:2 the document is a number: must be a mapping"}},
		{"list", "- resource: a\n  limit: 1", []string{"1:1 the document is a list: must be a mapping"}},
		{"JSON list", `[{"resource": "a"}]`, []string{"1:1 the document is a list: must be a mapping"}},
		{"two documents", "flow: []\n---\nflow: []\n", []string{"2:1 a second document begins here"}},
		{"a document after an end", "flow: []\n...\n---\n# c\n", []string{"3:1 a second document begins here"}},
		{"syntax error in a second document", "flow: []\n---\n]", []string{"3:1 the document cannot be read as YAML: "}},
		{"too long", strings.Repeat("#", rules.MaxDocumentSize+1), []string{
			"1:1 the document is 1048577 bytes long: the most is 1048576",
		}},
		{"not UTF-8", "flow: []\n# caf\xe9\n", []string{"2:6 the document is not UTF-8: there is a byte 0xe9"}},
		{"UTF-16", "\xff\xfef\x00", []string{"1:1 the document is not UTF-8: there is a byte 0xff"}},
		{"cut within a character", "flow: []\n#\xe2\x82", []string{"2:2 the document is not UTF-8: there is a byte 0xe2"}},
		{"NUL", "flow: [\x00]", []string{"1:8 the document has a character U+0000"}},
		{"control character in JSON", "{\"fl\x07ow\": []}", []string{"1:5 the document has a character U+0007"}},
		{"line separator", "flow:\r\n# é\u2028\r\n", []string{"2:4 the document has a character U+2028"}},
		{"next line", "a\u0085b", []string{"1:2 the document has a character U+0085"}},
		{"byte order mark within", "flow: []\n\ufeff", []string{"2:1 the document has a character U+FEFF"}},
		{"alias of nothing", "flow: *rules", []string{"1:7 the document cannot be read as YAML: unknown anchor"}},
		{"tag of the document", "!!map\nflow: []", []string{`1:1 the document has a tag, which is not supported: remove "!!map"`}},
		{"tag without a name", "! {flow: []}", []string{`1:1 the document has a tag, which is not supported: remove "!"`}},
		{"alias bomb", "a: &a [x]\nb: &b [*a, *a]\nflow: [*b, *b]\n", []string{
			`1:1 unknown field: the fields here are flow`,
			`2:1 unknown field: the fields here are flow`,
			`3:8 flow[0]: the rule is an alias, which is not supported: write out what "*b" stands for`,
			`3:12 flow[1]: the rule is an alias`,
		}},
		{"nested too deep", deep(33), []string{"1:33 the document cannot be read as YAML: more than 32 levels"}},
		{"nested too deep by lines", strings.Repeat("- ", 33) + "a", []string{"1:65 the document cannot be read as YAML: more than 32 levels"}},
		{"nested too deep in JSON", `{"flow": ` + deep(32) + "}", []string{"1:41 the document cannot be read as JSON: more than 32 levels"}},
		{"nested deep in JSON", `{"flow": ` + deep(31) + "}", []string{"1:11 flow[0]: the entry is a list"}},
		{"nested deep", "flow: " + deep(31), []string{"1:8 flow[0]: the entry is a list"}},
	} {
		m.run(t)
	}
}

func TestParseSaysWhereTheSyntaxIsWrong(t *testing.T) {
	for _, m := range []mistake{
		{"list not closed", "flow: [\n", []string{"2:1 the document cannot be read as YAML: did not find expected node content"}},
		{"mapping not closed", "flow:\n  - {resource: a", []string{"2:17 the document cannot be read as YAML: did not find expected ',' or '}'"}},
		{"quote not closed", "flow:\n  - resource: 'a\n", []string{
			"3:1 the document cannot be read as YAML: found unexpected end of stream (while scanning a quoted scalar that begins on line 2)",
		}},
		{"tab for indentation", "# é\nflow:\n\t- resource: a\n", []string{
			"3:1 the document cannot be read as YAML: found character that cannot start any token (while scanning for the next token that begins on line 3); indent with spaces, not tabs",
		}},
		{"two values in a line", "flow: a: b", []string{"1:8 the document cannot be read as YAML: mapping values are not allowed in this context"}},
		{"value missing at the end", "? flow", []string{"1:7 flow is left empty"}},
		{"indentation lost", "flow:\n  - resource: a\n limit: 1\n", []string{"3:2 the document cannot be read as YAML: did not find expected key (while parsing a block mapping that begins on line 1)"}},
		{"unknown escape", "flow: \"\\z\"", []string{"1:8 the document cannot be read as YAML: found unknown escape character"}},
		{"directive", "%YAML 1.2\n---\nflow: []", []string{
			"1:1 the document cannot be read as YAML: found incompatible YAML document; remove the directive, it is not needed",
		}},
		{"JSON cut off", "{\"flow\": [\n  {\"resource\": \"a\"}", []string{"2:19 the document cannot be read as JSON: unexpected end of JSON input"}},
		{"JSON cut off at the end of a line", "{\"flow\": [\r\n\r\n", []string{"1:11 the document cannot be read as JSON: unexpected end of JSON input"}},
		{"JSON with a bracket too many", `{"flow": []]}`, []string{"1:12 the document cannot be read as JSON: invalid character ']'"}},
		{"JSON followed by more", "{\"flow\": []}\r\n{}", []string{"2:1 the document cannot be read as JSON: invalid character '{' after top-level value"}},
		{"JSON after wide characters", "{\"flow\": [], \"日本\": }}", []string{"1:20 the document cannot be read as JSON: invalid character '}' looking for beginning of value"}},
		{"braces of YAML", "{flow: [}", []string{"1:9 the document cannot be read as YAML: did not find expected node content"}},
	} {
		m.run(t)
	}
}

func TestParseSaysWhatIsWrongWithAList(t *testing.T) {
	for _, m := range []mistake{
		{"empty", "flow:\n", []string{`1:6 flow is left empty: must be a list of rules; write "flow: []" for none`}},
		{"null in JSON", `{"flow": null}`, []string{"1:10 flow is left empty: must be a list of rules"}},
		{"mapping", "flow: {resource: a}", []string{"1:7 flow is a mapping: must be a list of rules"}},
		{"text", "flow: none", []string{`1:7 flow is text: must be a list of rules`}},
		{"with an anchor", "flow: &rules []", []string{`1:7 flow has an anchor, which is not supported: remove "&rules"`}},
		{"given twice", "flow: []\nflow:\n- {resource: a, limit: x}", []string{"2:1 flow is given twice, first on line 1: remove one"}},
		{"given twice in JSON", "{\"flow\": [],\n \"flow\": []}", []string{"2:2 flow is given twice, first on line 1: remove one"}},
		{"misspelled", "FLOWS: []", []string{`1:1 unknown field "FLOWS": did you mean "flow"?`}},
		{"of a kind unknown", "throttles: []", []string{`1:1 unknown kind "throttles": the kinds here are flow, isolation, breaker, hotParam, access, adaptive`}},
		{"without a name", ": []", []string{`1:1 unknown field: the fields here are flow`}},
		{"named by a list", "? [flow]\n: []", []string{"1:3 unknown field: the fields here are flow"}},
		{"named by an alias", "flow: []\n? &a b\n: 1\n*a : 2\n", []string{
			`2:3 unknown field: the fields here are flow`,
			`4:1 unknown field: the fields here are flow`,
		}},
		{"entries empty", "flow:\n  -\n  - ~\n  - {}\n", []string{
			"2:4 flow[0]: the entry is left empty: write a rule here, such as {resource: orders, limit: 100}, or remove it",
			"3:5 flow[1]: the entry is left empty",
			"4:5 flow[2]: limit is missing: write how many tokens may pass in a window, 0 to block all",
			"4:5 flow[2]: resource is missing: name the resource that the rule guards",
		}},
		{"entries not rules", "flow: [5, orders, [a], []]", []string{
			"1:8 flow[0]: the entry is a number: write a rule here",
			`1:11 flow[1]: the entry is text: write a rule here`,
			"1:19 flow[2]: the entry is a list: write a rule here",
			"1:24 flow[3]: the entry is an empty list: write a rule here",
		}},
		{"names taken", "flow:\n- {resource: a, limit: 1}\n- {name: a, resource: b, limit: 1}\n- {resource: a, limit: 1}\n", []string{
			`3:10 flow rule "a": name is taken by the rule at 2:3: give one of them another (the default is the resource)`,
			`4:3 flow rule "a": name is taken by the rule at 2:3`,
		}},
		{"names taken in JSON", "{\"flow\": [{\"resource\": \"a\", \"limit\": 1},\n\t{\"name\": \"a\", \"resource\": \"b\", \"limit\": 1}]}", []string{
			`2:11 flow rule "a": name is taken by the rule at 1:11`,
		}},
	} {
		m.run(t)
	}
}

func TestParseSaysWhatIsWrongWithTheFieldsOfARule(t *testing.T) {
	for _, m := range []mistake{
		{"no limit", "flow:\n- resource: a", []string{`2:3 flow rule "a": limit is missing`}},
		{"no resource", "flow:\n- name: a\n  limit: 1", []string{`2:3 flow rule "a": resource is missing`}},
		{"no name to tell", "flow:\n- limit: -1", []string{
			"2:3 flow[0]: resource is missing",
			"2:10 flow[0]: limit is -1: must be from 0",
		}},
		{"misspelled", "flow:\n- resource: a\n  limt: 1", []string{`3:3 flow rule "a": unknown field "limt": did you mean "limit"?`}},
		{"misspelled beside the right one", "flow:\n- resource: a\n  limt: 1\n  limit: -1", []string{
			`3:3 flow rule "a": unknown field "limt": did you mean "limit"?`,
			`4:10 flow rule "a": limit is -1`,
		}},
		{"in other case", "flow:\n- resource: a\n  Limit: 1\n  warmup: {period: 1s}", []string{
			`3:3 flow rule "a": unknown field "Limit": did you mean "limit"?`,
			`4:3 flow rule "a": unknown field "warmup": did you mean "warmUp"?`,
		}},
		{"of other systems", "flow:\n- {resource: a, limit: 1, grade: 1}", []string{
			`2:27 flow rule "a": unknown field "grade": the fields here are name, resource, match, except, perResource, limit, window, timeZone, startsAt, algorithm, buckets, ` +
				`strict, maxWait, fairBy, weights, weightBy, newcomers, mask, burst, overdraft, warmUp, follow, onExceed, counts, warnAt, scope, fleet, origin, related, shadow`,
		}},
		{"a path for a name", "flow:\n- {resource: a, limit: 1, warmUp.period: 5s}", []string{
			`2:27 flow rule "a": unknown field "warmUp.period": write warmUp: {period: …}`,
		}},
		{"given twice", "flow:\n- resource: a\n  limit: 1\n  limit: x", []string{`4:3 flow rule "a": limit is given twice, first on line 3: remove one`}},
		{"given twice in JSON", `{"flow": [{"resource": "a", "limit": 1, "limit": 2}]}`, []string{`1:41 flow rule "a": limit is given twice, first on line 1`}},
		{"merged", "flow:\n- &a {resource: a, limit: 1}\n- <<: *a\n  resource: b\n  limit: 2", []string{
			`2:3 flow rule "a": the rule has an anchor`,
			`3:3 flow rule "b": the field's name is a merge key, which is not supported: write the fields out`,
		}},
		{"a number for a name", "flow:\n- {resource: a, limit: 1, 5: 6}", []string{`2:27 flow rule "a": unknown field "5"`}},
		{"an alias for a value", "flow:\n- {name: &n a, resource: *n, limit: 1}", []string{
			`2:10 flow[0]: name has an anchor, which is not supported: remove "&n"`,
			`2:26 flow[0]: resource is an alias`,
		}},
		{"below a field", "flow:\n- resource: a\n  limit: 1\n  warmUp:\n    perid: 1s\n    factor: 3", []string{
			`5:5 flow rule "a": unknown field "warmUp.perid": did you mean "warmUp.period"?`,
			`6:5 flow rule "a": unknown field "warmUp.factor": the fields here are period, coldFactor, step`,
		}},
		{"a limit that follows a signal", "flow:\n- resource: a\n  limit: 10\n  follow: {signal: memmory, from: 70, to: ninety, least: 20}", []string{
			`4:20 flow rule "a": follow.signal is "memmory": did you mean "memory"?`,
			`4:43 flow rule "a": follow.to is "ninety": must be a number`,
			`4:58 flow rule "a": follow.least is 20: must be less than the limit, 10; or remove follow`,
		}},
		{"a limit that follows a signal to nowhere", "flow:\n- resource: a\n  limit: 10\n  follow:\n    signal: memory\n    from: 0.9\n    to: 0.7", []string{
			`5:5 flow rule "a": follow.least is missing or 0: write how many tokens may still pass`,
			`7:9 flow rule "a": follow.to is 0.7: must be greater than from, 0.9: the limit falls while the signal rises`,
		}},
		{"all that can go wrong at once", "flow:\n- name: 7\n  resource: [a]\n  limit: many\n  window: 10\n  strict: 1\n  control: thottle\n  warmUp: 5s\n", []string{
			`2:9 flow[0]: name is 7: must be text; put it in quotes, "7"`,
			`3:13 flow[0]: resource is a list: must be text`,
			`4:10 flow[0]: limit is "many": must be a number, such as 100 or 2.5`,
			`5:11 flow[0]: window is 10: write a duration with a unit, such as "500ms" or "1s", or days, weeks or months, such as "1d" or "3mo"`,
			`6:11 flow[0]: strict is 1: must be true or false`,
			`7:12 flow[0]: control is "thottle": did you mean "throttle"?`,
			`8:11 flow[0]: warmUp is "5s": must be a mapping with some of the fields period, coldFactor, step`,
		}},
		{"nothing that only follows from another mistake", "flow:\n- resource: a\n  limit: 1\n  algorith: throttle\n  maxWait: 1s\n- resource: b\n  limit: 1\n  window: 60\n  buckets: 7", []string{
			`4:3 flow rule "a": unknown field "algorith": did you mean "algorithm"?`,
			`8:11 flow rule "b": window is 60: write a duration`,
		}},
		{"no fault, as its code cannot be read", "fault:\n- {resource: a, percent: 1, until: 2027-01-01T00:00:00Z, abort: {grpc: GONE}}", []string{
			`2:72 fault rule "a": abort.grpc is "GONE": must be "CANCELLED"`,
		}},
		{"no threshold, as the only one cannot be read", "adaptive:\n- {resource: a, strategy: threshold, cpu: 0}", []string{
			`2:43 adaptive rule "a": cpu is 0: must be a share`,
		}},
	} {
		m.run(t)
	}
}

func TestProblemsAreFoundByErrorsAs(t *testing.T) {
	_, err := rules.Parse("limits.yaml", []byte("flow:\n- resource: a\n  limit: -1\n  window: 1"))
	err = fmt.Errorf("loading: %w", err)
	var problems rules.Problems
	require.ErrorAs(t, err, &problems)
	assert.Len(t, problems, 2)
	var problem rules.Problem
	require.ErrorAs(t, err, &problem)
	assert.Equal(t, rules.Problem{
		Document: "limits.yaml", Line: 3, Column: 10,
		Kind: rules.KindFlow, Index: 0, Rule: "a", Field: "limit",
		Message: "is -1: must be from 0 (blocks all) to 1000000000 tokens per window",
	}, problem)
	assert.ErrorIs(t, err, problems[1], "each of the problems is in the chain")
}

func TestProblemsAreOneALine(t *testing.T) {
	_, err := rules.Parse("a.yaml", []byte("flow: [1, 2]"))
	assert.Regexp(t, `^rules: a\.yaml:1:8: flow\[0\]: [^\n]+\nrules: a\.yaml:1:11: flow\[1\]: [^\n]+$`, err.Error())
}

func TestProblemsWithoutNumberDoNotFillALog(t *testing.T) {
	_, err := rules.Parse("a.yaml", []byte("flow: ["+strings.Repeat("1,", 1000)+"]"))
	lines := strings.Split(err.Error(), "\n")
	require.Len(t, lines, 101)
	assert.Equal(t, "rules: and 900 more", lines[100])
}

func TestProblemsCutTheNameOfTheirDocument(t *testing.T) {
	_, err := rules.Parse(strings.Repeat("ä", 500_000)+".yaml", []byte("flow: [{resource: x, limit: two}]"))
	require.ErrorContains(t, err, `ä…:1:29: flow rule "x": limit is "two"`)
	assert.Less(t, len(err.Error()), 1200)
}

func TestProblemsCutWhatIsLong(t *testing.T) {
	long := strings.Repeat("é", rule.MaxNameLength)
	_, err := rules.Parse("a.yaml", []byte("flow:\n- {resource: "+long+", limit: 1, "+long+": 2, control: "+long+"}"))
	require.Error(t, err)
	assert.Less(t, len(strings.Split(err.Error(), "\n")[0]), 400)
}
