package report

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func ExampleTable() {
	table := &Table{Title: "Speed:", Head: []string{"", "ns"}}
	table.Add("penstock", "98 ±2%")
	table.Add("x", "–")
	fmt.Print(table)
	// Output:
	// Speed:
	//
	// |          |     ns |
	// |:---------|-------:|
	// | penstock | 98 ±2% |
	// | x        |      – |
}

func TestPublishReplacesOneSection(t *testing.T) {
	document := filepath.Join(t.TempDir(), "doc.md")
	const frame = "before\n<!-- bench:a -->\nold\n<!-- /bench:a -->\nbetween\n<!-- bench:b -->\nkept\n<!-- /bench:b -->\n"
	require.NoError(t, os.WriteFile(document, []byte(frame), 0o600))
	table := &Table{Head: []string{"x"}, Rows: [][]string{{"1"}}}

	for range 2 { // the second time changes nothing
		require.NoError(t, Check(document, "a"))
		require.NoError(t, Publish(document, "a", "Measured somewhere.", table))
		got, err := os.ReadFile(document)
		require.NoError(t, err)
		assert.Equal(t, "before\n<!-- bench:a -->\n\nMeasured somewhere.\n\n| x   |\n|:----|\n| 1   |\n\n<!-- /bench:a -->\n"+
			"between\n<!-- bench:b -->\nkept\n<!-- /bench:b -->\n", string(got))
	}
}

func TestPublishNeedsMarkers(t *testing.T) {
	tests := map[string]string{
		"none":              "text\n",
		"no end":            "<!-- bench:a -->\n",
		"another section's": "<!-- bench:b -->\n<!-- /bench:b -->\n",
		"the wrong way":     "<!-- /bench:a -->\n<!-- bench:a -->\n",
	}
	for name, text := range tests {
		t.Run(name, func(t *testing.T) {
			document := filepath.Join(t.TempDir(), "doc.md")
			require.NoError(t, os.WriteFile(document, []byte(text), 0o600))
			require.ErrorContains(t, Check(document, "a"), "<!-- bench:a -->")
			require.ErrorContains(t, Publish(document, "a", ""), "<!-- bench:a -->")
			got, err := os.ReadFile(document)
			require.NoError(t, err)
			assert.Equal(t, text, string(got), "untouched")
		})
	}
}

func TestEnvironmentNamesTheCommandAndThePeers(t *testing.T) {
	t.Chdir("../..") // the folder of the module
	text := Environment("go test -bench=.")
	assert.Contains(t, text, "`go test -bench=.`")
	assert.Contains(t, text, "sentinel-golang v1.0.4")
	for _, name := range peers() {
		assert.Contains(t, text, name)
	}
}
