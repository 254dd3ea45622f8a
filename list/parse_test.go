package list_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/list"
)

func TestEntriesStandOneALine(t *testing.T) {
	for name, text := range map[string]string{
		"plain":                     "10.0.0.0/8\n192.0.2.1\n2001:db8::/32\n",
		"without a last line end":   "10.0.0.0/8\n192.0.2.1\n2001:db8::/32",
		"Windows":                   "\ufeff10.0.0.0/8\r\n192.0.2.1\r\n2001:db8::/32\r\n",
		"white space and comments":  "# networks\n\n  10.0.0.0/8 # all of it\n\t192.0.2.1\t#one#\n#2001:db9::/32\n \n2001:db8::/32 #\n",
		"other spellings":           "::ffff:10.0.0.0/104\n::ffff:c000:201\n2001:0DB8:0::0/32\n",
		"repeated and nested":       "10.0.0.0/8\n192.0.2.1/32\n2001:db8::/32\n10.0.0.0/8\n10.1.0.0/16\n2001:db8:1::/48\n",
		"addresses and quoted text": "10.0.0.0/8\n\"10.0.0.0/7\"\n192.0.2.1\n2001:db8::/32\n",
	} {
		t.Run(name, func(t *testing.T) {
			l := parse(t, text)
			assert.True(t, l.HasAddrs())
			for _, in := range []string{"10.0.0.0", "10.255.255.255", "::ffff:10.1.1.1", "192.0.2.1", "2001:db8::", "2001:db8:ffff::1"} {
				assert.True(t, l.ContainsText(in), in)
			}
			for _, out := range []string{"9.255.255.255", "11.0.0.0", "192.0.2.0", "192.0.2.2", "2001:db9::", "::10.1.1.1", "", "x", "10.0.0.0/8"} {
				assert.False(t, l.ContainsText(out), out)
			}
		})
	}
}

func TestTextsStandOneALine(t *testing.T) {
	l := parse(t, "\ufeffacme\n  Initech Ltd. # a comment\na#b\n\"#quoted\"  # another\n\"10.0.0.1\"\n\"\\\"\\u00e9 \"\n\"*\"\n\"\"\n7\n1.2.3\n00:1a:2b:3c:4d:5e\ngröße\n")
	assert.Equal(t, 12, l.Len())
	assert.False(t, l.HasAddrs())
	assert.True(t, l.HasTexts())
	for _, in := range []string{"acme", "Initech Ltd.", "a#b", "#quoted", "10.0.0.1", "\"é ", "*", "", "7", "1.2.3", "00:1a:2b:3c:4d:5e", "größe"} {
		assert.True(t, l.ContainsText(in), in)
	}
	for _, out := range []string{"Acme", "acme ", "Initech", "a", "quoted", "::ffff:10.0.0.1", "é", "07", "größ", strings.Repeat("x", list.MaxText+1)} {
		assert.False(t, l.ContainsText(out), out)
	}
}

func TestTextsAreAsLongAsTheyMayBe(t *testing.T) {
	longest := strings.Repeat("é", list.MaxText/2)
	l := parse(t, longest+"\n")
	assert.True(t, l.ContainsText(longest))
	assert.False(t, l.ContainsText(longest[:list.MaxText-2]))
	line := "acme #" + strings.Repeat("x", list.MaxLine-len("acme #\n")) + "\n"
	assert.Equal(t, 1, parse(t, line).Len())
}

func TestMistakesHaveTheirLineAndSayWhatToDo(t *testing.T) {
	for _, c := range []struct {
		name, text string
		want       []string
	}{
		{"a number too large", "10.0.0.1\n\n# x\n10.0.0.300\n", []string{`line 4: "10.0.0.300" is no address: IPv4 field has value >255`}},
		{"in the first entry", "10.0.0.300\n", []string{`line 1: "10.0.0.300" is no address: IPv4 field has value >255`}},
		{"a port", "192.0.2.1:80\n", []string{`line 1: "192.0.2.1:80" has the address "192.0.2.1" and more`}},
		{"brackets", "[2001:db8::1]\n", []string{`line 1: "[2001:db8::1]" has the address "2001:db8::1" and more`}},
		{"brackets and a port", "[2001:db8::1]:443\n", []string{`line 1: "[2001:db8::1]:443" has the address "2001:db8::1" and more`}},
		{"several on a line", "192.0.2.1,192.0.2.2\n", []string{`line 1: "192.0.2.1,192.0.2.2" has the address "192.0.2.1" and more`}},
		{"a directive", "deny 192.0.2.0/24;\n", []string{`line 1: "deny 192.0.2.0/24;" has the address "192.0.2.0/24" and more`}},
		{"a line of a file of hosts", "192.0.2.1 shop.example\n", []string{`line 1: "192.0.2.1 shop.example" has the address "192.0.2.1" and more`}},
		{"single quotes", "'192.0.2.1'\n", []string{`line 1: "'192.0.2.1'" has the address "192.0.2.1" and more`}},
		{"a leading zero", "10.0.0.01\n", []string{`line 1: "10.0.0.01" is no address: IPv4 field has octet with leading zero`}},
		{"a length too large", "10.0.0.0/33\n", []string{`line 1: "10.0.0.0/33" is no prefix: prefix length out of range`}},
		{"bits beyond the length", "10.1.2.3/8\n2001:db8::1/32", []string{
			`line 1: "10.1.2.3/8" has bits beyond its length: write 10.0.0.0/8 if the network is meant, 10.1.2.3 if the address is`,
			`line 2: "2001:db8::1/32" has bits beyond its length: write 2001:db8::/32 if the network is meant, 2001:db8::1 if the address is`,
		}},
		{"a mapped prefix that is not one of IPv4", "::ffff:10.0.0.0/90\n", []string{`line 1: "::ffff:10.0.0.0/90" is an IPv4 address written as IPv6, of which a prefix has at least 96 bits`}},
		{"a zone", "fe80::1%eth0\nfe80::%eth0/64\n", []string{
			`line 1: "fe80::1%eth0" has a zone, which means something on one machine only: write fe80::1`,
			`line 2: "fe80::%eth0/64" has a zone, which means something on one machine only: write fe80::/64; put it in quotes if it is a text`,
		}},
		{"a range", "10.0.0.0-10.0.0.9\n", []string{`line 1: "10.0.0.0-10.0.0.9" is no address: `}},
		{"two on a line", "10.0.0.0/8\n10.0.0.1 10.0.0.2\n", []string{`line 2: "10.0.0.1 10.0.0.2" has the address "10.0.0.1" and more`}},
		{"a text among addresses", "10.0.0.1\nacme\n", []string{`line 2: "acme" is no address and no prefix, as the entries before it are: a list has addresses or texts; put it in quotes if it is a text`}},
		{"an address among texts", "acme\n10.0.0.1\n", []string{`line 2: "10.0.0.1" is an address, but "acme", an entry before it, is not: a list has addresses or texts; put it in quotes if it is a text`}},
		{"a pattern", "10.*\n", []string{`line 1: "10.*" has a *: lists have no patterns; write a prefix such as 10.0.0.0/8, put the pattern in the rule, or put the text in quotes`}},
		{"quotes that do not end", "\"acme\n", []string{`line 1: "\"acme" has quotes that do not match`}},
		{"something after quotes", "\"acme\" x\n\"acme\"#x\n", []string{`line 1: "\"acme\" x" has quotes that do not match`, `line 2: "\"acme\"#x" has quotes that do not match`}},
		{"a character that cannot be seen", "ac\x00me\na\u2028b\nx\ufeff\na\rb\n", []string{
			`line 1: "ac\x00me" has a character U+0000, which cannot be seen: remove it`,
			`line 2: "a\u2028b" has a character U+2028`, `line 3: "x\ufeff" has a character U+FEFF`, `line 4: "a\rb" has a character U+000D`,
		}},
		{"not UTF-8", "a\xffb\n", []string{`line 1: "a\xffb" is not UTF-8: write the text in UTF-8`}},
		{"a text too long", strings.Repeat("x", list.MaxText+1), []string{`line 1: "` + strings.Repeat("x", 60) + `…" has 1025 bytes: a text has at most 1024`}},
		{"lines too long", "a\n#" + strings.Repeat("x", list.MaxLine) + "\nb\n#" + strings.Repeat("x", 1<<18) + "\n\"", []string{
			`line 2: the line is longer than 8192 bytes`, `line 4: the line is longer than 8192 bytes`, `line 5: "\"" has quotes`,
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := mistakesOf(t, c.text, list.Options{})
			require.Len(t, got, len(c.want), "%q", got)
			for i, want := range c.want {
				assert.True(t, strings.HasPrefix(got[i], want), "%s\n%s", got[i], want)
			}
		})
	}
}

func TestTenMistakesAreReportedInFullAndTheOthersCounted(t *testing.T) {
	text := "ok\n" + strings.Repeat("10.0.0.300\n", 1234)
	_, err := list.Parse(context.Background(), strings.NewReader(text), list.Options{})
	var mistakes *list.Error
	require.ErrorAs(t, err, &mistakes)
	assert.Equal(t, 1234, mistakes.Count)
	require.Len(t, mistakes.Mistakes, list.MaxMistakes)
	assert.Equal(t, 11, mistakes.Mistakes[9].Line)
	assert.True(t, strings.HasPrefix(err.Error(), "list: 1234 mistakes:\n  line 2: \"10.0.0.300\" is no address"), err)
	assert.True(t, strings.HasSuffix(err.Error(), "\n  and 1224 more"), err)
	assert.Equal(t, list.MaxMistakes+1, strings.Count(err.Error(), "\n"), err)
}

func TestLimitsOfAListAreMistakes(t *testing.T) {
	text := "a\nb\na\n# c\nd\n"
	assert.Equal(t, 4, parse(t, text).Len())
	l, err := list.Parse(context.Background(), strings.NewReader(text), list.Options{MaxEntries: 4, MaxSize: int64(len(text))})
	require.NoError(t, err)
	assert.Equal(t, 4, l.Len())
	assert.Equal(t, []string{"line 5: too many entries: the most is 3"}, mistakesOf(t, text+"e\n", list.Options{MaxEntries: 3}))
	assert.Equal(t, []string{"line 5: the text has more than 11 bytes, which is the most: what follows was not read"}, mistakesOf(t, text, list.Options{MaxSize: 11}))
	endless := io.MultiReader(strings.NewReader("a\n"), bytes.NewReader(bytes.Repeat([]byte{'x'}, 1<<20)))
	_, err = list.Parse(context.Background(), endless, list.Options{MaxSize: 1 << 19})
	require.ErrorContains(t, err, "line 2: the text has more than 524288 bytes")
}

func TestErrorOfTheReaderIsReturned(t *testing.T) {
	broken := errors.New("connection lost")
	l, err := list.Parse(context.Background(), io.MultiReader(strings.NewReader("a\nb\n"), iotest.ErrReader(broken)), list.Options{})
	assert.Nil(t, l)
	require.ErrorIs(t, err, broken)
	require.EqualError(t, err, "list: reading line 3: connection lost")
}

// However the reader cuts the text, the list is the same.
func TestReaderMayReturnAsLittleAsItLikes(t *testing.T) {
	l, err := list.Parse(context.Background(), iotest.OneByteReader(strings.NewReader("10.0.0.0/8\r\n# é\r\n::1")), list.Options{})
	require.NoError(t, err)
	assert.Equal(t, 2, l.Len())
	assert.True(t, l.ContainsText("::1"))
}

func TestReadingEndsWithTheContext(t *testing.T) {
	ctx, cancel := context.WithCancelCause(context.Background())
	gone := errors.New("the document was removed")
	endless := readerFunc(func(p []byte) (int, error) {
		cancel(gone)
		return copy(p, strings.Repeat("10.0.0.1\n", len(p)/9+1)), nil
	})
	l, err := list.Parse(ctx, endless, list.Options{})
	assert.Nil(t, l)
	require.ErrorIs(t, err, gone)
}

type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }

func TestBuildingEndsWithTheContext(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	var b list.Builder
	require.NoError(t, b.Add("10.0.0.0/8"))
	cancel()
	l, err := b.Build(ctx)
	assert.Nil(t, l)
	require.ErrorIs(t, err, context.Canceled)
	l, err = b.Build(context.Background())
	require.NoError(t, err)
	assert.Zero(t, l.Len())
}

func TestProgressTellsHowFarReadingHasCome(t *testing.T) {
	text := strings.Repeat("10.0.0.1\n#\n", 100_000)
	var all []list.Progress
	_, err := list.Parse(context.Background(), strings.NewReader(text), list.Options{Progress: func(p list.Progress) { all = append(all, p) }})
	require.NoError(t, err)
	require.Len(t, all, 4)
	assert.Equal(t, list.Progress{Lines: 65536, Entries: 32768, Bytes: 32768 * 11}, all[0])
	assert.Equal(t, list.Progress{Lines: 200_000, Entries: 100_000, Bytes: int64(len(text))}, all[3])
}

func TestBuilderTakesWhatIsSound(t *testing.T) {
	var b list.Builder
	require.EqualError(t, b.Add("10.1.2.3/8"), `list: "10.1.2.3/8" has bits beyond its length: write 10.0.0.0/8 if the network is meant, 10.1.2.3 if the address is; put it in quotes if it is a text`)
	require.ErrorContains(t, b.Add(""), "the entry is empty")
	require.ErrorContains(t, b.AddText(strings.Repeat("x", list.MaxText+1)), "a text has at most 1024")
	require.NoError(t, b.Add("10.0.0.0/8"))
	require.NoError(t, b.AddText("10.0.0.0/8"))
	l, err := b.Build(context.Background())
	require.NoError(t, err)
	assert.True(t, l.ContainsText("10.0.0.0/8"))
	assert.True(t, l.ContainsText("10.1.2.3"))
	assert.Positive(t, l.Size())
	assert.Zero(t, new(list.List).Size())
	assert.False(t, new(list.List).ContainsText(""))
}

func ExampleParse() {
	text := `# hosts of a data centre
192.0.2.0/24
2001:db8::/32   # all of it
`
	l, err := list.Parse(context.Background(), strings.NewReader(text), list.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(l.Len(), l.ContainsText("192.0.2.7"), l.ContainsText("198.51.100.7"))
	// Output: 2 true false
}

func ExampleParse_mistakes() {
	_, err := list.Parse(context.Background(), strings.NewReader("192.0.2.1\n192.0.2.3/24\n192.0.2.256\n"), list.Options{})
	var mistakes *list.Error
	if errors.As(err, &mistakes) {
		for _, m := range mistakes.Mistakes {
			fmt.Println(m)
		}
	}
	// Output:
	// line 2: "192.0.2.3/24" has bits beyond its length: write 192.0.2.0/24 if the network is meant, 192.0.2.3 if the address is; put it in quotes if it is a text
	// line 3: "192.0.2.256" is no address: IPv4 field has value >255; put it in quotes if it is a text
}

// Whatever a text is, it is a list or has mistakes; a list has what its lines say.
func FuzzParse(f *testing.F) {
	for _, text := range []string{
		"10.0.0.0/8\n192.0.2.1 # x\n", "\ufeffacme\r\n\"#\"\n", "10.1.2.3/8\nacme", "\"\\u00e9\"", "::ffff:1.2.3.4/97\n", "fe80::1%eth0\n", "#\n\n\x00", "a b#c\n",
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		l, err := list.Parse(context.Background(), strings.NewReader(text), list.Options{MaxEntries: 1000, MaxSize: 1 << 20})
		if err != nil {
			var mistakes *list.Error
			require.ErrorAs(t, err, &mistakes)
			require.NotEmpty(t, mistakes.Mistakes)
			require.Nil(t, l)
			return
		}
		entries := 0
		for line := range strings.Lines(strings.TrimPrefix(text, "\ufeff")) {
			line = strings.TrimSpace(line)
			if line == "" || line[0] == '#' {
				continue
			}
			entries++
			if line[0] != '"' && !strings.ContainsAny(line, " \t#/") {
				require.True(t, l.ContainsText(line), "%q of %q", line, text)
			}
		}
		require.Equal(t, entries, l.Len(), "%q", text)
	})
}
