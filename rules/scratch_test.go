package rules

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

func TestScratch(t *testing.T) {
	for _, d := range []string{
		"flow:\n  - name: create\n    resource: orders:create\n    limit: -3\n    limt: 5\n    window: 10\n    buckets: 7\n",
		"flow:\n- {}\n-\n- 5\n- &a {resource: x, limit: 1e3, warmUp: {perid: 3s}}\n- *a\n- <<: *a\n  resource: !!str y\n  limit: 010\n",
		"flow:\n- resource: a\n  limit: 1\n- resource: a\n  limit: 1\n",
		"flow: [\n", "flow:\n\t- a", "flow:\n- a: 'x\n\n\n", "a: b: c\n", "---\nflow: []\n---\nflow: []\n", "", "# x\n", "null", "{}", "flow:", "[]", "5",
		"{\"flow\": [}", "{flow: [}", "{\"flow\": [{\"resource\": \"a\", \"limit\": \"5\",\n \"strict\":\"true\", \"buckets\":0, \"window\":null}]}",
		strings.Repeat("[", 40), "{\"a\":" + strings.Repeat("[", 40) + strings.Repeat("]", 40) + "}",
		"x\x00y", "flow: \xff", "flow: *a", "? [a]\n: b\n", "flow: []\n: x\n", "flow: []\n... \n# x\n", "%YAML 1.1\n---\nflow: []\n", "flow:\n- resource: a\n  limit: 1\n  warmUp: {}\n",
		"flow:\n- resource: a\n  limit: 1\n  warmUp: {coldFactor: 4}\n  \"warmUp.period\": 3s\n", "!foo\nflow: []",
		"flow:\n" + strings.Repeat(" ", 1) + "- " + strings.Repeat("- ", 50) + "a",
	} {
		s, err := Parse("d.yaml", []byte(d))
		fmt.Printf("--- %q\n%v\n%v\n", d, s.Flow, err)
		if err == nil {
			b, err := s.YAML()
			fmt.Println(string(b), err)
		}
	}
	for name, d := range map[string]string{
		"comments": strings.Repeat("# a\n", 250000),
		"comments2": "flow:\n" + strings.Repeat(" # a\n", 200000) + "- a: 1",
		"nest": strings.Repeat("[{", 200000),
		"dash": strings.Repeat("- ", 500000),
		"q": strings.Repeat("? ", 500000),
		"quote": strings.Repeat("\"", 1000000),
		"commas": "flow: [" + strings.Repeat("a,", 500000) + "]",
		"json commas": "{\"flow\": [" + strings.Repeat("1,", 500000) + "1]}",
		"keys": "{" + strings.Repeat("a: 1,", 200000) + "}",
		"keysplain": strings.Repeat("a: 1\n", 200000),
		"colon": strings.Repeat(":", 1000000),
		"colons": strings.Repeat(": ", 500000),
		"anchor": strings.Repeat("&a ", 300000),
		"anchors": "flow: [" + strings.Repeat("&a a,", 200000) + "]",
		"tagdir": strings.Repeat("%TAG !a! b\n", 90000) + "---\na",
		"bang": strings.Repeat("!", 1000000),
		"longkey": strings.Repeat("a", 1000000) + ": 1",
		"flowkeys": "[" + strings.Repeat("a ", 500000) + "]",
		"indent": func() string { var b strings.Builder; for i := range 1000 { b.WriteString(strings.Repeat(" ", i) + "a:\n") }; return b.String() }(),
		"emptylines": "flow: '" + strings.Repeat("\n", 1000000) + "'",
		"literal": "flow: |\n" + strings.Repeat("  a\n", 250000),
		"directive": strings.Repeat("%YAML 1.1\n", 90000),
		"docs": strings.Repeat("---\n", 250000),
		"head comments list": "flow:\n" + strings.Repeat("- a # c\n", 120000),
		"head comments list2": "flow:\n" + strings.Repeat("# c\n- a\n", 120000),
		"rules same": "flow:\n" + strings.Repeat("- {resource: a, limit: 1}\n", 38000),
	} {
		start := time.Now()
		_, err := Parse("d", []byte(d))
		msg := ""
		if err != nil { msg = err.Error() }
		fmt.Println(name, len(d), time.Since(start), len(msg), msg[:min(150, len(msg))])
	}
}
