package match_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/internal/match"
)

func TestExpressionsThatAreLargeOnceWrittenOutAreRefused(t *testing.T) {
	for _, expression := range []string{
		"~" + strings.Repeat(".{1000}", 140),
		"~((a{100}){100})",
		"~(((((x{9}){9}){9}){9}){9}){9}",
		"~.{2,1000}.{2,1000}.{2,1000}",
	} {
		_, err := match.Compile(expression)
		require.Error(t, err, expression)
		assert.LessOrEqual(t, len(err.Error()), 250)
	}
	for _, expression := range []string{`~^[\p{L}\p{N}_-]{1,64}$`, "~" + strings.Repeat("a", 1000), "~a{1000}"} {
		_, err := match.Compile(expression)
		require.NoError(t, err)
	}
}

// Matching does not try one way after the other: it would never end here.
func TestMatchingTakesATimeInProportionToTheName(t *testing.T) {
	name := strings.Repeat("a", 20_000)
	for _, pattern := range []string{strings.Repeat("*a", 30) + "b", strings.Repeat("?*", 30) + "[!a]", "~^(a|a?)*b$", "~(a+)+(a+)+b"} {
		p, err := match.Compile(pattern)
		require.NoError(t, err)
		assert.False(t, p.Matches(name), pattern)
	}
}
