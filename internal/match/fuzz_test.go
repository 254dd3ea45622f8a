package match_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/internal/match"
)

func FuzzCompile(f *testing.F) {
	for _, pattern := range []string{"orders:*", "a?[b-d]", `\`, "[", "[!", "~(a|b)*$", "~[", "\xff", `[\]-a]`} {
		f.Add(pattern, "orders:create")
	}
	f.Fuzz(func(t *testing.T, pattern, name string) {
		p, err := match.Compile(pattern)
		p.Matches(name)
		if err == nil {
			return
		}
		var mistake *match.Error
		require.ErrorAs(t, err, &mistake)
		assert.NotEmpty(t, mistake.Message)
		assert.LessOrEqual(t, mistake.Position, utf8.RuneCountInString(pattern)+1)
		assert.True(t, utf8.ValidString(err.Error()))
	})
}

// A glob means what it says in the package's documentation, read once more.
func FuzzGlobMatchesLikeItsDocumentation(f *testing.F) {
	for pattern, name := range map[string]string{
		"orders:*": "orders:create", "a?[b-d]*e": "aéceee", `\*[!\]-a]`: "*b", "[a-]**?": "-é", "*.*": "a.b\n", "x[é-ü]": "xö", "": "", "?*": "\xff",
	} {
		f.Add(pattern, name)
	}
	f.Fuzz(func(t *testing.T, pattern, name string) {
		if strings.HasPrefix(pattern, "~") || !utf8.ValidString(pattern) || len(pattern) > match.MaxLength {
			return
		}
		if strings.ContainsRune(pattern, utf8.RuneError) && !utf8.ValidString(name) {
			return // a byte that is no UTF-8 is a character, but not that one
		}
		parts, sound := readGlob([]rune(pattern))
		p, err := match.Compile(pattern)
		require.Equal(t, sound && pattern != "", err == nil, "%q: %v", pattern, err)
		if err == nil {
			require.Equal(t, matchesGlob(parts, []rune(name)), p.Matches(name), "%q on %q", pattern, name)
		}
	})
}

// part is a part of a glob: any run of characters, or one character of a kind.
type part struct {
	any    bool
	others bool      // one that is in none of the ranges
	ranges [][2]rune // first and last
}

// readGlob returns the parts of a glob, false if there is a mistake in it.
func readGlob(glob []rune) (parts []part, sound bool) {
	for len(glob) > 0 {
		r := glob[0]
		glob = glob[1:]
		switch r {
		case '*':
			parts = append(parts, part{any: true})
		case '?':
			parts = append(parts, part{others: true})
		case '[':
			p, rest, ok := readClass(glob)
			if !ok {
				return nil, false
			}
			parts, glob = append(parts, p), rest
		case '\\':
			if len(glob) == 0 {
				return nil, false
			}
			parts, glob = append(parts, part{ranges: [][2]rune{{glob[0], glob[0]}}}), glob[1:]
		default:
			parts = append(parts, part{ranges: [][2]rune{{r, r}}})
		}
	}
	return parts, true
}

// readClass returns a class, which begins after its bracket, and what follows it.
func readClass(glob []rune) (p part, rest []rune, ok bool) {
	if len(glob) > 0 && glob[0] == '^' {
		return part{}, nil, false
	}
	if len(glob) > 0 && glob[0] == '!' {
		p.others, glob = true, glob[1:]
	}
	for len(glob) > 0 && glob[0] != ']' {
		var first, last rune
		if first, glob, ok = readCharacter(glob); !ok {
			return part{}, nil, false
		}
		last = first
		if len(glob) > 1 && glob[0] == '-' && glob[1] != ']' {
			if last, glob, ok = readCharacter(glob[1:]); !ok || last < first {
				return part{}, nil, false
			}
		}
		p.ranges = append(p.ranges, [2]rune{first, last})
	}
	if len(glob) == 0 || len(p.ranges) == 0 {
		return part{}, nil, false
	}
	return p, glob[1:], true
}

func readCharacter(glob []rune) (r rune, rest []rune, ok bool) {
	if glob[0] != '\\' {
		return glob[0], glob[1:], true
	}
	if len(glob) == 1 {
		return 0, nil, false
	}
	return glob[1], glob[2:], true
}

// matchesGlob holds every beginning of the glob against every beginning of the name.
func matchesGlob(parts []part, name []rune) bool {
	matches := make([]bool, len(name)+1) // the parts so far, so many characters
	matches[0] = true
	for _, p := range parts {
		next := make([]bool, len(name)+1)
		next[0] = p.any && matches[0]
		for i, r := range name {
			next[i+1] = p.any && (matches[i+1] || next[i]) || !p.any && matches[i] && p.means(r)
		}
		matches = next
	}
	return matches[len(name)]
}

func (p part) means(r rune) bool {
	for _, of := range p.ranges {
		if of[0] <= r && r <= of[1] {
			return !p.others
		}
	}
	return p.others
}
