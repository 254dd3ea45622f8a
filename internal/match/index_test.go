package match_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/penstock-go/penstock/internal/match"
)

func compileAll(t require.TestingT, patterns ...string) (compiled []match.Pattern) {
	for _, pattern := range patterns {
		p, err := match.Compile(pattern)
		require.NoError(t, err, pattern)
		compiled = append(compiled, p)
	}
	return compiled
}

// matchingEach is what an index should find: what each pattern says by itself.
func matchingEach(patterns []match.Pattern, name string) []int {
	places := []int{}
	for i, p := range patterns {
		if p.Matches(name) {
			places = append(places, i)
		}
	}
	return places
}

func TestIndexFindsThePatternsThatMatch(t *testing.T) {
	t.Parallel()
	patterns := []string{
		"orders:*", "orders:create", "*", "*:create", "orders:*:v[12]", "o*", "~^orders:(get|create)$", "~create", "~(?i)CREATE",
		"~(ab)+x{2,3}|y", "?rders:*", "orders:create", "", "é*ü", "~a\ufffdb", "*\ufffd", "[o]rders*", `\*x`, "~^$", "~(a|b)c*d+e{0,1}f{1,2}",
	}
	patterns = slices.DeleteFunc(patterns, func(p string) bool { return p == "" })
	compiled := compileAll(t, patterns...)
	index := match.NewIndex(compiled)
	for _, name := range []string{
		"", "orders:create", "orders:get", "orders:x:v1", "my orders:CREATE", "o", "ababxx", "y", "é-ü", "\xff", "a\xffb", "a\ufffdb", "x\ufffd",
		"*x", "cdf", "acdddf", "bdeff", "orders:creat", "orders:create2",
	} {
		want := matchingEach(compiled, name)
		assert.Equal(t, want, index.Append([]int{}, name), "%q", name)
		assert.Equal(t, append([]int{7}, want...), index.Append([]int{7}, name), "what is there stays")
	}
	assert.Empty(t, match.NewIndex(nil).Append(nil, "orders"))
	assert.Empty(t, new(match.Index).Append(nil, ""))
}

// A differential test: texts share beginnings and words, so that the trees branch.
func TestIndexFindsWhatEachPatternFindsByItself(t *testing.T) {
	t.Parallel()
	pieces := []string{
		"a", "b", "ab", "aba", "abab", ":", "*", "*", "?", "[ab]", "[!a]", `\*`, "é", "\ufffd", "(a|b)", "a+", "(ab)*", "(?i:AB)", "^", "$", "a{0,2}", ".",
	}
	parts := []string{"a", "b", "ab", "aba", ":", "*", "é", "\ufffd", "\xff", "A", "B", "\n"}
	rapid.Check(t, func(t *rapid.T) {
		var compiled []match.Pattern
		for range rapid.IntRange(0, 12).Draw(t, "patterns") {
			text := strings.Join(rapid.SliceOfN(rapid.SampledFrom(pieces), 1, 6).Draw(t, "pattern"), "")
			if rapid.Bool().Draw(t, "expression") {
				text = "~" + text
			}
			if p, err := match.Compile(text); err == nil {
				compiled = append(compiled, p)
			}
		}
		index := match.NewIndex(compiled)
		for range 10 {
			name := strings.Join(rapid.SliceOfN(rapid.SampledFrom(parts), 0, 8).Draw(t, "name"), "")
			require.Equal(t, matchingEach(compiled, name), index.Append([]int{}, name), "%q", name)
		}
	})
}

func FuzzIndexFindsWhatEachPatternFindsByItself(f *testing.F) {
	f.Add("orders:*\n*:create\n~^o(r|x)+d", "orders:create")
	f.Add("a*b\nab*\n~a{2}b", "aab\xff")
	f.Add("~a\ufffd\n*\ufffd*", "a\xff")
	f.Fuzz(func(t *testing.T, patterns, name string) {
		var compiled []match.Pattern
		for line := range strings.SplitSeq(patterns, "\n") {
			if p, err := match.Compile(line); err == nil {
				compiled = append(compiled, p)
			}
		}
		require.Equal(t, matchingEach(compiled, name), match.NewIndex(compiled).Append([]int{}, name), "%q on %q", patterns, name)
	})
}

// A name in which the texts of all patterns are again and again costs no more than
// its length and the patterns.
func TestIndexLooksAtEachPatternOnce(t *testing.T) {
	t.Parallel()
	var patterns []string
	for i := range 300 {
		patterns = append(patterns, strings.Repeat("*a", 1+i%3)+"*")
	}
	index := match.NewIndex(compileAll(t, patterns...))
	places := make([]int, 0, len(patterns))
	name := strings.Repeat("a", 1000)
	found := index.Append(places, name)
	assert.Len(t, found, len(patterns))
	assert.Equal(t, cap(places), cap(found), "none was noted twice on the way")
}

func BenchmarkIndex(b *testing.B) {
	for _, kind := range []string{"svc-%d:*", "*:x%d*y", "svc-%d:*:create", "~^svc-%d:(get|list)$", "*-%d"} {
		for _, count := range []int{1, 100, 10_000} {
			b.Run(fmt.Sprint(kind, " ", count), func(b *testing.B) {
				var patterns []string
				for i := range count {
					patterns = append(patterns, fmt.Sprintf(kind, i))
				}
				index := match.NewIndex(compileAll(b, patterns...))
				b.ReportAllocs()
				var places []int
				for b.Loop() {
					places = index.Append(places[:0], "svc-7:GET /things/12/x99:create")
				}
			})
		}
	}
}
