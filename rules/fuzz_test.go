package rules_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/rules"
)

func FuzzParseYAML(f *testing.F) {
	addCorpus(f)
	for _, seed := range []string{
		everyField,
		"# a\nflow: # b\n# c\n- # d\n  # e\n  resource: a # f\n  # g\n\n  # h\n  limit: 1\n# i\n\n# j\n",
		"", "\ufeff# nothing\r\n", "flow: []", "flow:\r- {resource: a, limit: 1}\r", "---\nflow:\n-\n...\n",
		"flow:\n- &a {resource: a, limit: 1}\n- <<: *a\n- *a\n",
		"flow: !!seq\n- resource: |\n    a\n  limit: 0x1\n  warmUp: {period: 1s}\n",
		"? [flow]\n: \"\\u2028\"\n", "%YAML 1.2\n%TAG ! a\n---\n{flow: [}", "flow:\n\t- a: 'b\n",
		"flow:\n- {match: 'a[!b-d]\\\\*?', limit: 1, perResource: false}\n- {match: ~^(a|b)\\.c{2}$, limit: 1, origin: other, shadow: true}\n",
		"flow:\n- {match: ~, limit: 1, algorithm: fixedWindow, related: b}\n- {match: '~[a', limit: 1}\n- {match: *, limit: 1}\n",
		"flow:\n- {resource: a, limit: 0.1, algorithm: tokenBucket, burst: 3, overdraft: true, warmUp: {period: 5s}}\n",
		"flow:\n- {resource: a, limit: .inf, window: 1, buckets: 1e99, strict: yes, naem: ~}\n- {name: a, resource: b, limit: 1, name: c}",
		"adaptive:\n- {inbound: true, maxDelay: 50ms, minLimit: 3, maxLimit: 9, initialLimit: 4, fairBy: user}\n- {name: b, strategy: threshold, cpu: 0.5}\n",
		"adaptive:\n- {match: a*, perResource: false, strategy: threshold, cpu: 1, load: 2, memory: .9, schedulerDelay: 1ms, concurrency: 5, qps: 1, avgRT: 1s}\n",
		"fault:\n- {resource: a, percent: 0.5, delay: 20ms, abort: {http: 503, grpc: UNAVAILABLE}, until: 2030-06-01T00:00:00+02:00}\n- {match: '*', abort: 1}\n",
		"flow:\n- {resource: a, limit: 9, follow: {signal: memory, from: 0.7, to: .9, least: 2}}\n- {resource: b, limit: 9, follow: {to: -1}}\n",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(checkParse)
}

func FuzzParseJSON(f *testing.F) {
	addCorpus(f)
	for _, seed := range []string{
		everyFieldJSON,
		"{}", `{"flow": []}`, "{\"flow\"\t:\r\n [ ] }", `{"flow": [{"resource": "\ud83d\ude00", "limit": 1E+2}]}`,
		`{"flow": [{"resource": "\ud800", "limit": -0, "limit": 1}, null, {}, [1, "a"], true]}`,
		"{\"flow\" \r\n", `{"flow": [{"resource": "a", "limit": 1,}]}`, `{"flow": []} {}`, `{"flow": [[[[[[[[[[[[`, `{"flow": {"a": {"b": [1e999]}}}`,
		`{"flow": [{"match": "\u007e\\d+", "limit": 1, "perResource": true, "origin": "日本", "related": "b", "shadow": false}]}`,
		`{"flow": [{"match": "a[\\]b]", "limit": 1, "algorithm": "tokenBucket", "burst": 1e9, "overdraft": true}]}`,
		`{"flow": [{"resource": "日本", "limit": 1, "window": "1h0m0.5s", "warmUp": {"period": "1s"}}]}`,
		`{"adaptive": [{"inbound": true}, {"resource": "a", "strategy": "latency", "minLimit": 2}, {"name": "t", "strategy": "threshold", "qps": 1e9}]}`,
		`{"fault": [{"resource": "a", "percent": 100, "delay": "1ms", "until": "2030-06-01T00:00:00Z"}, {"resource": "b", "abort": {"http": 500}}]}`,
		`{"flow": [{"resource": "a", "limit": 9, "follow": {"signal": "cpu", "to": 1, "least": 0.5}}]}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(checkParse)
}

func addCorpus(f *testing.F) {
	for _, cases := range corpus(f) {
		for _, c := range cases {
			f.Add([]byte(c.document))
		}
	}
}

// checkParse holds for whatever bytes: there is either a sound set that can be
// written and read back, or problems that stand in the document.
func checkParse(t *testing.T, data []byte) {
	set, err := rules.Parse("fuzz", data)
	if err != nil {
		assert.Equal(t, rules.Set{}, set)
		checkProblems(t, data, err)
		return
	}
	require.NoError(t, set.Validate())
	document, err := set.YAML()
	require.NoError(t, err)
	back, err := rules.Parse("again", document)
	require.NoError(t, err, "%s", document)
	require.Len(t, back.Flow, len(set.Flow))
	for i, rule := range set.Flow {
		assert.Equal(t, rule, back.Flow[i])
		at, ok := set.Position(rules.KindFlow, rule.Name)
		assert.True(t, ok)
		assert.True(t, stands(data, at.Line, at.Column), "%v", at)
	}
}

func checkProblems(t *testing.T, data []byte, err error) {
	var problems rules.Problems
	require.ErrorAs(t, err, &problems)
	require.NotEmpty(t, problems)
	for _, p := range problems {
		assert.Equal(t, "fuzz", p.Document)
		assert.NotEmpty(t, p.Message)
		assert.NotContains(t, p.Error(), "\n")
		assert.True(t, len(data) > rules.MaxDocumentSize || stands(data, p.Line, p.Column), "%v", p)
	}
}

// stands tells whether a document has the line and the column, be it the one
// behind the end of the line.
func stands(data []byte, line, column int) bool {
	text := strings.TrimPrefix(string(data), "\ufeff")
	text = strings.ReplaceAll(strings.ReplaceAll(text, "\r\n", "\n"), "\r", "\n")
	lines := strings.Split(text, "\n")
	return line >= 1 && line <= len(lines) && column >= 1 && column <= len([]rune(lines[line-1]))+1
}
