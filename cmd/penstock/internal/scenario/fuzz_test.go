package scenario_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/cmd/penstock/internal/scenario"
	"github.com/penstock-go/penstock/rules"
)

func FuzzParseLoad(f *testing.F) {
	for _, seed := range []string{
		"", "streams:\n- {resource: a, rate: 1, until: 2s, attrs: {u: [1, a, true], t: {count: 3}}, origin: b, tokens: 2, fails: 0.5, phases: [{until: 1s}, {fails: 0}]}\nseed: 3",
		"streams: [a b 5/s poisson from 1 to 2 tokens=2 origin=c attrs=a:1 serviceTime=2ms, 'x at 0, 1s x3']",
		"streams:\n- >\n  a 1/s\n  for x\n- {times: [1e99, .inf, -0]}\n", "streams: &a [*a]", "? [1]\n: 2", "a: 1\n---\nb: 2", "\ufeffstreams: ä 1/s for ö",
		"streams: \"a\\n1/s\\u2028for 0x1\"", "streams: |\r  a at 1\r", "streems:",
		"streams: [a 1/s]\nservers: [{resources: [a, 'b*'], workers: 2, service: {mean: 1, shape: lognormal, p99: 3}, changes: [{at: 1, service: {mean: 2}}]}]\nsignals: [{at: 0, cpu: 1}]",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		load, err := scenario.ParseLoad("fuzz", data)
		if err == nil {
			assert.Empty(t, load.Validate())
			return
		}
		assert.Empty(t, load)
		checkProblems(t, data, err)
	})
}

func FuzzParseSuite(f *testing.F) {
	for _, seed := range []string{
		"", "---", shop, shop + "- name: a\n  load: [a 1/s for 2s, b at 0 x3]\n  duration: 1m\n  seed: 5\n  expect:\n  - {resource: a, passed: 1 2..3 _ 5±5%x3 0… ±1, ceiling: none…}\n  - {waits: 0 1ms, maxWait: ..5s, blockedBy: {x: 1}, total: {passed: 3..}}",
		"rules: a\ncases:\n- name: a\n  load: {streams: [{resource: a, times: [0], attrs: {\"u\\n\": [1, '1', true, ä], t: {count: 3}}}]}\n  expect: [{value: [1, \"x\\n\"], passed: 1}, {attrs: {t: t-3, x: 1}, each: [\"u\\n\", t], ceiling: 5}]",
		"rules: [a, b]\ncases:\n- {name: a, load: a 1/s for 1s, expect: {passed: '…'}}", "rules: {flow: [{resource: a}]}\ncases: []",
		"cases: []\nrules:\n\n    flow:\n    - resource: 日本\n# end", "{rules: {}, cases: {}}", "? rules\n: flow: &a []\n? cases\n: *a",
		"cases: [{load: {streems}}]", "cases: []\rrules: {flow: [{resource: a}]}", "cases: []\u2028rules:\u0085  flow:\r\n  - a", "duration: 1\r\nrules: {}\r\ncases: []",
		"cases: [{load: {streams: [{resource: a, attrs: {\"u\\n\": [[0]], \"v\\n\": {\"x\\n\": 1}, \"w\\n\": []}}]}, expect: []}]",
		"rules: \"a\\0\"\ncases: [{name: x, load: {streams: y}, expect: {passed: 1x99999 1x99999}}]", "rules: {flow: [\n]}\ncases:\n- - -\n",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		suite, err := scenario.ParseSuite("fuzz", data)
		if err == nil {
			assert.NotEmpty(t, suite.Cases)
			require.NoError(t, suite.Rules.Validate())
			return
		}
		assert.Empty(t, suite)
		checkProblems(t, data, err)
	})
}

// checkProblems holds for whatever bytes: mistakes are in order, each in one line,
// and have a place in the document.
func checkProblems(t *testing.T, data []byte, err error) {
	t.Helper()
	var problems rules.Problems
	require.ErrorAs(t, err, &problems)
	require.NotEmpty(t, problems)
	breaks := strings.NewReplacer("\r\n", "\n", "\r", "\n", "\u0085", "\n", "\u2028", "\n", "\u2029", "\n")
	most := strings.Count(breaks.Replace(string(data)), "\n") + 1
	last := 0
	for _, p := range problems {
		assert.Equal(t, "fuzz", p.Document)
		assert.NotEmpty(t, p.Message)
		assert.NotContains(t, p.Error(), "\n")
		assert.GreaterOrEqual(t, p.Line, max(1, last))
		assert.LessOrEqual(t, p.Line, most)
		assert.GreaterOrEqual(t, p.Column, 1)
		last = p.Line
	}
}
