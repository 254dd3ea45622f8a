package fleet

import (
	"encoding/hex"
	"slices"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/internal/places"
)

// ValueID stands for a value, such as a user: the same on all instances.
type ValueID [16]byte

// ValueCall is a call of a value, for [ValuePlaces].
type ValueCall struct {
	ID    ValueID
	Limit int64   // calls of the value under way at once
	Cell  ValueID // has the place if there is no room for another value
}

// ValuePlaces is a limit on the calls under way of each value of an attribute, in the whole fleet.
// A place is asked for when a call comes, and goes back when it ends: so the limit is exact, whichever
// instances the calls of a value come to. A place that has become free within [returnsAfter] is used
// again without asking.
//
// All methods may be called concurrently.
type ValuePlaces struct {
	member *Member
	key    string
	group  *Group // of which it shows the calls
	most   int    // values that have places of their own

	// What follows is guarded by member.mu.
	place    int // in the list of all, -1 if released
	onOutage OnOutage
	values   map[ValueID]*valuePlaces
	slots    []valueSlot // of calls under way
	free     []int       // slots
	shards   [valueShards]valueShard

	doubted []*valuePlaces // of which a request has no answer, in the order of doubtUntil
	usedUp  []*valuePlaces // in the order of keptUntil

	inUse, waiting int64
	withoutPlace   uint64 // calls of cells
}

// Values are spread over shards, so that a cluster has them on several nodes. An instance says of each
// shard that it lives.
const (
	valueShards  = 16
	returnsAfter = 5 * tick / 10
)

// How many calls wait for answers at most, and how many while the store does not answer in time: all others
// are decided on at once. So calls do not pile up, whatever the rate at which they come.
const (
	maxWaiting     = 1000
	maxWaitingLate = 250
)

type valueShard struct {
	key    string
	values int           // that are known
	inUse  int64         // calls under way
	end    clock.Instant // of the lease: until then the store counts what was told
	beatAt clock.Instant // when to say that the instance lives
	beats  bool          // that is being said
	born   int64
	number int64

	asking    []*valuePlaces // have calls that wait for an answer, or something that is to be told at once
	returning []*valuePlaces // have places to return
	returnAt  clock.Instant
	queued    int   // calls that wait for an answer of which no request is under way
	hasSent   bool  // something, in this step
	lost      int   // claims without an answer in a row
	err       error // what the store says to requests
	retryAt   clock.Instant
	since     clock.Instant // of err
}

// valuePlaces is what the instance has of one value.
type valuePlaces struct {
	id      ValueID
	name    string // in requests
	shard   *valueShard
	number  int64 // the fencing number of calls that begin now; 0 before the first grant
	limit   int64
	inUse   int64 // calls under way
	held    int64 // places that calls may have without asking
	told    int64 // places that the store counts, as of the last answer
	waiting []*PlaceWait
	request *valueClaim // under way

	isUsedUp  bool          // as of the last answer, no place was left
	keptUntil clock.Instant // the value is known until then for isUsedUp; 0: no

	isAsking, isReturning bool
	tellAgain             bool
	doubtUntil            clock.Instant // the store may count another number until then; 0: no
}

// valueSlot is a call under way.
type valueSlot struct {
	value  *valuePlaces // nil: the slot is free
	number int64        // see [ValuePlaces.Number]
}

// valueClaim is a claim under way.
type valueClaim struct {
	places *ValuePlaces
	value  *valuePlaces // nil: that the instance lives
	shard  *valueShard
	sent   clock.Instant
	inUse  int64
	calls  []*PlaceWait
	failed bool
}

// PlaceWait is a call that waits for a place.
type PlaceWait struct {
	places *ValuePlaces
	value  *valuePlaces
	wake   func()

	// What follows is guarded by member.mu.
	state  WaitState
	ticket uint64
	left   bool
}

// ValuePlaces returns the places of values of a limit, of which no more than most have some of their
// own. Terms has the key and the limit that is shown. Release ends it.
func (m *Member) ValuePlaces(terms Terms, most int, onOutage OnOutage, now clock.Instant) *ValuePlaces {
	p := &ValuePlaces{
		member: m, key: terms.Key, most: most, onOutage: onOutage,
		values: map[ValueID]*valuePlaces{}, group: m.Group(terms, ModeAsk, onOutage, now),
	}
	for i := range p.shards {
		p.shards[i] = valueShard{key: terms.Key + "/" + hex.EncodeToString([]byte{byte(i)})[1:], beatAt: never, returnAt: never}
	}
	m.mu.Lock()
	defer m.unlock(now)
	p.group.byValue = p
	p.place = len(m.values)
	m.values = append(m.values, p)
	for i := range p.shards {
		if !m.canCount() {
			p.refusedBy(now, &p.shards[i], errNoCount)
			p.shards[i].retryAt = never
		}
	}
	return p
}

// Change has the limit go on with other terms.
func (p *ValuePlaces) Change(terms Terms, most int, onOutage OnOutage) {
	p.group.Change(terms, ModeAsk, onOutage)
	p.member.mu.Lock()
	defer p.member.mu.Unlock()
	p.onOutage, p.most = onOutage, most
}

// Release says that no more calls come. Places of calls under way count until the instance does not
// say any more that it lives.
func (p *ValuePlaces) Release(now clock.Instant) {
	p.group.Release()
	m := p.member
	m.mu.Lock()
	defer m.unlock(now)
	if p.place < 0 {
		return
	}
	for _, v := range p.values {
		p.release(v)
	}
	for i := range p.shards {
		if p.shards[i].err != nil {
			m.noteAccepted()
		}
	}
	removeFrom[placesByValue](&m.values, p)
	m.restIfUnused()
}

// Take takes a place that is free here, or that an outage allows: [WaitAllowed], with the ticket for
// [ValuePlaces.End]. [WaitPending]: the fleet has to be asked.
func (p *ValuePlaces) Take(now clock.Instant, c *ValueCall) (ticket uint64, state WaitState) {
	m := p.member
	m.mu.Lock()
	defer m.unlock(now)
	if p.place < 0 {
		return 0, WaitReleased
	}
	id := p.idOf(c)
	v, s := p.values[id], p.shardOf(id)
	switch {
	case v != nil && len(v.waiting) == 0 && v.mayUseHeld(now, c.Limit) && !p.decidesAlone(now, s):
		return p.pass(v), WaitAllowed
	case p.mayWait(now, s):
		return 0, WaitPending
	}
	v = p.enter(now, c)
	v.limit = c.Limit
	return p.decide(now, v)
}

// Ask asks the fleet for a place. wake is called once, when Poll can tell the answer; perhaps at
// once. It must neither block nor call the PlaceWait.
func (p *ValuePlaces) Ask(now clock.Instant, c *ValueCall, wake func()) *PlaceWait {
	m := p.member
	m.mu.Lock()
	defer m.unlock(now)
	w := &PlaceWait{places: p, wake: wake}
	if p.place < 0 {
		w.state = WaitReleased
		return w
	}
	if id := p.idOf(c); id != c.ID {
		p.withoutPlace++
	}
	v := p.enter(now, c)
	v.limit, w.value = c.Limit, v
	if !p.mayWait(now, v.shard) {
		w.ticket, w.state = p.decide(now, v)
		return w
	}
	v.waiting = append(v.waiting, w)
	v.shard.queued++
	p.waiting++
	p.serve(now, v)
	p.tellSoon(v)
	return w
}

// Poll tells how the call stands: [WaitPending], [WaitAllowed] with its ticket, [WaitDenied] or
// [WaitReleased].
func (w *PlaceWait) Poll() (ticket uint64, state WaitState) {
	w.places.member.mu.Lock()
	defer w.places.member.mu.Unlock()
	return w.ticket, w.state
}

// Leave says that the call has given up, also after Poll has told that it may pass.
func (w *PlaceWait) Leave(now clock.Instant) {
	p := w.places
	p.member.mu.Lock()
	defer p.member.unlock(now)
	if w.left {
		return
	}
	w.left = true
	switch w.state {
	case WaitAllowed:
		p.end(now, w.ticket)
	case WaitPending:
		if i := slices.Index(w.value.waiting, w); i >= 0 { // else it is in a claim under way
			w.value.waiting = slices.Delete(w.value.waiting, i, i+1)
			w.value.shard.queued--
			p.waiting--
			p.forget(now, w.value)
		}
	}
}

// End says that a call has ended.
func (p *ValuePlaces) End(now clock.Instant, ticket uint64) {
	m := p.member
	m.mu.Lock()
	defer m.unlock(now)
	p.end(now, ticket)
}

// Number returns the fencing number of a call under way: higher than those of the calls that had its
// place before on other instances. It is 0 if the fleet has granted no place of the value yet, as in an
// outage, or if the call has ended.
func (p *ValuePlaces) Number(ticket uint64) uint64 {
	p.member.mu.Lock()
	defer p.member.mu.Unlock()
	if slot := p.slotOf(ticket); slot != nil {
		return uint64(slot.number)
	}
	return 0
}

// InUse returns how many calls of a value are under way on this instance.
func (p *ValuePlaces) InUse(id ValueID) int64 {
	p.member.mu.Lock()
	defer p.member.mu.Unlock()
	if v := p.values[id]; v != nil {
		return v.inUse
	}
	return 0
}

// Status tells how the limit is.
func (p *ValuePlaces) Status(now clock.Instant) LimitStatus { return p.group.Status(now) }

// Values returns how many values the instance has places of, and how many calls had to share those of
// others.
func (p *ValuePlaces) Values() (count int, without uint64) {
	p.member.mu.Lock()
	defer p.member.mu.Unlock()
	return len(p.values), p.withoutPlace
}

// The functions below are called with the mutex of the member held.

// idOf is the value whose places the call has: that of the cell if there is no room.
func (p *ValuePlaces) idOf(c *ValueCall) ValueID {
	if _, has := p.values[c.ID]; !has && len(p.values) >= p.most {
		return c.Cell
	}
	return c.ID
}

func (p *ValuePlaces) shardOf(id ValueID) *valueShard { return &p.shards[id[0]%valueShards] }

func (p *ValuePlaces) enter(now clock.Instant, c *ValueCall) *valuePlaces {
	id := p.idOf(c)
	v := p.values[id]
	if v == nil {
		v = &valuePlaces{id: id, name: hex.EncodeToString(id[:]), shard: p.shardOf(id)}
		p.values[id] = v
		v.shard.values++
		v.shard.beatAt = min(v.shard.beatAt, max(now, v.shard.end.Add(valueBeat-p.life())))
	}
	return v
}

// forget forgets a value of which there is nothing.
func (p *ValuePlaces) forget(now clock.Instant, v *valuePlaces) {
	if v.inUse > 0 || v.told > 0 || len(v.waiting) > 0 || v.request != nil || v.doubtUntil > 0 || p.values[v.id] != v {
		return
	}
	if v.isUsedUp && (p.member.connection.out || v.shard.err != nil || v.keptUntil > 0) {
		return // in an outage others go on with its places
	}
	delete(p.values, v.id)
	if v.shard.values--; v.shard.values == 0 && now >= v.shard.end {
		v.shard.beatAt = never
	}
}

// mayUseHeld says whether another call may pass without asking.
func (v *valuePlaces) mayUseHeld(now clock.Instant, limit int64) bool {
	return v.inUse < v.held && v.inUse < limit && now < v.shard.end
}

// pass has a call pass, and returns its ticket.
func (p *ValuePlaces) pass(v *valuePlaces) (ticket uint64) {
	call := valueSlot{v, v.number}
	if n := len(p.free); n > 0 {
		ticket, p.free = uint64(p.free[n-1]), p.free[:n-1]
		p.slots[ticket-1] = call
	} else {
		p.slots = append(p.slots, call)
		ticket = uint64(len(p.slots))
	}
	v.inUse++
	v.shard.inUse++
	p.inUse++
	return ticket
}

// slotOf returns the slot of a call under way, nil if it has ended.
func (p *ValuePlaces) slotOf(ticket uint64) *valueSlot {
	if ticket == 0 || ticket > uint64(len(p.slots)) || p.slots[ticket-1].value == nil {
		return nil
	}
	return &p.slots[ticket-1]
}

func (p *ValuePlaces) end(now clock.Instant, ticket uint64) {
	slot := p.slotOf(ticket)
	if slot == nil {
		return
	}
	v := slot.value
	*slot = valueSlot{}
	p.free = append(p.free, int(ticket))
	v.inUse--
	v.shard.inUse--
	p.inUse--
	p.serve(now, v)
	if v.inUse < v.told {
		p.returnSoon(now, v)
		return
	}
	p.forget(now, v)
}

// serve gives places that are free here to calls that wait.
func (p *ValuePlaces) serve(now clock.Instant, v *valuePlaces) {
	for len(v.waiting) > 0 && v.mayUseHeld(now, v.limit) {
		w := v.waiting[0]
		v.waiting = v.waiting[1:]
		v.shard.queued--
		p.waiting--
		if w.left {
			continue
		}
		w.ticket = p.pass(v)
		p.answer(w, WaitAllowed)
	}
}

func (p *ValuePlaces) answer(w *PlaceWait, state WaitState) {
	w.state = state
	p.member.calls = append(p.member.calls, w.wake)
}

// release answers all calls that wait: nothing is decided.
func (p *ValuePlaces) release(v *valuePlaces) {
	if c := v.request; c != nil {
		v.waiting = append(c.calls, v.waiting...)
		c.failed = true
	}
	for _, w := range v.waiting {
		p.waiting--
		p.answer(w, WaitReleased)
	}
	v.request, v.waiting = nil, nil
}

// mayWait says whether a call may wait for an answer.
func (p *ValuePlaces) mayWait(now clock.Instant, s *valueShard) bool {
	if p.member.connection.out || s.err != nil {
		return p.waiting < maxWaitingLate && !p.decidesAlone(now, s)
	}
	return p.waiting < maxWaiting && p.member.running
}

// decidesAlone says whether calls are decided on without the backend.
func (p *ValuePlaces) decidesAlone(now clock.Instant, s *valueShard) bool {
	return now >= p.aloneFrom(now, s)
}

// aloneFrom is from when on calls are decided on without the backend: when the store does not count any
// more what it was told before the outage, and others may have that. Until then an answer may be late, and
// calls wait for it.
func (p *ValuePlaces) aloneFrom(now clock.Instant, s *valueShard) clock.Instant {
	m := p.member
	from := never
	switch {
	case !m.running:
		return now
	case m.connection.out:
		from = m.connection.since
	case s.err != nil && now < s.retryAt:
		from = s.since
	default:
		return never
	}
	if p.onOutage != OutageOpen {
		from = from.Add(p.life() - m.config.Timeout)
	}
	return from
}

// decide decides on a call without the backend, which is told of it.
func (p *ValuePlaces) decide(now clock.Instant, v *valuePlaces) (ticket uint64, state WaitState) {
	if v.inUse < p.allowedOf(v) {
		ticket = p.pass(v)
		p.returnSoon(now, v)
		return ticket, WaitAllowed
	}
	p.forget(now, v)
	return 0, WaitDenied
}

// allowedOf is how many calls of a value may be under way in an outage.
func (p *ValuePlaces) allowedOf(v *valuePlaces) int64 {
	switch {
	case p.onOutage != OutageLast:
		return p.allowed(v.limit)
	case v.isUsedUp:
		return min(v.held, v.limit)
	}
	return max(p.allowed(v.limit), min(v.held, v.limit))
}

// allowed is the same of values of which nothing is known, as are most when an outage begins.
func (p *ValuePlaces) allowed(limit int64) int64 {
	count := int64(p.member.count)
	switch {
	case p.onOutage == OutageOpen:
		return limit * places.Most // without a limit, but for rules that let nothing pass
	case p.onOutage == OutageClosed || count == 0:
		return 0
	case p.onOutage == OutageLast:
		return (limit + count - 1) / count
	}
	return limit / count
}
