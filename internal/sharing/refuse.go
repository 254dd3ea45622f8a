package sharing

import (
	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/internal/sharing/packed"
)

// Refuse counts n tokens as demand that a call asked for at now and could not have, for
// whoever has calls wait rather than Take. When such a call has its tokens, by Retake, they
// are taken back with -n: what is taken counts by itself.
func (b *Budget) Refuse(now clock.Instant, n int32) {
	b.refused.Add(int64(n))
	if int64(n) > b.largest.Load() {
		b.largest.Store(int64(n))
	}
	if packed.Tokens(b.packed.Load()).IsQuiet() {
		b.wake(now)
	}
}

// Has says whether a call at now that takes n tokens would find them.
func (b *Budget) Has(now clock.Instant, n int32) bool {
	return packed.Tokens(b.packed.Load()).Has(now, n)
}

// Available returns how many tokens a call at now would find.
func (b *Budget) Available(now clock.Instant) int64 {
	w := packed.Tokens(b.packed.Load())
	if !w.Has(now, 1) {
		return 0
	}
	return w.Tokens()
}
