package leap_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"pgregory.net/rapid"

	"github.com/penstock-go/penstock/internal/leap"
)

// windowModel is a window that remembers everything.
type windowModel struct {
	buckets int64
	open    int64
	ceiling int64
	taken   map[int64]int64
}

// held returns what a window that ends with a bucket would hold.
func (m *windowModel) held(last int64) (sum int64) {
	for bucket, n := range m.taken {
		if bucket > last-m.buckets {
			sum += n
		}
	}
	return sum
}

func (m *windowModel) room() int64 { return m.ceiling - m.held(m.open) }

func TestWindowBehavesLikeItsModel(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		m := &windowModel{
			buckets: rapid.Int64Range(1, 12).Draw(t, "buckets"),
			open:    rapid.SampledFrom([]int64{-5, 0, 100, 1<<31 - 3, 1<<32 - 3, 17_000_000_000}).Draw(t, "first"),
			ceiling: rapid.Int64Range(0, 20).Draw(t, "ceiling"),
			taken:   map[int64]int64{},
		}
		w := leap.NewWindow(int(m.buckets), m.open)
		w.Open(m.open, m.ceiling)
		// someTaken picks a bucket, in the window or not, and part of what was
		// taken in it.
		someTaken := func(t *rapid.T) (bucket int64, n int32) {
			bucket = m.open - rapid.Int64Range(0, m.buckets+2).Draw(t, "back")
			if m.taken[bucket] == 0 {
				t.Skip("nothing was taken there")
			}
			return bucket, int32(rapid.Int64Range(1, m.taken[bucket]).Draw(t, "n"))
		}
		t.Repeat(map[string]func(*rapid.T){
			"take": func(t *rapid.T) {
				n := rapid.Int32Range(1, 5).Draw(t, "n")
				want := leap.Full
				if int64(n) <= m.room() {
					want = leap.Taken
					m.taken[m.open] += int64(n)
				}
				assert.Equal(t, want, w.Take(m.open, n))
			},
			"take elsewhere": func(t *rapid.T) {
				off := rapid.SampledFrom([]int64{-20, -1, 1, 2, 1 << 20}).Draw(t, "off by")
				assert.Equal(t, leap.NotOpen, w.Take(m.open+off, 1))
			},
			"give back at once": func(t *rapid.T) {
				bucket, n := someTaken(t)
				assert.Equal(t, bucket == m.open, w.TryGiveBack(bucket, n))
				if bucket == m.open {
					m.taken[bucket] -= int64(n)
				}
			},
			"give back": func(t *rapid.T) {
				bucket, n := someTaken(t)
				w.Close()
				assert.Equal(t, bucket > m.open-m.buckets, w.GiveBack(bucket, n))
				m.taken[bucket] -= int64(n)
				w.Open(m.open, m.ceiling)
			},
			"move": func(t *rapid.T) {
				assert.Equal(t, m.taken[m.open], w.Close())
				m.open += rapid.Int64Range(0, 2*m.buckets).Draw(t, "by")
				m.ceiling = max(0, m.ceiling+rapid.Int64Range(-10, 10).Draw(t, "raise"))
				w.Open(m.open, m.ceiling)
			},
			"": func(t *rapid.T) {
				assert.Equal(t, m.open, w.OpenBucket())
				assert.Equal(t, m.room(), w.Remaining())
				var sum int64
				for last := m.open; last <= m.open+m.buckets; last++ {
					assert.Equal(t, sum, w.HeldOver(last), "held by all windows that end before %d on", last-m.open)
					assert.Equal(t, m.held(last), w.Held(last), "held by the window that ends %d on", last-m.open)
					sum += m.held(last)
				}
			},
		})
	})
}

func TestWindowIsFreeNoLaterThanItSays(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		buckets := rapid.IntRange(1, 10).Draw(t, "buckets")
		ceiling := rapid.Int64Range(1, 10).Draw(t, "ceiling")
		w := leap.NewWindow(buckets, 0)
		w.Open(0, ceiling)
		last := rapid.Int64Range(0, 20).Draw(t, "last")
		for b := range last {
			take(w, b, rapid.IntRange(0, 4).Draw(t, "taken"))
			moveTo(w, b+1, ceiling)
		}
		lower := rapid.Int64Range(1, ceiling).Draw(t, "lower")
		moveTo(w, last, lower)
		n := int32(rapid.Int64Range(1, lower).Draw(t, "n"))
		if w.Remaining() >= int64(n) {
			t.Skip("there is room")
		}
		free := w.FreeIn(n, w.Remaining(), none)
		assert.Positive(t, free)
		moveTo(w, last+free, lower)
		assert.Equal(t, leap.Taken, w.Take(last+free, n))
	})
}
