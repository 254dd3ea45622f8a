package sharing

import (
	"math"
	"sync/atomic"
	"time"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/fleet"
	"github.com/penstock-go/penstock/internal/sharing/packed"
	"github.com/penstock-go/penstock/internal/sharing/usage"
)

// Budget is what this instance may use of a limit that the fleet shares, see [fleet.ModeLease]
// and [fleet.ModeWindow]. Its member leases tokens ahead of demand; calls take them in one atomic
// step, which never blocks, allocates, or waits for the network. All methods may be called
// concurrently.
type Budget struct {
	packed atomic.Uint64 // packed.Tokens
	member *Member
	since  atomic.Int64  // the instant from which on the tokens in packed can have been taken
	most   atomic.Int64  // tokens that a call can take at most, ever
	nextAt atomic.Int64  // the instant at which tokens may arrive; 0 if that is not known
	rate   atomic.Uint64 // the bits of a float64, see Rate
	notify atomic.Pointer[func()]
	watch  atomic.Pointer[func()]
	_      [64]byte

	// What was refused since the member looked last: calls that are refused write here, and
	// nowhere else.
	refused atomic.Int64 // tokens
	largest atomic.Int64 // tokens of the largest call
	_       [40]byte

	newAt atomic.Int64 // the instant from which on the budget is as new, while it is quiet, see Forget
	group *usage.Tally // nil if it is of no group

	isWoken   atomic.Bool // it is in the list of budgets that calls have woken
	released  atomic.Bool // nobody takes any more
	nextWoken *Budget     // in that list

	control // guarded by member.mu
}

// Take takes n tokens, at least 1, for a call at now, if they are there. It counts what it
// refuses as demand.
func (b *Budget) Take(now clock.Instant, n int32) bool {
	for {
		w := packed.Tokens(b.packed.Load())
		if !w.Has(now, n) {
			return b.refuse(now, n, w)
		}
		if b.packed.CompareAndSwap(uint64(w), uint64(w)-uint64(n)) {
			if w.IsQuiet() {
				b.wake(now)
			}
			return true
		}
	}
}

// Retake is Take for a call that was refused before and waits: it is not counted as demand
// once more.
func (b *Budget) Retake(now clock.Instant, n int32) bool {
	for {
		w := packed.Tokens(b.packed.Load())
		if !w.Has(now, n) {
			return false
		}
		if b.packed.CompareAndSwap(uint64(w), uint64(w)-uint64(n)) {
			if w.IsQuiet() {
				b.wake(now)
			}
			return true
		}
	}
}

// refuse counts a call that is refused, and has the member look at a quiet budget.
func (b *Budget) refuse(now clock.Instant, n int32, w packed.Tokens) bool {
	if w.IsQuiet() && w.HasEnded(now) && w.Tokens() > 0 {
		// It was quiet for weeks, and what has no end has come to one.
		b.packed.CompareAndSwap(uint64(w), uint64(packed.Pack(now.Add(packed.Forever), true, w.Tokens())))
		return b.Take(now, n)
	}
	b.Refuse(now, n)
	return false
}

// wake has the member look at the budget, which was quiet.
func (b *Budget) wake(now clock.Instant) {
	b.packed.And(^uint64(packed.QuietBit))
	if b.isWoken.CompareAndSwap(false, true) {
		b.member.wakeUp(now, b)
	}
}

// GiveBack gives back n tokens that a call took at an instant, as though it had never been.
// Of a window whose bucket has ended meanwhile, they are lost.
func (b *Budget) GiveBack(taken clock.Instant, n int32) {
	for {
		w := packed.Tokens(b.packed.Load())
		if int64(taken) < b.since.Load() { // read after the word, see beginBucket
			return
		}
		if b.packed.CompareAndSwap(uint64(w), uint64(w.Plus(int64(n)))) {
			if w.IsQuiet() {
				b.wake(taken)
			}
			return
		}
	}
}

// Settle corrects what a call took at an instant: by more tokens, into debt if need be, or,
// if n is negative, by less. The store keeps no more debt of a bucket than its limit in one
// second, or 16 tokens: what a call cost beyond that is not made up for.
func (b *Budget) Settle(taken clock.Instant, n int32) {
	if n <= 0 {
		b.GiveBack(taken, -max(n, -math.MaxInt32))
		return
	}
	for {
		w := packed.Tokens(b.packed.Load())
		if b.packed.CompareAndSwap(uint64(w), uint64(w.Plus(-int64(n)))) {
			if w.IsQuiet() {
				b.wake(taken)
			}
			return
		}
	}
}

// RetryAfter returns how long it will probably take from now until a call that takes n
// tokens can pass: 0 if that is not known, [fleet.Never] if it never can.
func (b *Budget) RetryAfter(now clock.Instant, n int32) time.Duration {
	if int64(n) > b.most.Load() {
		return fleet.Never
	}
	at := clock.Instant(b.nextAt.Load())
	if at == never {
		return fleet.Never
	}
	return max(0, at.Sub(now))
}

// Rate returns the tokens per second that this instance was granted of late, at least its
// even share of the limit unless the backend has refused some.
func (b *Budget) Rate() float64 { return math.Float64frombits(b.rate.Load()) }

// Notify has f called when tokens may have arrived: by whoever steps the member, one call
// at a time, without a lock held. f must not block.
func (b *Budget) Notify(f func()) { b.notify.Store(&f) }

// withdraw takes up to n tokens out of the word.
func (b *Budget) withdraw(n int64) int64 {
	for {
		w := packed.Tokens(b.packed.Load())
		part := min(n, w.Tokens())
		if part <= 0 {
			return 0
		}
		if b.packed.CompareAndSwap(uint64(w), uint64(w.Plus(-part))) {
			return part
		}
	}
}

// write adds tokens to the word, and says up to when they may be used and whether the next
// call is to wake the member.
func (b *Budget) write(tokens int64, end clock.Instant, isQuiet bool) {
	for {
		w := packed.Tokens(b.packed.Load())
		if b.packed.CompareAndSwap(uint64(w), uint64(packed.Pack(end, isQuiet, w.Tokens()+tokens))) {
			return
		}
	}
}
