package rules_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// corpus returns the documents of testdata/malformed by family. A file is one
// family: prose first, then cases of this form:
//
//	## what the mistake is
//	the document
//	#> line:column what is to be said, or the beginning of it
//
// with one line "#>" for each mistake, in order.
func corpus(t testing.TB) map[string][]mistake {
	t.Helper()
	files, err := filepath.Glob("testdata/malformed/*.txt")
	require.NoError(t, err)
	families := make(map[string][]mistake)
	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		family := strings.TrimSuffix(filepath.Base(file), ".txt")
		_, cases, _ := strings.Cut(string(text), "\n## ")
		for c := range strings.SplitSeq(cases, "\n## ") {
			families[family] = append(families[family], parseCase(t, family, c))
		}
	}
	return families
}

func parseCase(t testing.TB, family, text string) mistake {
	t.Helper()
	name, rest, _ := strings.Cut(text, "\n")
	document, expectations, found := strings.Cut(rest, "#> ")
	require.True(t, found, "%s: %s expects nothing", family, name)
	if family == "encoding" {
		document = strings.NewReplacer(
			`\t`, "\t", `\r`, "\r", `\0`, "\x00", `\e`, "\x1b", `\ufeff`, "\ufeff",
			`\u0085`, "\u0085", `\u00a0`, "\u00a0", `\u2028`, "\u2028", `\xff`, "\xff",
		).Replace(document)
	}
	return mistake{name, document, strings.Split(strings.TrimRight(expectations, "\n"), "\n#> ")}
}

func TestParseTellsMalformedDocuments(t *testing.T) {
	count := 0
	for family, cases := range corpus(t) {
		t.Run(family, func(t *testing.T) {
			for _, c := range cases {
				c.run(t)
			}
		})
		count += len(cases)
	}
	require.Greater(t, count, 200, "the documents were not found")
}
