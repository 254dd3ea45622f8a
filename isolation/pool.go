package isolation

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/internal/sharing/leasedplaces"
	"github.com/penstock-go/penstock/internal/tenants"
	"github.com/penstock-go/penstock/internal/valuehash"
	"github.com/penstock-go/penstock/internal/waitqueue"
	"github.com/penstock-go/penstock/rule"
)

// pool is what all versions of a rule share: the calls under way and those that wait.
//
// The word packs what decides whether a call passes:
//
//	version of the rule in force, 33 bits | refused levels, 3 bits | flags, 2 bits | open group, 6 bits |
//	calls under way, 20 bits
//
// While no flag is set, calls pass and end by one compare-and-swap of the word. Because
// it includes the version, no call passes by a limit that is not in force any more.
// While a flag is set, only the holder of mu changes the word. There are three rules:
//
//   - Whoever changes anything else than the number of calls under way holds mu and
//     has set the flag closed, see lock.
//   - While calls wait, the flag waiting is set, so that whoever ends or comes then
//     takes the mutex. No call can miss that another one waits. It is set as well while the
//     next place that becomes free goes to the fleet.
//   - When mu is unlocked, no place is free while a call waits.
type pool struct {
	_ [cacheLine]byte // what every call writes stands apart from what it only reads

	word    atomic.Uint64
	highest atomic.Uint64 // calls under way since the minute began
	due     atomic.Int64  // the clock.Instant at which lock has something to do because of the time; changed under mu
	_       [cacheLine - 24]byte

	lease  *leasedplaces.Places // of a limit of the whole fleet, else nil; never changes
	away   atomic.Uint64        // see unlock; changed under mu
	hasher *valuehash.Hasher    // of tenants; never changes
	missed atomic.Uint64        // calls refused for want of a place of the fleet, since it was looked at
	full   full                 // who is refused because the queue is full

	acquaintances tenants.Acquaintances

	mu            sync.Mutex // guards what follows
	places        uint64     // calls under way; valid only between lock and unlock
	ages          ages
	minuteEnd     clock.Instant
	queue         waitqueue.Queue[waiter]
	charged       charged  // calls under way whose tenants were charged for them
	current       *limiter // the version in force
	retired       bool     // current is gone; a newer version may follow
	highestBefore uint64   // calls under way in the minute before
	highestLooked uint64   // those since the minute began that highest does not tell any more
	numbers       numbers  // of a limit of the whole fleet
	ended         *waiter  // the first of those to be woken by unlock, and the last one
	lastEnded     *waiter
	toTell        uint64        // places that were given back because of their age, of which unlock tells
	quietUntil    clock.Instant // nothing is told of them before: once a minute is enough
}

const (
	cacheLine = 64

	placesMask = 1<<20 - 1 // more than maxLimit
	groupShift = 20
	groupMask  = indexMask << groupShift
	waiting    = 1 << 26 // the queue is not empty, or a place is to go to the fleet
	closed     = 1 << 27 // mu is locked, or the rule has been retired

	// How many levels of priority, from the lowest, may not join the queue. It is 0 unless
	// the queue is full.
	refusedShift = 28
	refusedMask  = 7 << refusedShift

	versionShift = 31
)

func (p *pool) init(l *limiter, now clock.Instant) {
	p.setCurrent(l)
	p.word.Store(l.open | p.takenPlaces())
	p.minuteEnd = now - now%minute + minute
	p.ages.init(now, l.rule.MaxAge)
	p.setDue()
}

// groupOf returns the index of the open group.
func groupOf(word uint64) uint64 { return word & groupMask >> groupShift }

// lock locks the pool and closes its word, so that nobody else changes it until unlock. Then it does
// what the time asks for.
func (p *pool) lock(now clock.Instant) {
	p.mu.Lock()
	p.places = p.word.Or(closed)&placesMask - p.away.Load()
	if now >= clock.Instant(p.due.Load()) {
		p.beginMinute(now)
		p.lapse(now)
		places := p.places
		if p.places = p.ages.advance(now, places, p.current.rule.MaxAge); p.places < places {
			p.settleExpired(now)
			p.returned(now)
			p.serve(now)
		}
		if p.ages.untold > 0 && now >= p.quietUntil {
			p.toTell, p.ages.untold, p.quietUntil = p.ages.untold, 0, now+minute
		}
	}
}

// setDue notes when the time asks for something again.
func (p *pool) setDue() {
	p.due.Store(int64(min(p.minuteEnd, p.ages.next(p.current.rule.MaxAge), p.leaseEnd())))
}

// unlock publishes what has changed since lock, and wakes the calls whose wait has ended.
func (p *pool) unlock() {
	if given := p.toTell; given > 0 {
		p.toTell = 0
		defer p.current.tell(given)
	}
	p.publish()
}

// publish is unlock without what unlock tells.
func (p *pool) publish() {
	p.setDue()
	word := p.current.open | p.takenPlaces() | uint64(p.ages.open)<<groupShift
	if p.queue.Len() > 0 || p.givesBack() {
		word |= waiting
	}
	word |= uint64(p.refusedLevels()) << refusedShift
	if p.retired {
		word |= closed
	}
	p.word.Store(word)
	if p.ended != nil {
		defer p.mu.Unlock()
		p.wakeAll()
		return
	}
	p.mu.Unlock()
}

// wakeAll wakes the calls of which wakeLater has taken note, also those behind one whose wake-up
// panics: it may be code of the program. mu is held.
func (p *pool) wakeAll() {
	defer func() {
		if p.ended != nil {
			p.wakeAll()
		}
	}()
	for p.ended != nil {
		w := p.ended
		if p.ended = w.nextEnded; p.ended == nil {
			p.lastEnded = nil
		}
		w.nextEnded, w.isEnding = nil, false
		w.Wake()
	}
}

// release frees the place of a call that ends. If a call waits, that gets it.
// The start is when it passed, of one that is known to have been made; else 0.
func (p *pool) release(now, start clock.Instant, t rule.Ticket) {
	for {
		word := p.word.Load()
		if word&(waiting|closed) != 0 || word&placesMask <= p.away.Load() || now >= clock.Instant(p.due.Load()) ||
			!p.ages.isOf(groupOf(word), t) {
			p.releaseLocked(now, start, t)
			return
		}
		if p.word.CompareAndSwap(word, word-1) {
			return
		}
	}
}

func (p *pool) releaseLocked(now, start clock.Instant, t rule.Ticket) {
	p.lock(now)
	defer p.unlock()
	p.settle(now, start, t)
	if p.ages.end(t&ageMask, p.places) {
		p.places--
		p.returned(now)
		p.serve(now)
	}
}

// The methods below are called between lock and unlock.

// activate puts a version in force if it is newer than the one that is. It returns
// whether the version is in force.
func (p *pool) activate(l *limiter, now clock.Instant) bool {
	if l.version > p.current.version {
		p.replace(l, now)
	}
	return l.version == p.current.version && !p.retired
}

// replace puts a newer version of the rule in force. Waiting calls stay in the queue
// as far as the new version lets them wait.
func (p *pool) replace(l *limiter, now clock.Instant) {
	former := p.current
	p.full.reset()
	p.setCurrent(l)
	p.retired = false
	p.changeLease(now)
	if l.rule.Shadow || l.rule.Origin != former.rule.Origin {
		p.releaseAll() // the rule may not be one for them any more
	}
	p.serve(now)
	switch {
	case l.atFull == rule.Block:
		for w := range p.queue.All() {
			p.refuse(w)
		}
	case l.rule.MaxWait < former.rule.MaxWait:
		for w := range p.queue.All() {
			p.wakeLater(w) // its wait ends sooner
		}
	}
}

func (p *pool) setCurrent(l *limiter) {
	p.current = l
	p.queue.NewestFirst = l.rule.Order == LIFO
	p.queue.ShareFairly(l.rule.remembered(), l.rule.flood())
}

// takeIfFree takes a place if there is a free one. Then no call waits.
func (p *pool) takeIfFree() (rule.Ticket, bool) {
	if p.places >= p.allowed() {
		return 0, false
	}
	return p.take(), true
}

func (p *pool) take() rule.Ticket {
	p.places++
	p.raiseHighest(p.places)
	return p.ages.ticketOf(uint64(p.ages.open))
}

// serve hands free places to waiting calls.
func (p *pool) serve(now clock.Instant) {
	for p.queue.Len() > 0 && p.places < p.allowed() {
		w := p.queue.First()
		if now > p.deadlineOf(w) {
			p.refuse(w)
			continue
		}
		w.Grant(p.charge(now, w, p.take()))
		p.full.reset()
		p.wakeLater(w)
	}
}

// deadlineOf returns when a call has waited for as long as it may.
func (p *pool) deadlineOf(w *waiter) clock.Instant { return w.since.Add(p.current.rule.MaxWait) }

// refusedLevels returns how many levels of priority, from the lowest, may not join the
// queue: 0 unless it is full. While calls wait that are less important than one that comes,
// the last of these makes way. With LIFO the oldest call of the same priority does so, too, and with
// FairBy one of the tenant that has most.
func (p *pool) refusedLevels() int {
	switch {
	case p.queue.Len() == 0 || p.queue.Len() < p.current.rule.MaxQueue:
		return 0
	case p.queue.NewestFirst, p.current.isFair:
		return p.queue.Lowest()
	}
	return p.queue.Lowest() + 1
}

// makeSpace makes space in the queue for a call. It returns false if there is none for
// calls of that level.
func (p *pool) makeSpace(level int, of tenant) bool {
	maxQueue := p.current.rule.MaxQueue
	for p.queue.NewestFirst && p.queue.Len() > maxQueue { // a reload has lowered MaxQueue
		p.refuse(p.queue.Last())
	}
	if p.queue.Len() < maxQueue {
		return true
	}
	if level < p.refusedLevels() {
		return false
	}
	if !p.current.isFair || level > p.queue.Lowest() {
		p.refuse(p.queue.Last())
		return true
	}
	gone := p.queue.MakesWay(of.Tenant)
	if gone == nil {
		p.full.refuse(of.Key, level)
		if !of.Known && p.queue.NobodyMakesWay() {
			p.full.refuseNewcomers(level)
		}
		return false
	}
	wasFlooded := p.queue.IsFlooded(level)
	p.queue.Remove(&gone.node) // those who are refused now still would be, unless a flood has ended
	if wasFlooded && !p.queue.IsFlooded(level) {
		p.full.reset()
	}
	gone.Refuse()
	p.wakeLater(gone)
	return true
}

// refuse ends the wait of a call that gets no place.
func (p *pool) refuse(w *waiter) {
	p.queue.Remove(&w.node)
	p.full.reset()
	w.Refuse()
	p.wakeLater(w)
}

// releaseAll ends all waits: the rule is gone, or is one for others.
func (p *pool) releaseAll() {
	p.full.reset()
	for w := range p.queue.All() {
		p.queue.Remove(&w.node)
		w.Release()
		p.wakeLater(w)
	}
}

// wakeLater has unlock wake a call, once all that has changed is published.
func (p *pool) wakeLater(w *waiter) {
	switch {
	case w.isEnding:
		return
	case p.lastEnded == nil:
		p.ended = w
	default:
		p.lastEnded.nextEnded = w
	}
	w.isEnding, p.lastEnded = true, w
}

// minute is the time for which highest numbers are kept.
const minute = clock.Instant(time.Minute)

// beginMinute begins another minute of the clock if now is in a later one. It is called
// before a call ends. As long as none does, calls that pass only raise the number under
// way, so the present number is the highest since the minute began, and that of all
// minutes without a call that ended.
func (p *pool) beginMinute(now clock.Instant) {
	end := p.minuteEnd
	if now < end {
		return
	}
	p.highestBefore = p.places
	if now < end+minute {
		p.highestBefore = max(p.highest.Load(), p.highestLooked)
	}
	p.highestLooked = 0
	p.highest.Store(p.places)
	p.minuteEnd = now - now%minute + minute
}

// raiseHighest may be called without the lock.
func (p *pool) raiseHighest(places uint64) {
	for {
		highest := p.highest.Load()
		if highest >= places || p.highest.CompareAndSwap(highest, places) {
			return
		}
	}
}
