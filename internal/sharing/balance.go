package sharing

import (
	"sync/atomic"
	"time"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/fleet"
	"github.com/penstock-go/penstock/internal/sharing/packed"
)

// soonGranted is within which time tokens of a lease may arrive without the limit being used up.
const soonGranted = 250 * time.Millisecond

// Balance returns how many tokens this instance has, below 0 if it owes some. It is not known
// while the instance has none but expects to be granted some within a quarter of a second: then
// the limit is not used up.
func (b *Budget) Balance(now clock.Instant) (left int64, known bool) {
	w := packed.Tokens(b.packed.Load())
	if w.Has(now, 1) {
		return w.Tokens(), true
	}
	if b.RetryAfter(now, 1) <= soonGranted {
		return 0, false
	}
	return min(0, w.Tokens()), true
}

// balance is what an asker knows to be left of its limit.
type balance struct {
	left  atomic.Int64
	until atomic.Int64 // the instant up to which that is worth something
}

// longestBalance is for how long an answer says what is left.
const longestBalance = time.Second

// Balance returns how many tokens are left of the limit, by the last answer of the backend and
// what was settled since; below 0 if more were settled than were left. It is not known if the
// last answer is old.
func (a *Asker) Balance(now clock.Instant) (left int64, known bool) {
	if a.DeniedFor(now, 1) > 0 {
		return min(0, a.balance.left.Load()), true
	}
	if int64(now) >= a.balance.until.Load() {
		return 0, false
	}
	return a.balance.left.Load(), true
}

// learn notes what a reply says of the limit. The mutex of the member is held.
func (a *Asker) learn(now clock.Instant, reply *fleet.Reply) {
	if reply.Err != nil || reply.Limit == 0 && a.operation != fleet.AskBalance {
		return
	}
	a.balance.left.Store(reply.Remaining - a.owed + a.back)
	a.learnUse(now, reply)
	until := now.Add(longestBalance)
	if a.operation == fleet.AskFixedWindow && reply.Reset > 0 {
		a.leftUntil = now.Add(reply.Reset)
		until = min(until, a.leftUntil)
	}
	if a.operation == fleet.AskBalance {
		a.leftUntil = now.Add(balanceKnown)
	}
	a.balance.until.Store(int64(until))
}

// learnOfReturn is learn for the reply to what was handed back, which may be enough for a call that
// was denied: then it is worth asking again.
func (a *Asker) learnOfReturn(now clock.Instant, reply *fleet.Reply) {
	a.learn(now, reply)
	if w := packed.Tokens(a.denied.Load()); reply.Err == nil && w != 0 && w.Tokens() <= reply.Remaining {
		a.denied.CompareAndSwap(uint64(w), 0)
	}
}
