package match_test

import (
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/match"
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
