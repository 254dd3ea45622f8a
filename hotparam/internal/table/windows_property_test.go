package table

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/penstock-go/penstock/clock"
)

// countedTokens is what one value has taken, in the order of time.
type countedTokens []struct {
	number int64
	tokens int64
}

func (c *countedTokens) add(number, tokens int64) {
	*c = append(*c, struct{ number, tokens int64 }{number, tokens})
}

func (c countedTokens) used(number int64) (sum int64) {
	for _, taken := range c {
		if number-taken.number < windowBuckets {
			sum += taken.tokens
		}
	}
	return sum
}

func TestWindowCountsPresentBucketAndNineBefore(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		window := rapid.SampledFrom([]time.Duration{time.Millisecond, time.Second, time.Minute}).Draw(t, "window")
		terms := CompileWindow(1, window)
		w := NewWindows(1000, terms)
		limit := rapid.Int64Range(0, 12).Draw(t, "limit")
		values := make([]countedTokens, 4)
		now := clock.Instant(rapid.SampledFrom([]int64{0, int64(start)}).Draw(t, "start"))
		for range rapid.IntRange(1, 80).Draw(t, "calls") {
			now = now.Add(time.Duration(rapid.Int64Range(0, int64(window)/4).Draw(t, "step")))
			if rapid.IntRange(0, 20).Draw(t, "rest") == 0 {
				now = now.Add(window)
			}
			v, tokens := rapid.IntRange(0, len(values)-1).Draw(t, "value"), rapid.Int32Range(1, 4).Draw(t, "tokens")
			hash, number := hashOf(uint64(v)), terms.number(now)
			used := values[v].used(number)
			require.Equal(t, used, w.Used(hash, terms, now))
			wait := w.RetryAfter(hash, terms, limit, now, tokens)
			p, outcome := w.Take(hash, terms, limit, now, tokens)
			require.Equal(t, used+int64(tokens) <= limit, outcome == Taken)
			require.Equal(t, outcome == Taken, wait == 0)
			if outcome != Taken {
				if int64(tokens) <= limit {
					require.Greater(t, values[v].used(terms.number(now.Add(wait-1)))+int64(tokens), limit)
					require.LessOrEqual(t, values[v].used(terms.number(now.Add(wait)))+int64(tokens), limit)
				}
				continue
			}
			values[v].add(number, int64(tokens))
			switch rapid.IntRange(0, 4).Draw(t, "then") {
			case 0:
				now = now.Add(window * 8 / 10)
				w.GiveBack(p, now, tokens)
				values[v].add(number, -int64(tokens))
			case 1:
				w.Settle(p, now, 2)
				values[v].add(number, 2)
			}
		}
	})
}

func TestWindowKeepsWhatWasUsedWhenItChanges(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		windows := []time.Duration{time.Millisecond, time.Second, 7 * time.Second, time.Minute}
		terms := CompileWindow(1, windows[1])
		w := NewWindows(200, terms)
		size, now := 200, start
		type use struct {
			at     clock.Instant
			tokens int64
		}
		var used [4][]use
		counts := func(u use) bool { // in the present window, less the bucket that conversions may cost
			return terms.number(now)-terms.number(u.at) < windowBuckets && now.Sub(u.at) < time.Duration(9*terms.bucket)
		}
		forget := func() { // what has left a window does not come back with a longer one
			for v := range used {
				used[v] = slices.DeleteFunc(used[v], func(u use) bool { return !counts(u) })
			}
		}
		for version := uint64(2); version < 6; version++ {
			for range rapid.IntRange(0, 10).Draw(t, "calls") {
				now = now.Add(time.Duration(rapid.Int64Range(0, 4*terms.bucket).Draw(t, "step")))
				v := rapid.IntRange(0, 3).Draw(t, "value")
				// What was used within the present window still counts.
				least := int64(0)
				for _, u := range used[v] {
					if counts(u) {
						least += u.tokens
					}
				}
				require.GreaterOrEqual(t, w.Used(hashOf(uint64(v)), terms, now), least)
				if _, outcome := w.Take(hashOf(uint64(v)), terms, 20, now, 1); outcome == Taken {
					require.Less(t, least, int64(20))
					used[v] = append(used[v], use{now, 1})
				}
			}
			forget()
			old := terms
			terms = CompileWindow(version, rapid.SampledFrom(windows).Draw(t, "window"))
			forget()
			if rapid.Bool().Draw(t, "resize") {
				size = 200 + 100*int(version)
			}
			next := w.Adopt(size, now)
			if rapid.Bool().Draw(t, "activate") {
				next.Activate(terms, now)
			}
			before := w
			w = next
			sum := w.Used(hashOf(0), terms, now)
			_, outcome := w.Take(hashOf(0), terms, 1<<30, now, 1)
			require.Equal(t, Taken, outcome)
			used[0] = append(used[0], use{now, 1})
			// More if a longer window is back in which the table before had counted.
			require.GreaterOrEqual(t, w.Used(hashOf(0), terms, now), sum+1)
			_, outcome = before.Take(hashOf(1), old, 1<<30, now, 1)
			require.Equal(t, Stale, outcome)
		}
	})
}

// What was used under a short window counts in a longer one, whenever the value is called
// again.
func TestWindowKeepsWhatWasUsedThroughAShortWindowAndALongerOne(t *testing.T) {
	for _, size := range []int{200, 500} {
		short, long := CompileWindow(1, time.Millisecond), CompileWindow(2, time.Second)
		w := NewWindows(200, short)
		for range 20 {
			_, outcome := w.Take(hashOf(1), short, 20, start, 1)
			require.Equal(t, Taken, outcome)
		}
		w = w.Adopt(size, start)
		_, outcome := w.Take(hashOf(2), long, 20, start, 1)
		require.Equal(t, Taken, outcome, "the new window is in force")
		later := start.Add(5 * time.Millisecond)
		require.EqualValues(t, 20, w.Used(hashOf(1), long, later))
		_, outcome = w.Take(hashOf(1), long, 20, later, 1)
		require.Equal(t, Refused, outcome, "size %d", size)
	}
}
