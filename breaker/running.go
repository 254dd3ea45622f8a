package breaker

import (
	"math/rand/v2"
	"slices"
	"sync/atomic"
	"time"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/rule"
)

// running has the calls under way of a closed breaker whose rule is about slow calls, so that a call
// counts as slow while it still runs. There is no timer: whoever next makes a call, ends one or looks
// at the status from breaker.nextDue on counts those that have become slow meanwhile, each at its
// instant.
//
// A call takes a slot without a lock and, when it ends, frees it again. Who counts a call as slow
// frees its slot, too, and whoever frees a slot counts the call: so it counts once. The
// slots are bounded: calls that find none count when they end.
type running struct {
	few  [fewSlots]slot
	many atomic.Pointer[[manySlots]slot] // made when few do not suffice, and kept
	full atomic.Bool                     // no slot was free when a call last looked for one

	// The breaker's mutex guards the rest.
	slow []clock.Instant // when calls have become slow that are about to be counted
}

// slot is the place of one call under way.
type slot struct {
	word  atomic.Uint64 // how often it was taken, and in its lowest bits whether it is
	start atomic.Int64  // when the call passed; valid while the word is taken
}

const (
	fewSlots  = 64
	manySlots = 4096 - fewSlots

	slotFree  = 0 // also that a call is about to take it, if the other bit is set
	slotTaken = 1
	slotBegun = 2
	slotBits  = 2
	slotState = 1<<slotBits - 1
)

// The ticket of a call with a slot has the bit of its mark, the number of its slot, and how often the
// slot was taken. That must not count the changes of state beside: whoever leaves the closed state
// frees all slots.
const (
	watched     rule.Ticket = 1 << 47
	slotIndex               = 12
	slotMask                = 1<<slotIndex - 1
	slotUses                = 47 - slotIndex
	slotUseMask             = 1<<slotUses - 1
)

func isWatched(t rule.Ticket) bool { return t&watched != 0 && !isProbe(t) }

func (r *running) slot(i int) *slot {
	if i < fewSlots {
		return &r.few[i]
	}
	return &r.many.Load()[i-fewSlots]
}

// isLarge says whether there are as many slots as there can be.
func (r *running) isLarge() bool { return r.many.Load() != nil }

// len returns how many slots there are.
func (r *running) len() int {
	if r.isLarge() {
		return fewSlots + manySlots
	}
	return fewSlots
}

// add gives a slot to a call that passes at an instant; false if none is free.
func (r *running) add(start clock.Instant) (rule.Ticket, bool) {
	if r.full.Load() {
		return 0, false
	}
	n := r.len()
	// So goroutines do not meet at one slot. Which it is has no effect.
	from := int(rand.Uint32N(uint32(n))) //nolint:gosec // nothing depends on it
	for i := range n {
		index := (from + i) % n
		s := r.slot(index)
		word := s.word.Load()
		if word&slotState != slotFree || !s.word.CompareAndSwap(word, word|slotBegun) {
			continue
		}
		uses := word>>slotBits + 1
		s.start.Store(int64(start))
		s.word.Store(uses<<slotBits | slotTaken)
		return watched | rule.Ticket(uses&slotUseMask)<<slotIndex | rule.Ticket(index), true
	}
	r.full.Store(true)
	if r.hasFree() { // since it was looked at: who freed it may not have seen the mark
		r.full.Store(false)
	}
	return 0, false
}

func (r *running) hasFree() bool {
	for i := range r.len() {
		if r.slot(i).word.Load()&slotState == slotFree {
			return true
		}
	}
	return false
}

// remove frees the slot of a call. It returns false if the call has counted already.
func (r *running) remove(t rule.Ticket) bool {
	s := r.slot(int(t & slotMask))
	word := s.word.Load()
	isOwn := word&slotState == slotTaken && word>>slotBits&slotUseMask == uint64(t>>slotIndex&slotUseMask)
	return isOwn && r.free(s, word)
}

// free frees a slot that is taken. It returns false if another goroutine has.
func (r *running) free(s *slot, word uint64) bool {
	if !s.word.CompareAndSwap(word, word&^slotState) {
		return false
	}
	if r.full.Load() {
		r.full.Store(false)
	}
	return true
}

// clear frees all slots.
func (r *running) clear() {
	for i := range r.len() {
		s := r.slot(i)
		if word := s.word.Load(); word&slotState == slotTaken {
			r.free(s, word)
		}
	}
}

// grow makes more slots if there are few. The caller holds the breaker's mutex.
func (r *running) grow() {
	if !r.isLarge() {
		r.slow = slices.Grow(r.slow, fewSlots+manySlots)
		r.many.Store(new([manySlots]slot))
		r.full.Store(false)
	}
}

func newRunning() *running { return &running{slow: make([]clock.Instant, 0, fewSlots)} }

// watch lets a call pass a breaker that is closed in the state s, and gives it a slot. It returns
// false if the state has changed meanwhile.
func (b *breaker) watch(l *limiter, c rule.Call, s state) (rule.Ticket, bool) {
	if c.LongLived() {
		return s.ticket(), true // how long it lasts tells nothing
	}
	r := b.running.Load()
	t, ok := r.add(c.Now)
	if !ok {
		return s.ticket(), true
	}
	// The slot is seen from here on. Who changes the state afterwards frees it.
	if b.present() != s {
		r.remove(t)
		return 0, false
	}
	b.bringForward(l.slowAt(c.Now))
	return t, true
}

// bringForward makes nextDue that instant, unless it is earlier already.
func (b *breaker) bringForward(due clock.Instant) {
	for {
		next := b.nextDue.Load()
		if next <= int64(due) || b.nextDue.CompareAndSwap(next, int64(due)) {
			return
		}
	}
}

// slowAt returns the first instant at which a call that passed at start is slow.
func (l *limiter) slowAt(start clock.Instant) clock.Instant {
	return start.Add(l.slowAfter + time.Nanosecond)
}

// countSlow counts the calls under way that have become slow by now, each at that instant and the
// earliest first. It may open the breaker.
func (b *breaker) countSlow(now clock.Instant) {
	if clock.Instant(b.nextDue.Load()) > now {
		return
	}
	// A call that takes its slot after this has been stored finds it, and brings it forward.
	b.nextDue.Store(int64(future))
	l, r := b.current.Load(), b.running.Load()
	if l.slowAfter == 0 {
		return
	}
	next := b.takeSlow(l, r, now)
	b.bringForward(next)
	slices.Sort(r.slow)
	for _, at := range r.slow {
		b.endCall(at, bad)
		if b.present().code() != closed {
			break // the others passed before that
		}
	}
	r.slow = r.slow[:0]
}

// takeSlow frees the slots of calls that have become slow by now and puts the instants into r.slow. It
// returns when the next of the others does. A version of the rule makes none slow before it came into
// force.
func (b *breaker) takeSlow(l *limiter, r *running, now clock.Instant) (next clock.Instant) {
	next = future
	for i := range r.len() {
		s := r.slot(i)
		word := s.word.Load()
		if word&slotState != slotTaken {
			continue
		}
		due := max(l.slowAt(clock.Instant(s.start.Load())), b.inForceAt)
		if due > now {
			next = min(next, due)
		} else if r.free(s, word) { // else it has just ended
			r.slow = append(r.slow, due)
		}
	}
	return next
}

// look finds what has come up by now without a call: slow calls, and probes that are over.
func (b *breaker) look(now clock.Instant) {
	b.mu.Lock()
	defer b.unlock()
	b.timeOut(now)
}

// ended frees the slot of a call that has ended, and returns the ticket that it counts by.
func (b *breaker) ended(t rule.Ticket) rule.Ticket {
	// This has to be read first. If the call has its slot afterwards, the state is that in which it
	// passed, or the next one, which is not closed.
	s := b.present()
	if b.running.Load().remove(t) && s.code() == closed {
		return s.ticket()
	}
	return notCounted
}

// markLongLived says that a call which has passed is long-lived: it is not slow, as long as it may last.
func (b *breaker) markLongLived(t rule.Ticket) {
	switch {
	case isWatched(t):
		b.running.Load().remove(t)
	case isProbe(t):
		b.mu.Lock()
		defer b.unlock()
		if place := placeOf(t); isOf(t, b.present()) && b.probes[place].state == probeUnderWay {
			b.probes[place].longLived = true
			b.updateRefusal()
		}
	}
}
