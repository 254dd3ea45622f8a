package match_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/internal/match"
)

func TestPatternsMatchWholeNames(t *testing.T) {
	t.Parallel()
	tests := map[string]struct{ yes, no []string }{
		"orders:create": {[]string{"orders:create"}, []string{"", "orders:creat", "orders:create2", "Orders:create", "xorders:create"}},
		"orders:*":      {[]string{"orders:", "orders:create", "orders:a/b:c d"}, []string{"orders", "order:create", "x:orders:create"}},
		"*":             {[]string{"", "a", "/a/b", "two\nlines", "\xff\xfe"}, nil},
		"*:create":      {[]string{":create", "orders:create", "a:create:create"}, []string{"create", "orders:create2"}},
		"a*b*c":         {[]string{"abc", "a-b-c", "abcbc", "aXbbYcc"}, []string{"ab", "acb", "abcd"}},
		"GET /users/?":  {[]string{"GET /users/1", "GET /users/é", "GET /users//", "GET /users/\xff"}, []string{"GET /users/", "GET /users/12"}},
		"v[12]":         {[]string{"v1", "v2"}, []string{"v", "v3", "v12", "v["}},
		"v[0-9a]x":      {[]string{"v0x", "v9x", "vax"}, []string{"vbx", "v-x", "vx"}},
		"v[!0-9]":       {[]string{"va", "v!", "v\n", "vé"}, []string{"v0", "v9", "v"}},
		"[a-]":          {[]string{"a", "-"}, []string{"b", ""}},
		"[-a]":          {[]string{"a", "-"}, []string{"b"}},
		`[\]\-\\\^]`:    {[]string{"]", "-", `\`, "^"}, []string{"[", "a", "_"}},
		"[а-я]?":        {[]string{"да", "яx"}, []string{"d", "да!"}},
		`\*\?\[a]\\`:    {[]string{`*?[a]\`}, []string{`x?[a]\`, `*?a\`}},
		`a\*b*`:         {[]string{"a*b", "a*bc"}, []string{"axb"}},
		"a.b+(c)*":      {[]string{"a.b+(c)", "a.b+(c)d"}, []string{"aXb+(c)", "a.bb(c)"}},
		"*.+$^{}|()":    {[]string{"x.+$^{}|()"}, []string{"x"}},
		"]":             {[]string{"]"}, []string{""}},
		"x~y":           {[]string{"x~y"}, []string{"xy"}},
		`\~x`:           {[]string{"~x"}, []string{"x"}},

		"~orders":     {[]string{"orders", "my orders:create"}, []string{"order", ""}},
		"~^orders":    {[]string{"orders", "orders:create"}, []string{"my orders"}},
		"~^orders:.$": {[]string{"orders:1", "orders:é"}, []string{"orders:", "orders:12"}},
		"~(?i)ORDERS": {[]string{"Orders"}, []string{"order"}},
		"~.*":         {[]string{"", "a", "\xff"}, nil},
		"~~":          {[]string{"a~b"}, []string{"ab"}},
	}
	for pattern, test := range tests {
		t.Run(pattern, func(t *testing.T) {
			t.Parallel()
			p, err := match.Compile(pattern)
			require.NoError(t, err)
			for _, name := range test.yes {
				assert.True(t, p.Matches(name), "%q", name)
			}
			for _, name := range test.no {
				assert.False(t, p.Matches(name), "%q", name)
			}
		})
	}
}

func TestCompileSaysWhatIsWrongWhereAndWhatToDo(t *testing.T) {
	t.Parallel()
	tests := map[string]string{
		"":                    `"" is empty: write * to match every name`,
		"v[12":                `"v[12", character 2: the class is not closed: end it with ], or write \[ for the character itself`,
		"é[":                  `"é[", character 2: the class is not closed: end it with ], or write \[ for the character itself`,
		"v[!":                 `"v[!", character 2: the class is not closed: end it with ], or write \[ for the character itself`,
		"v[a-":                `"v[a-", character 2: the class is not closed: end it with ], or write \[ for the character itself`,
		"v[]x":                `"v[]x", character 2: the class is empty: write characters before the ], or \] for the character itself`,
		"v[!]":                `"v[!]", character 2: the class is empty: write characters before the ], or \] for the character itself`,
		"v[^a]":               `"v[^a]", character 2: the class begins with ^: write [! for "none of", or \^ for the character itself`,
		"v[z-a]":              `"v[z-a]", character 2: the class has the range z-a, which is empty: put the lower character first`,
		`v\`:                  `"v\\", character 2: the \ has nothing after it: write \\ for the character itself`,
		`v[\`:                 `"v[\\", character 3: the \ has nothing after it`,
		"v\xff":               `"v\xff", character 2: is not UTF-8: write the text in UTF-8`,
		"é�\xffx":             "character 3: is not UTF-8",
		"~":                   `"~", character 1: no regular expression follows the ~: write ~.* to match every name`,
		"~a[b":                `"~a[b", character 3: is no regular expression, missing closing ]: correct the class`,
		"~a)":                 "unexpected ): balance the parentheses",
		"~(a":                 "missing closing ): balance the parentheses",
		"~*a":                 `"~*a", character 2: is no regular expression, missing argument to repetition operator: put what is repeated before it`,
		"~a{1001}":            "character 3: is no regular expression, invalid repeat count: write a simpler one",
		`~a\`:                 `trailing backslash at end of expression: write \\ for the character \`,
		"~(?P<n>a)(":          "missing closing )",
		"~a{900}b{900}c{900}": "is a regular expression of more than 2000 parts",
		"~(?z)":               "see https://pkg.go.dev/regexp/syntax",
	}
	for pattern, want := range tests {
		t.Run(pattern, func(t *testing.T) {
			t.Parallel()
			p, err := match.Compile(pattern)
			require.ErrorContains(t, err, want)
			var mistake *match.Error
			require.ErrorAs(t, err, &mistake)
			assert.Equal(t, pattern, mistake.Pattern)
			assert.Equal(t, "match: pattern "+mistake.Fault(), err.Error())
			assert.Zero(t, p)
		})
	}
}

func TestPatternsAreOfLimitedLength(t *testing.T) {
	t.Parallel()
	longest := strings.Repeat("?", match.MaxLength)
	p, err := match.Compile(longest)
	require.NoError(t, err)
	assert.True(t, p.Matches(longest))

	_, err = match.Compile(longest + "?")
	require.EqualError(t, err, `match: pattern "????????????????????????????????????????????????????????????…" has 1025 bytes: must have at most 1024`)
}

// What takes exponential or quadratic time when it is matched by trying does not
// here.
func TestMatchingIsQuickOnMismatch(t *testing.T) {
	t.Parallel()
	for _, pattern := range []string{strings.Repeat("a*", 500) + "b", "~(a+)+b", "*a*a*a*a*a*a*b"} {
		p, err := match.Compile(pattern)
		require.NoError(t, err)
		assert.False(t, p.Matches(strings.Repeat("a", 2000)))
	}
}

func TestPatternComparesThePrefixFirst(t *testing.T) {
	p, err := match.Compile("orders:*:[a-z]")
	require.NoError(t, err)
	assert.Zero(t, testing.AllocsPerRun(100, func() { p.Matches("payments:1:a") }))
}

func TestTextsThatMeanMoreThanThemselvesArePatterns(t *testing.T) {
	t.Parallel()
	for _, pattern := range []string{"*", "a?", "v[12]", `a\*`, `\~x`, "~orders", "~"} {
		assert.True(t, match.IsPattern(pattern), pattern)
	}
	for _, text := range []string{"", "orders:create", "x~y", "]", "a.b+(c)", "192.0.2.1", "é"} {
		assert.False(t, match.IsPattern(text), text)
		if compiled, err := match.Compile(text); err == nil {
			assert.True(t, compiled.Matches(text), text)
		}
	}
}
