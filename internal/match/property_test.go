package match_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/penstock-go/penstock/internal/match"
)

// element is one element of a glob, for a matcher that tries every way.
type element struct {
	text    string
	any     bool // a *
	matches func(r rune) bool
}

func literal(text string, want rune) element {
	return element{text: text, matches: func(r rune) bool { return r == want }}
}

func elements() *rapid.Generator[[]element] {
	oneOf := func(text, members string, negated bool) element {
		return element{text: text, matches: func(r rune) bool { return strings.ContainsRune(members, r) != negated }}
	}
	return rapid.SliceOfN(rapid.SampledFrom([]element{
		{text: "*", any: true},
		{text: "*", any: true},
		{text: "?", matches: func(rune) bool { return true }},
		literal("a", 'a'), literal("b", 'b'), literal(":", ':'), literal(".", '.'), literal(`\*`, '*'), literal(`\a`, 'a'),
		oneOf("[ab]", "ab", false), oneOf("[!ab]", "ab", true), oneOf("[a-c:]", "abc:", false),
	}), 1, 8)
}

func tryAll(pattern []element, name []rune) bool {
	if len(pattern) == 0 {
		return len(name) == 0
	}
	if pattern[0].any {
		return tryAll(pattern[1:], name) || len(name) > 0 && tryAll(pattern, name[1:])
	}
	return len(name) > 0 && pattern[0].matches(name[0]) && tryAll(pattern[1:], name[1:])
}

func TestGlobMatchesLikeItsModel(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		pattern := elements().Draw(t, "pattern")
		var text strings.Builder
		for _, e := range pattern {
			text.WriteString(e.text)
		}
		p, err := match.Compile(text.String())
		require.NoError(t, err)
		for range 20 {
			name := rapid.SliceOfN(rapid.SampledFrom([]rune("aabbc:.*é\n")), 0, 8).Draw(t, "name")
			assert.Equal(t, tryAll(pattern, name), p.Matches(string(name)), "%s on %q", text.String(), string(name))
		}
	})
}

// A name that is written with a backslash before each character means itself.
func TestEscapedNamesMatchThemselvesAlone(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		name := rapid.StringN(1, 50, 200).Draw(t, "name")
		var escaped strings.Builder
		for _, r := range name {
			escaped.WriteString(`\` + string(r))
		}
		p, err := match.Compile(escaped.String())
		require.NoError(t, err)
		assert.True(t, p.Matches(name))
		assert.False(t, p.Matches(name+"x"))
		assert.False(t, p.Matches(name[1:]))
	})
}
