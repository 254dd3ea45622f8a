// Package ask is the limits of which an instance of a fleet asks the backend for each call, see [fleet.ModeAsk].
package ask

import (
	"sync/atomic"
	"time"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/fleet"
	"github.com/penstock-go/penstock/internal/sharing/exchange"
	"github.com/penstock-go/penstock/internal/sharing/outage"
	"github.com/penstock-go/penstock/internal/sharing/packed"
	"github.com/penstock-go/penstock/internal/sharing/usage"
)

// Asker asks the backend for each call, see [fleet.ModeAsk]. Calls that ask at the same time go in
// one batch. All methods may be called concurrently.
type Asker struct {
	set     *Askers
	group   *usage.Tally  // nil if it is of no group
	denied  atomic.Uint64 // packed.Tokens: up to when so many tokens are denied
	refused atomic.Int64  // tokens of calls that did not ask because of that
	balance balance

	// What follows is guarded by Mu of the exchange.
	terms      fleet.Terms
	operation  fleet.Operation
	onOutage   fleet.OnOutage
	place      int // in the list of all askers, -1 if released
	counted    clock.Instant
	lastCall   clock.Instant
	demand     usage.Average
	passed     usage.Average
	passes     usage.PassLog // of windows
	portion    usage.Portion
	crowd      usage.Crowd
	outage     outage.Outage
	underWay   int           // calls that wait for an answer
	lost       int           // calls without an answer since the last one that has one
	back       int64         // tokens to be handed back
	owed       int64         // tokens that passed without an answer
	charges    []charge      // others, which passed before now
	flushing   bool          // it is in the list of those that have something to hand back or to pay
	bucket     int64         // the last [fleet.Reply.Bucket]
	bucketFrom clock.Instant // when it was first known
	leftUntil  clock.Instant // when the fixed window ends of which the last reply told
	told       usage.WindowUse
}

// Ask asks for n tokens, at least 1, at now. done is called once: by the timeout at the
// latest, or at once, by Ask, if the answer is known, as in an outage. No lock is held then.
// It must not block.
func (a *Asker) Ask(now clock.Instant, n int32, done func(Answer)) {
	if wait := a.DeniedFor(now, n); wait > 0 {
		a.refused.Add(int64(n))
		done(Answer{Retry: wait})
		return
	}
	set := a.set
	set.Mu.Lock()
	if a.place < 0 && a.group != nil {
		set.Unlock(now)
		done(Answer{Released: true})
		return
	}
	a.count(now)
	a.demand.Add(int64(n), 0, usage.RateMemory(&a.terms, set.Instances()))
	a.group.Add(now, int64(n), 0, 0)
	a.lastCall = now
	if a.outage.IsBounding() && a.outage.Tokens(&a.passes) < int64(n)+int64(a.underWay) {
		answer := Answer{Retry: min(a.outage.Next(now, &a.passes), a.outage.Until).Sub(now)}
		set.Unlock(now)
		done(answer)
		return
	}
	if wait := a.waitForPart(now, int64(n)); wait > 0 && !a.outage.Active && set.Running() {
		set.Unlock(now)
		done(Answer{Retry: wait})
		return
	}
	if !set.Running() || a.place < 0 || a.outage.Active && (a.outage.Err == nil || now < a.outage.AskAt) {
		answer := a.decide(now, n)
		set.Unlock(now)
		done(answer)
		return
	}
	if a.outage.Err != nil {
		a.outage.AskAt = now.Add(set.Jitter(exchange.MaxProbeWait))
	}
	a.underWay++
	q := set.queueOf(a.terms.Key)
	q.asks = append(q.asks, &asking{asker: a, n: n, asked: now, done: done})
	set.Unlock(now)
}

// DeniedFor returns for how long a denial of the backend still holds for a call that takes n
// tokens, [fleet.Never] if for ever, 0 if it is worth asking. It takes no lock, and counts nothing.
func (a *Asker) DeniedFor(now clock.Instant, n int32) time.Duration {
	w := packed.Tokens(a.denied.Load())
	switch {
	case w == 0 || int64(n) < w.Tokens():
		return 0
	case w.HasEnded(now):
		a.denied.CompareAndSwap(uint64(w), 0) // or it would begin anew when the end has wrapped around
		return 0
	}
	if left := w.Left(now); left < packed.Forever/2 {
		return max(1, left)
	}
	return fleet.Never
}

// Denied is DeniedFor for a call that is refused because of it: it is counted as demand.
func (a *Asker) Denied(now clock.Instant, n int32) time.Duration {
	wait := a.DeniedFor(now, n)
	if wait > 0 {
		a.refused.Add(int64(n))
	}
	return wait
}

// count brings the averages up to now. The mutex is held.
func (a *Asker) count(now clock.Instant) {
	elapsed, memory := now.Sub(a.counted), usage.RateMemory(&a.terms, a.set.Instances())
	refused := a.refused.Swap(0)
	a.demand.Add(refused, elapsed, memory)
	a.group.Add(now, refused, 0, 0)
	if refused > 0 {
		a.lastCall = max(a.lastCall, now)
	}
	a.passed.Add(0, elapsed, memory)
	a.passes.Advance(now)
	a.outage.Advance(now, elapsed, &a.passes)
	a.counted = max(a.counted, now)
}

// pass counts tokens that passed. The mutex is held.
func (a *Asker) pass(n int64) {
	a.passed.Add(n, 0, usage.RateMemory(&a.terms, a.set.Instances()))
	a.passes.Add(n)
	a.group.Add(a.counted, 0, n, n)
}

// decide answers a call without the backend. The mutex is held.
func (a *Asker) decide(now clock.Instant, n int32) Answer {
	by := &a.outage
	if !by.Active { // one answer was lost
		by = a.newOutage(now, nil)
		if by.Bucket.Rate > 0 {
			by.Bucket.Level = max(by.Bucket.Most, float64(n))
		}
	}
	if by.Tokens(&a.passes) < int64(n) {
		answer := Answer{Outage: true}
		if at := by.Next(now, &a.passes); at > now {
			answer.Retry = at.Sub(now)
		}
		return answer
	}
	by.Use(int64(n))
	a.owed += int64(n)
	a.pass(int64(n))
	a.flushSoon()
	return Answer{Allowed: true, Outage: true}
}
