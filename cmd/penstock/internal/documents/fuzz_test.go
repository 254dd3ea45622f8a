package documents_test

import (
	"strings"
	"testing"
	"unicode"

	"github.com/stretchr/testify/assert"

	"github.com/penstock-go/penstock/cmd/penstock/internal/documents"
	"github.com/penstock-go/penstock/rules"
)

// The mistakes of any document can be shown: each with its message,
// and without control characters for the terminal.
func FuzzShow(f *testing.F) {
	for _, seed := range []string{
		"flow: [{resource: 日本, limit: -1}]", "flow:\r\n\t- a\r", "\ufeff", "flow: [\x1b[2J", "{\"flow\":\t[{}]}", "a\u202eb: \xff",
		"flow: [{limit: -1, resource: " + strings.Repeat("x", 300) + "}]",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		c := documents.Judge(rules.NewTable(), []documents.Document{{Name: "fuzz.yaml", Data: data}}, documents.Mistakes)
		var shown strings.Builder
		c.Show(&shown)
		assert.Equal(t, len(c.Problems), strings.Count("\n"+shown.String(), "\nfuzz.yaml:"))
		for _, r := range shown.String() {
			assert.True(t, r == '\n' || r == '\t' || !unicode.IsControl(r), "%q", r)
		}
	})
}
