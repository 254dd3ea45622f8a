package list_test

import (
	"context"
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/list"
)

// noon is an instant of the wall clock.
var noon = clock.Instant(time.Date(2026, 12, 1, 12, 0, 0, 0, time.UTC).UnixNano())

func parsed(t require.TestingT, text string) *list.List {
	l, err := list.Parse(context.Background(), strings.NewReader(text), list.Options{})
	require.NoError(t, err)
	return l
}

func TestEntryIsOnTheListUntilItsEnd(t *testing.T) {
	t.Parallel()
	l := parsed(t, `# blocked
203.0.113.9 until 2026-12-01T12:00:00Z
198.51.100.0/24	until	2026-12-01T14:00:00+01:00   # an hour more
192.0.2.1
192.0.2.1 until 2026-12-01T12:00:00Z
2001:db8::/32 until 2026-12-01T12:00:00.5Z
203.0.113.8 until 2026-12-01T12:00:00Z
203.0.113.8 until 2026-12-01T13:00:00Z
`)
	assert.True(t, l.HasEnds())
	assert.Equal(t, 7, l.Len())
	for _, test := range []struct {
		addr  string
		after time.Duration // by when it is not on the list any more
	}{
		{"203.0.113.9", 0},
		{"::ffff:203.0.113.9", 0},
		{"198.51.100.200", time.Hour},
		{"192.0.2.1", 1000 * time.Hour},
		{"2001:db8::1", 500 * time.Millisecond},
		{"203.0.113.8", time.Hour},
	} {
		addr, end := netip.MustParseAddr(test.addr), noon.Add(test.after)
		assert.True(t, l.ContainsAddrAt(addr, end-1), test.addr)
		assert.True(t, l.ContainsTextAt(test.addr, end-1), test.addr)
		assert.True(t, l.ContainsAddrAt(addr, 0), test.addr)
		if test.after < 1000*time.Hour {
			assert.False(t, l.ContainsAddrAt(addr, end), test.addr)
			assert.False(t, l.ContainsTextAt(test.addr, end), test.addr)
		}
	}
	assert.False(t, l.ContainsAddrAt(netip.MustParseAddr("203.0.113.10"), 0))
	assert.Equal(t, []int{7, 4, 1}, []int{l.LenAt(noon - 1), l.LenAt(noon), l.LenAt(noon.Add(time.Hour))})

	future := time.Now().Add(time.Hour).UTC().Format(time.RFC3339)
	l = parsed(t, "203.0.113.9 until "+future+"\n203.0.113.8 until 2020-01-01T00:00:00Z\n")
	assert.True(t, l.ContainsAddr(netip.MustParseAddr("203.0.113.9")), "by the wall clock")
	assert.False(t, l.ContainsText("203.0.113.8"), "by the wall clock")
}

func TestLookUpOfAnEntryWithAnEndAllocatesNothing(t *testing.T) {
	l := parsed(t, "198.51.100.0/24 until 2026-12-01T13:00:00Z\n")
	addr := netip.MustParseAddr("198.51.100.200")
	assert.Zero(t, testing.AllocsPerRun(100, func() { l.ContainsAddrAt(addr, noon) }))
}

func TestTextIsOnTheListUntilItsEnd(t *testing.T) {
	t.Parallel()
	l := parsed(t, "bad bot until 2026-12-01T12:00:00Z\n\"say until when\"\n\"x\" until 2026-12-01T12:00:00Z # note\nfor ever\nuntilled\n")
	for _, text := range []string{"bad bot", "x"} {
		assert.True(t, l.ContainsTextAt(text, noon-1), text)
		assert.False(t, l.ContainsTextAt(text, noon), text)
	}
	for _, text := range []string{"say until when", "for ever", "untilled"} {
		assert.True(t, l.ContainsTextAt(text, noon), text)
	}
	assert.Equal(t, 5, l.Len())
	assert.Equal(t, 3, l.LenAt(noon))
}

func TestMistakesInEndsHaveALineAndAColumn(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"10.0.0.1\n  10.0.0.2 until tomorrow # c": `line 2, column 18: "tomorrow" is no time: write one such as 2026-12-01T00:00:00Z`,
		"10.0.0.2 until": `line 1, column 15: "" is no time`,
		"10.0.0.2 until 2026-12-01T00:00:00Z until 2027-01-01T00:00:00Z": `line 1, column 43: until is there twice: an entry has one end`,
		"\"a\" until 2026-12-01T00:00:00Z until 2027-01-01T00:00:00Z":    `line 1, column 38: until is there twice: an entry has one end`,
		"10.0.0.2 until 2026-12-01":                                      `line 1, column 16: "2026-12-01" is no time`,
		"10.0.0.2 until 1969-12-01T00:00:00Z":                            `line 1, column 16: "1969-12-01T00:00:00Z" must be from 1970 to 2262`,
		"10.0.0.2 until 2300-12-01T00:00:00Z":                            `line 1, column 16: "2300-12-01T00:00:00Z" must be from 1970 to 2262`,
		"größe until noon":                                               `line 1, column 13: "noon" is no time`,
		"\"a b\" until noon":                                             `line 1, column 13: "noon" is no time`,
		"10.0.0.300 until 2026-12-01T00:00:00Z":                          `line 1: "10.0.0.300" is no address`,
		"\"a\" b":                                                        `line 1: "\"a\" b" has quotes that do not match`,
	} {
		_, err := list.Parse(t.Context(), strings.NewReader(text), list.Options{})
		assert.ErrorContains(t, err, want, text)
	}
}

// A list with ends decides as one of the entries that have not ended.
func TestListWithEndsEqualsThatOfTheEntriesThatAreLeft(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		addr := rapid.Custom(func(t *rapid.T) netip.Addr {
			if rapid.Bool().Draw(t, "v6") {
				return netip.AddrFrom16([16]byte{0: 0x20, 7: rapid.Byte().Draw(t, "a") & 3, 15: rapid.Byte().Draw(t, "b") & 7})
			}
			return netip.AddrFrom4([4]byte{10, 0, rapid.Byte().Draw(t, "a") & 3, rapid.Byte().Draw(t, "b") & 7})
		})
		at := noon.Add(time.Duration(rapid.IntRange(-3, 3).Draw(t, "at")) * time.Second)
		var all, left strings.Builder
		for range rapid.IntRange(1, 12).Draw(t, "entries") {
			a := addr.Draw(t, "entry")
			entry := netip.PrefixFrom(a, rapid.IntRange(0, a.BitLen()).Draw(t, "length")).Masked().String()
			end := noon.Add(time.Duration(rapid.IntRange(-3, 3).Draw(t, "end")) * time.Second)
			if rapid.Bool().Draw(t, "ends") {
				fmt.Fprintf(&all, "%s until %s\n", entry, end.Time().UTC().Format(time.RFC3339))
				if end <= at {
					continue
				}
			} else {
				all.WriteString(entry + "\n")
			}
			left.WriteString(entry + "\n")
		}
		with, without := parsed(t, all.String()), parsed(t, left.String())
		assert.Equal(t, without.Len(), with.LenAt(at))
		for range 20 {
			a := addr.Draw(t, "asked")
			require.Equal(t, without.ContainsAddr(a), with.ContainsAddrAt(a, at), "%v in\n%s", a, all.String())
			require.Equal(t, without.ContainsText(a.String()), with.ContainsTextAt(a.String(), at))
		}
	})
}

func TestEditEndsEntries(t *testing.T) {
	t.Parallel()
	const text = "# mine\n10.0.0.1\n10.0.0.2 until 2026-12-01T13:00:00Z # soon\n10.0.0.3 until 2026-12-01T12:00:00Z\n"
	for name, test := range map[string]struct {
		add, remove []string
		want        string
		done        list.Edited
	}{
		"what has ended goes": {
			[]string{"10.0.0.4 until 2026-12-02T00:00:00Z"},
			nil,
			"# mine\n10.0.0.1\n10.0.0.2 until 2026-12-01T13:00:00Z # soon\n10.0.0.4 until 2026-12-02T00:00:00Z\n",
			list.Edited{Added: []string{"10.0.0.4 until 2026-12-02T00:00:00Z"}, Ended: 1},
		},
		"a later end counts": {
			[]string{"10.0.0.2/32 until 2026-12-02T00:00:00Z", "10.0.0.1 until 2026-12-02T00:00:00Z"},
			nil,
			"# mine\n10.0.0.1\n10.0.0.2/32 until 2026-12-02T00:00:00Z\n",
			list.Edited{
				Added:   []string{"10.0.0.2/32 until 2026-12-02T00:00:00Z"},
				Present: []string{"10.0.0.1 until 2026-12-02T00:00:00Z"}, Ended: 1,
			},
		},
		"an earlier one does not": {
			[]string{"10.0.0.2 until 2026-12-01T12:30:00Z"},
			nil,
			"# mine\n10.0.0.1\n10.0.0.2 until 2026-12-01T13:00:00Z # soon\n",
			list.Edited{Present: []string{"10.0.0.2 until 2026-12-01T12:30:00Z"}, Ended: 1},
		},
		"without an end": {
			[]string{"10.0.0.2", "10.0.0.3"},
			nil, "# mine\n10.0.0.1\n10.0.0.2\n10.0.0.3\n",
			list.Edited{Added: []string{"10.0.0.2", "10.0.0.3"}, Ended: 1},
		},
		"removed whatever its end is": {
			nil, []string{"10.0.0.2"}, "# mine\n10.0.0.1\n", list.Edited{Removed: []string{"10.0.0.2"}, Ended: 1},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var to strings.Builder
			done, err := list.EditAt(t.Context(), noon, strings.NewReader(text), &to, test.add, test.remove)
			require.NoError(t, err)
			assert.Equal(t, test.want, to.String())
			assert.Equal(t, test.done, done)
		})
	}
	for entry, want := range map[string]string{
		"10.0.0.1 until 2026-12-01T12:00:00Z": "has ended already",
		"10.0.0.1 until noon":                 "is no time",
	} {
		_, err := list.EditAt(t.Context(), noon, strings.NewReader(text), &strings.Builder{}, []string{entry}, nil)
		assert.ErrorContains(t, err, want)
	}
}

func TestEntriesThatHaveEndedAreNotRemoved(t *testing.T) {
	t.Parallel()
	now := clock.NewVirtual(noon.Time())
	r := list.NewRegistry()
	r.LimitRemoval(0.5, time.Hour, now)
	from := list.Provider{Source: "s", Document: "d"}
	put := func(text string) *list.List {
		l := parsed(t, text)
		r.Put("bots", from, list.Version{List: l})
		return l
	}
	const four = "10.0.0.1 until 2026-12-01T12:10:00Z\n10.0.0.2 until 2026-12-01T12:10:00Z\n10.0.0.3 until 2026-12-01T12:10:00Z\n"
	before := put(four + "10.0.0.4\n")
	put("10.0.0.4\n")
	assert.Same(t, before, r.Get("bots"), "three of four would go")
	put(four + "10.0.0.4\n")
	now.Advance(10 * time.Minute)
	assert.Equal(t, 3, r.Status()[0].WithEnd)
	assert.Same(t, put("10.0.0.4\n"), r.Get("bots"), "they have gone by themselves")
}
