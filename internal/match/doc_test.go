package match_test

import (
	"go/doc/comment"
	"go/parser"
	"go/token"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// gofmt makes a list of an indented block that begins with a star, and takes the star out.
func TestDocumentationShowsEveryElementOfAGlob(t *testing.T) {
	t.Parallel()
	file, err := parser.ParseFile(token.NewFileSet(), "doc.go", nil, parser.ParseComments)
	require.NoError(t, err)
	var shown []string
	for _, block := range new(comment.Parser).Parse(file.Doc.Text()).Content {
		if code, ok := block.(*comment.Code); ok {
			for line := range strings.Lines(code.Text) {
				shown = append(shown, strings.Fields(line)[0])
			}
		}
	}
	assert.Equal(t, []string{"pattern", "*", "?", "[abc]", "[a-z]", "[!a-z]", `\*`}, shown)
}
