package documents_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// shown returns the line of the document and the one below it, which a report of
// its only mistake shows, without the message.
func shown(t *testing.T, document string) (line, caret string) {
	t.Helper()
	c := judge("x.yaml", document)
	require.Len(t, c.Problems, 1)
	var report strings.Builder
	c.Show(&report)
	lines := strings.Split(strings.TrimSuffix(report.String(), "\n"), "\n")
	require.Len(t, lines, 3, "%q", report.String())
	assert.Equal(t, strings.Index(lines[1], " | "), strings.Index(lines[2], " | "))
	_, line, _ = strings.Cut(lines[1], " | ")
	_, caret, _ = strings.Cut(lines[2], " | ")
	return line, caret
}

func TestShowPutsTheCaretBelowTheColumn(t *testing.T) {
	for name, test := range map[string]struct{ document, line, caret string }{
		"plain":          {"flow:\n  - resource: a\n    limit: -1\n", "    limit: -1", "           ^"},
		"tabs":           {"{\"flow\":\t[{\"resource\":\t\"a\", \"limit\": -1}]}", "{\"flow\":\t[{\"resource\":\t\"a\", \"limit\": -1}]}", "        \t             \t              ^"},
		"wide":           {"flow: [{resource: 日本, limit: -1}]", "flow: [{resource: 日本, limit: -1}]", "                               ^"},
		"combining":      {"flow: [{resource: e\u0301, limit: -1}]", "flow: [{resource: e\u0301, limit: -1}]", "                            ^"},
		"emoji":          {"flow: [{resource: 🚰, limit: -1}]", "flow: [{resource: 🚰, limit: -1}]", "                             ^"},
		"CRLF":           {"flow:\r\n- resource: a\r\n  limit: -1\r\n", "  limit: -1", "         ^"},
		"CR":             {"flow:\r- resource: a\r  limit: -1\r", "  limit: -1", "         ^"},
		"mark of order":  {"\ufeffflow: [{resource: a, limit: -1}]", "flow: [{resource: a, limit: -1}]", "                            ^"},
		"empty":          {"", "", "^"},
		"a control code": {"flow: [] # \x1b[2J", "flow: [] # \ufffd[2J", "           ^"},
	} {
		t.Run(name, func(t *testing.T) {
			line, caret := shown(t, test.document)
			assert.Equal(t, test.line, line)
			assert.Equal(t, test.caret, caret)
		})
	}
}

func TestShowShortensLongLinesAroundTheColumn(t *testing.T) {
	names := strings.Repeat("x", 300)
	for _, document := range []string{
		"flow: [{limit: -1, resource: a, name: " + names + "}]",
		"flow: [{name: " + names + ", limit: -1, resource: a}]",
		"flow: [{name: " + names + ", limit: -1, resource: " + names + "}]",
	} {
		line, caret := shown(t, document)
		at := len([]rune(caret)) - 1
		assert.Equal(t, "-1", string([]rune(line)[at:at+2]), "%s\n%s", line, caret)
		assert.LessOrEqual(t, len([]rune(line)), 122)
		assert.Contains(t, line, "…")
	}
}
