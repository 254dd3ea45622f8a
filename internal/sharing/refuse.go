package sharing

import "github.com/penstock-go/penstock/clock"

// Refuse counts n tokens as demand that a call asked for at now and could not have, for
// whoever has calls wait rather than Take. When such a call has its tokens, by Retake, they
// are taken back with -n: what is taken counts by itself.
func (b *Budget) Refuse(now clock.Instant, n int32) {
	b.refused.Add(int64(n))
	if int64(n) > b.largest.Load() {
		b.largest.Store(int64(n))
	}
	if packedTokens(b.packed.Load()).isQuiet() {
		b.wake(now)
	}
}

// Has says whether a call at now that takes n tokens would find them.
func (b *Budget) Has(now clock.Instant, n int32) bool {
	return packedTokens(b.packed.Load()).has(now, n)
}

// Available returns how many tokens a call at now would find.
func (b *Budget) Available(now clock.Instant) int64 {
	w := packedTokens(b.packed.Load())
	if !w.has(now, 1) {
		return 0
	}
	return w.tokens()
}
