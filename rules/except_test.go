package rules_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/rules"
)

func TestExceptionsSurviveWriting(t *testing.T) {
	for _, written := range []string{"health", "[health, 'GET:/static/*', '~^v[0-9]$']"} {
		set, err := rules.Parse("d", []byte("flow: [{match: '*', limit: 1, except: "+written+"}]"))
		require.NoError(t, err)
		yaml, err := set.YAML()
		require.NoError(t, err)
		again, err := rules.Parse("d", yaml)
		require.NoError(t, err)
		assert.Equal(t, set.Flow, again.Flow)
		assert.Positive(t, again.Flow[0].Except.Len())
	}
}

func TestUnsoundExceptions(t *testing.T) {
	many := "[" + strings.Repeat("a, ", 100) + "a]"
	for rule, want := range map[string]string{
		"resource: a, except: b":       "except has no effect without match: remove it",
		"match: 'a*', except: '['":     `except has an entry that is "[", character 1: the class is not closed`,
		"match: 'a*', except: '~('":    "except has an entry that is",
		"match: 'a*', except: [b, '']": `except has an entry 2 that is "": write something`,
		"match: 'a*', except: []":      "except is an empty list: name what the rule is not for, or remove the field",
		"match: 'a*', except: 7":       `except is 7: must be text; put it in quotes, "7"`,
		"match: 'a*', except: 'a*'":    `except has the entry "a*", which leaves nothing that the rule is for`,
		"match: 'a*', except: [b,'*']": `except has the entry "*", which leaves nothing that the rule is for`,
		"match: 'a*', except: " + many: "except has 101 entries: the most is 100",
		"match: 'a*', except: \"\\n\"": "it has a character U+000A",
	} {
		for kind, rest := range map[string]string{
			"flow": "limit: 1", "isolation": "limit: 1", "breaker": "threshold: 1", "hotParam": "param: user, limit: 1", "access": "deny: a, attribute: b",
			"adaptive": "strategy: gradient", "fault": "percent: 1, delay: 1s, until: 2030-01-01T00:00:00Z",
		} {
			_, err := rules.Parse("d", fmt.Appendf(nil, "%s: [{%s, %s}]", kind, rule, rest))
			require.ErrorContains(t, err, want, kind)
		}
	}
}
