package main

import (
	"encoding/binary"
	"fmt"
	"hash/fnv"
	"math/bits"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/hotparam"
	"github.com/penstock-go/penstock/rule"
)

// once is a rule by which each value may make one call.
func once() hotparam.Rule { return hotparam.Rule{Limit: 1, Window: 24 * time.Hour} }

// twins returns texts that have the same hash under a known seed. A text of two words is
// hashed by multiplying; its second word is chosen so that a factor is zero, and then it
// does not matter what the first one was.
func twins(seed uint64, count int) (texts []string) {
	const factor, added = 0xD6E8FEB86659FD93, 0xE7037ED1A0B428DB // those of package hotparam
	ofRule := fnv.New64a()
	fmt.Fprintf(ofRule, "%d %q %q %q", seed, "hotParam", "limit-0", "login")
	for i := range count {
		first := uint64(i)*0x9E3779B97F4A7C15 + 1
		high, low := bits.Mul64(ofRule.Sum64()^16<<56^first^added, factor)
		var text [16]byte
		binary.LittleEndian.PutUint64(text[:8], first)
		binary.LittleEndian.PutUint64(text[8:], high^low^added)
		texts = append(texts, string(text[:]))
	}
	return texts
}

// Who knows the seed can make values that are one value for the rule, which only costs
// them. With the default seed, the same values have limits of their own.
func TestValuesThatCollideUnderAKnownSeedShareALimitAndNobodyCanAimWithTheDefault(t *testing.T) {
	t.Parallel()
	const seed, count = 42, 200
	passes := func(seed uint64) (n int) {
		s := newService(t, seed, once())
		for _, text := range twins(42, count) {
			if s.call(core.String("user", text)) {
				n++
			}
		}
		return n
	}
	assert.Equal(t, 1, passes(seed))
	assert.Equal(t, count, passes(seed+1))
	assert.Equal(t, count, passes(0))
}

// The attacker's values all collide under the seed that it knows: honest users notice
// nothing.
func TestHonestUsersNoticeNothingOfCollisions(t *testing.T) {
	for name, a := range attacks() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			x := newArena(t, 42, a)
			texts := twins(42, 1000)
			x.run(2*time.Millisecond, time.Minute, 30*time.Second, func(i int) {
				x.strike("all twins are one", core.String("user", texts[i%len(texts)]))
			})
		})
	}
}

func TestValuesThatOnlyLookAlikeHaveLimitsOfTheirOwn(t *testing.T) {
	t.Parallel()
	huge := strings.Repeat("x", 1<<20)
	user := func(v string) core.Option { return core.String("user", v) }
	for seed := range uint64(3) {
		s := newService(t, seed, once())
		values := []core.Option{
			user("7"), core.Int("user", 7), user("true"), core.Bool("user", true), core.Bool("user", false), core.Int("user", 1),
			core.Int("user", 0), core.Int("user", -7), user(""), user(" "), user("7 "), user("\x00"), user("\x00\x00"), user("07"),
			user("\xff"), user("\xfe"), user("\ufffd"), user("\xed\xa0\x80"), user("é"), user("e\u0301"), user("A"), user("a"),
			user(huge), user(huge + "y"), user("y" + huge), user(huge[:len(huge)-1] + "y"), user("(missing)"), user("7\x00"),
			user("12345678"), user("12345678\x00"), user("\x00\x00\x00\x00\x00\x00\x00\x00"), user(strings.Repeat("\x00", 16)),
		}
		for round := range 3 {
			for i, v := range values {
				assert.Equal(t, round == 0, s.call(v), "value %d under seed %d", i, seed)
			}
		}
		assert.True(t, s.call(), "a call without a value is not limited")
		s.assertShownSafely(t)
	}
}

// assertShownSafely checks that values are shown in one line of limited length.
func (s *service) assertShownSafely(t *testing.T) {
	t.Helper()
	shown := s.engine.Explain("login")[0].Values
	require.NotEmpty(t, shown)
	for _, v := range shown {
		assert.True(t, utf8.ValidString(v.Value))
		assert.Less(t, len(v.Value), 300)
		assert.NotContains(t, v.Value, "\n")
		assert.NotContains(t, v.Value, "\x00")
	}
}

func TestCompositeValuesThatTryToBeEqualHaveLimitsOfTheirOwn(t *testing.T) {
	t.Parallel()
	for seed := range uint64(3) {
		limit := once()
		limit.Param = rule.StringsOf("tenant", "user")
		s := newService(t, seed, limit)
		both := func(a, b string) []core.Option {
			return []core.Option{core.String("tenant", a), core.String("user", b)}
		}
		values := [][]core.Option{
			both("a", "b/c"), both("a/b", "c"), both("a", "b\\/c"), both("a\\", "b/c"), both("a/b/c", ""), both("", "a/b/c"), both("", ""),
			both("ab", "c"), both("a", "bc"), both("b", "a"), both("a", "b"), both("a\x00", "b"), both("a", "\x00b"), both("a", "a"),
			both("b", "b"), both("c", "c"), both("7", "7"), both("(missing)", "b"),
			{core.Int("tenant", 7), core.Int("user", 7)},
			{core.Int("tenant", 7), core.String("user", "7")},
			{core.String("tenant", "7"), core.Int("user", 7)},
			{core.Bool("tenant", true), core.Bool("user", true)},
			{core.Bool("tenant", false), core.Bool("user", true)},
			{core.Bool("tenant", true), core.Bool("user", false)},
		}
		for round := range 3 {
			for i, v := range values {
				assert.Equal(t, round == 0, s.call(v...), "value %d under seed %d", i, seed)
			}
		}
		for range 3 {
			assert.True(t, s.call(core.String("tenant", "a")), "half a value is none")
		}
	}
}

func TestNumberedNamesAllHaveLimitsOfTheirOwn(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("one goroutine, and long")
	}
	limit := once()
	limit.MaxValues = 100_000
	for _, seed := range []uint64{1, 2, 1 << 63} {
		s := newService(t, seed, limit)
		refused := 0
		for i := range 60_000 {
			if !s.call(core.String("user", fmt.Sprint("user-", i))) {
				refused++
			}
		}
		assert.LessOrEqual(t, refused, 6, "one in 10,000")
	}
}
