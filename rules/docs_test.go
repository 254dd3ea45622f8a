package rules_test

import (
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/rules"
)

// manual is what users read of rule documents.
func manual(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("../docs/rules.md")
	require.NoError(t, err)
	return string(text)
}

func TestTheExamplesOfTheManualAreSound(t *testing.T) {
	examples := regexp.MustCompile("(?s)```yaml\n(.*?)```").FindAllStringSubmatch(manual(t), -1)
	require.NotEmpty(t, examples)
	for i, example := range examples {
		set, err := rules.Parse(fmt.Sprintf("example %d", i+1), []byte(example[1]))
		require.NoError(t, err)
		assert.Positive(t, set.Len())
	}
}

func TestTheManualHasEveryField(t *testing.T) {
	_, err := rules.Parse("", []byte("flow: [{resource: a, limit: 1, warmUp: {period: 1s, unheard: 1}, unheard: 1}]"))
	lists := regexp.MustCompile("the fields here are (.*)").FindAllStringSubmatch(fmt.Sprint(err), -1)
	require.Len(t, lists, 2)
	text := manual(t)
	for i, prefix := range []string{"warmUp.", ""} {
		for field := range strings.SplitSeq(lists[i][1], ", ") {
			assert.Contains(t, text, "\n| `"+prefix+field)
		}
	}
}
