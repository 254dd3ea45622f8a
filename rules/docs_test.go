package rules_test

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/rules"
)

const manual = "../docs/rules.md"

func readText(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	return string(text)
}

func TestExamplesOfTheManualAreSound(t *testing.T) {
	t.Parallel()
	for _, page := range []string{manual, "../README.md", "../docs/http.md"} {
		examples := regexp.MustCompile("(?s)```yaml\n(.*?)```").FindAllStringSubmatch(readText(t, page), -1)
		require.NotEmpty(t, examples, page)
		for _, example := range examples {
			set, err := rules.Parse(page, []byte(example[1]))
			require.NoError(t, err, example[1])
			assert.Positive(t, set.Len())
		}
	}
}

// Each kind has a section in the manual with a row for each of its fields, and for no
// others. Those of every kind have a section of their own.
func TestManualHasEveryField(t *testing.T) {
	t.Parallel()
	sections := map[string][]string{} // the fields, by the first word of the heading
	for _, section := range strings.Split(readText(t, manual), "\n## ")[1:] {
		heading := strings.FieldsFunc(strings.ToLower(section), func(r rune) bool { return r == ' ' || r == ':' || r == '\n' })[0]
		for _, row := range regexp.MustCompile("(?m)^\\| `([\\w.]+)`").FindAllStringSubmatch(section, -1) {
			sections[heading] = append(sections[heading], row[1])
		}
	}
	common := sections["fields"]
	require.NotEmpty(t, common)
	for _, kind := range rules.NewTable().Definitions() {
		var fields []string
		for _, field := range kind.Fields() {
			fields = append(fields, field.Path)
		}
		assert.ElementsMatch(t, fields, append(sections[strings.ToLower(string(kind.Kind()))], common...), kind.Kind())
	}
}
