// Package valueplaces is the limits on calls under way of each value of an attribute, such as of each user: an
// instance of a fleet asks the backend for each place.
package valueplaces

import (
	"encoding/hex"
	"math"
	"slices"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/fleet"
	"github.com/penstock-go/penstock/internal/places"
	"github.com/penstock-go/penstock/internal/sharing/exchange"
	"github.com/penstock-go/penstock/internal/sharing/unordered"
)

// ID stands for a value, such as a user: the same on all instances.
type ID [16]byte

// Call is a call of a value, for [Places].
type Call struct {
	ID    ID
	Limit int64 // calls of the value under way at once
	Cell  ID    // has the place if there is no room for another value
}

// Set is the places of values of one instance.
type Set struct {
	*exchange.Exchange

	// What follows is guarded by Mu of the exchange.
	all      []*Places
	sequence int64 // of the last claim
}

// Places is a limit on the calls under way of each value of an attribute, in the whole fleet.
// A place is asked for when a call comes, and goes back when it ends: so the limit is exact, whichever
// instances the calls of a value come to. A place that has become free within [returnsAfter] is used
// again without asking.
//
// All methods may be called concurrently.
type Places struct {
	set *Set
	key string

	// What follows is guarded by Mu of the exchange.
	place    int     // in the list of all, -1 if released
	limit    float64 // as it is shown
	most     int     // values that have places of their own
	onOutage fleet.OnOutage
	refusing int   // shards for which the store does not count
	err      error // what it said last
	values   map[ID]*value
	slots    []callSlot // of calls under way
	free     []int      // slots
	shards   [shardCount]shard

	doubted []*value // of which a request has no answer, in the order of doubtUntil
	usedUp  []*value // in the order of keptUntil

	inUse, waiting int64
	withoutPlace   uint64 // calls of cells
}

// Values are spread over shards, so that a cluster has them on several nodes. An instance says of each
// shard that it lives.
const (
	shardCount   = 16
	returnsAfter = 5 * exchange.Tick / 10
)

// How many calls wait for answers at most, and how many while the store does not answer in time: all others
// are decided on at once. So calls do not pile up, whatever the rate at which they come.
const (
	maxWaiting     = 1000
	maxWaitingLate = 250
)

type shard struct {
	key    string
	values int           // that are known
	inUse  int64         // calls under way
	end    clock.Instant // of the lease: until then the store counts what was told
	beatAt clock.Instant // when to say that the instance lives
	beats  bool          // that is being said
	born   int64
	number int64

	asking    []*value // have calls that wait for an answer, or something that is to be told at once
	returning []*value // have places to return
	returnAt  clock.Instant
	queued    int   // calls that wait for an answer of which no request is under way
	hasSent   bool  // something, in this step
	lost      int   // claims without an answer in a row
	err       error // what the store says to requests
	retryAt   clock.Instant
	since     clock.Instant // of err
}

// valuePlaces is what the instance has of one value.
type value struct {
	id      ID
	name    string // in requests
	shard   *shard
	number  int64 // the fencing number of calls that begin now; 0 before the first grant
	limit   int64
	inUse   int64 // calls under way
	held    int64 // places that calls may have without asking
	told    int64 // places that the store counts, as of the last answer
	waiting []*waiting
	request *claim // under way

	isUsedUp  bool          // as of the last answer, no place was left
	keptUntil clock.Instant // the value is known until then for isUsedUp; 0: no

	isAsking, isReturning bool
	tellAgain             bool
	doubtUntil            clock.Instant // the store may count another number until then; 0: no
}

// callSlot is a call under way.
type callSlot struct {
	value  *value // nil: the slot is free
	number int64  // see [Places.Number]
}

// claim is a claim under way.
type claim struct {
	value  *value // nil: that the instance lives
	shard  *shard
	sent   clock.Instant
	inUse  int64
	calls  []*waiting
	failed bool
}

// waiting is a call that waits for a place.
type waiting struct {
	value  *value
	wake   func()
	state  exchange.State
	ticket uint64
	left   bool
}

// Wait is a call that waits for a place.
type Wait struct {
	waiting // guarded by Mu
	places  *Places
}

// New returns the places of values of a limit, of which no more than most have some of their
// own. Terms has the key and the limit that is shown. Release ends it.
func (set *Set) New(terms fleet.Terms, most int, onOutage fleet.OnOutage, now clock.Instant) *Places {
	p := &Places{
		set: set, key: terms.Key, limit: terms.Limit, most: most, onOutage: onOutage,
		values: map[ID]*value{},
	}
	for i := range p.shards {
		p.shards[i] = shard{key: terms.Key + "/" + hex.EncodeToString([]byte{byte(i)})[1:], beatAt: exchange.Never, returnAt: exchange.Never}
	}
	set.Mu.Lock()
	defer set.Unlock(now)
	p.place = len(set.all)
	set.all = append(set.all, p)
	set.Join(now)
	for i := range p.shards {
		if !set.CanCount() {
			p.refusedBy(now, &p.shards[i], set.CheckPlaces())
			p.shards[i].retryAt = exchange.Never
		}
	}
	return p
}

// Change has the limit go on with other terms.
func (p *Places) Change(terms fleet.Terms, most int, onOutage fleet.OnOutage) {
	p.set.Mu.Lock()
	defer p.set.Mu.Unlock()
	p.limit, p.most, p.onOutage = terms.Limit, most, onOutage
}

// Release says that no more calls come. Places of calls under way count until the instance does not
// say any more that it lives.
func (p *Places) Release(now clock.Instant) {
	set := p.set
	set.Mu.Lock()
	defer set.Unlock(now)
	if p.place < 0 {
		return
	}
	for _, v := range p.values {
		p.release(v)
	}
	for i := range p.shards {
		if p.shards[i].err != nil {
			set.NoteAccepted()
		}
	}
	unordered.Remove(&set.all, p.place).place = p.place
	p.place = -1
	set.Left()
}

// Take takes a place that is free here, or that an outage allows: [exchange.Allowed], with the ticket for
// [Places.End]. [exchange.Pending]: the fleet has to be asked.
func (p *Places) Take(now clock.Instant, c *Call) (ticket uint64, state exchange.State) {
	set := p.set
	set.Mu.Lock()
	defer set.Unlock(now)
	if p.place < 0 {
		return 0, exchange.Released
	}
	id := p.idOf(c)
	v, s := p.values[id], p.shardOf(id)
	switch {
	case v != nil && len(v.waiting) == 0 && v.mayUseHeld(now, c.Limit) && !p.decidesAlone(now, s):
		return p.pass(v), exchange.Allowed
	case p.mayWait(now, s):
		return 0, exchange.Pending
	}
	v = p.enter(now, c)
	v.limit = c.Limit
	return p.decide(now, v)
}

// Ask asks the fleet for a place. wake is called once, when Poll can tell the answer; perhaps at
// once. It must neither block nor call the Wait.
func (p *Places) Ask(now clock.Instant, c *Call, wake func()) *Wait {
	set := p.set
	set.Mu.Lock()
	defer set.Unlock(now)
	w := &Wait{waiting: waiting{wake: wake}, places: p}
	if p.place < 0 {
		w.state = exchange.Released
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
	v.waiting = append(v.waiting, &w.waiting)
	v.shard.queued++
	p.waiting++
	p.serve(now, v)
	p.tellSoon(v)
	return w
}

// Poll tells how the call stands: [exchange.Pending], [exchange.Allowed] with its ticket, [exchange.Denied] or
// [exchange.Released].
func (w *Wait) Poll() (ticket uint64, state exchange.State) {
	w.places.set.Mu.Lock()
	defer w.places.set.Mu.Unlock()
	return w.ticket, w.state
}

// Leave says that the call has given up, also after Poll has told that it may pass.
func (w *Wait) Leave(now clock.Instant) {
	p := w.places
	p.set.Mu.Lock()
	defer p.set.Unlock(now)
	if w.left {
		return
	}
	w.left = true
	switch w.state {
	case exchange.Allowed:
		p.end(now, w.ticket)
	case exchange.Pending:
		if i := slices.Index(w.value.waiting, &w.waiting); i >= 0 { // else it is in a claim under way
			w.value.waiting = slices.Delete(w.value.waiting, i, i+1)
			w.value.shard.queued--
			p.waiting--
			p.forget(now, w.value)
		}
	}
}

// End says that a call has ended.
func (p *Places) End(now clock.Instant, ticket uint64) {
	set := p.set
	set.Mu.Lock()
	defer set.Unlock(now)
	p.end(now, ticket)
}

// Number returns the fencing number of a call under way: higher than those of the calls that had its
// place before on other instances. It is 0 if the fleet has granted no place of the value yet, as in an
// outage, or if the call has ended.
func (p *Places) Number(ticket uint64) uint64 {
	p.set.Mu.Lock()
	defer p.set.Mu.Unlock()
	if slot := p.slotOf(ticket); slot != nil {
		return uint64(slot.number)
	}
	return 0
}

// InUse returns how many calls of a value are under way on this instance.
func (p *Places) InUse(id ID) int64 {
	p.set.Mu.Lock()
	defer p.set.Mu.Unlock()
	if v := p.values[id]; v != nil {
		return v.inUse
	}
	return 0
}

// Status tells how the limit is.
func (p *Places) Status() fleet.LimitStatus {
	p.set.Mu.Lock()
	defer p.set.Mu.Unlock()
	return p.status()
}

func (p *Places) status() fleet.LimitStatus {
	use := p.usage()
	s := fleet.LimitStatus{
		Key: p.key, Mode: fleet.ModeAsk, OnOutage: p.onOutage, Limit: p.limit, Demand: use.Demand, Passed: use.Passed,
		Outage: p.set.IsOut() || p.refusing > 0,
		Places: &fleet.PlacesStatus{InUse: p.inUse, Waiting: p.waiting, Status: places.Status{
			Limit: int64(p.limit), Held: p.inUse, Wanted: p.inUse + p.waiting, Target: p.inUse, Instances: int64(p.set.Instances()),
		}},
	}
	if s.Outage {
		s.Granted, s.Since = p.passesNow(), p.set.OutSince()
	}
	if p.refusing > 0 {
		s.Err = p.err
	}
	return s
}

// passesNow is how many calls of a value may be under way in an outage.
func (p *Places) passesNow() float64 {
	if p.onOutage == fleet.OutageOpen && p.limit > 0 {
		return math.Inf(1)
	}
	return float64(p.allowed(int64(p.limit)))
}

// usage is what the instance announces: the calls that want places, and those under way.
func (p *Places) usage() fleet.Use {
	return fleet.Use{Key: p.key, Demand: float64(p.inUse + p.waiting), Passed: float64(p.inUse)}
}

// Values returns how many values the instance has places of, and how many calls had to share those of
// others.
func (p *Places) Values() (count int, without uint64) {
	p.set.Mu.Lock()
	defer p.set.Mu.Unlock()
	return len(p.values), p.withoutPlace
}

// The functions below are called with the mutex held.

// idOf is the value whose places the call has: that of the cell if there is no room.
func (p *Places) idOf(c *Call) ID {
	if _, has := p.values[c.ID]; !has && len(p.values) >= p.most {
		return c.Cell
	}
	return c.ID
}

func (p *Places) shardOf(id ID) *shard { return &p.shards[id[0]%shardCount] }

func (p *Places) enter(now clock.Instant, c *Call) *value {
	id := p.idOf(c)
	v := p.values[id]
	if v == nil {
		v = &value{id: id, name: hex.EncodeToString(id[:]), shard: p.shardOf(id)}
		p.values[id] = v
		v.shard.values++
		v.shard.beatAt = min(v.shard.beatAt, max(now, v.shard.end.Add(beatInterval-p.life())))
	}
	return v
}

// forget forgets a value of which there is nothing.
func (p *Places) forget(now clock.Instant, v *value) {
	if v.inUse > 0 || v.told > 0 || len(v.waiting) > 0 || v.request != nil || v.doubtUntil > 0 || p.values[v.id] != v {
		return
	}
	if v.isUsedUp && (p.set.IsOut() || v.shard.err != nil || v.keptUntil > 0) {
		return // in an outage others go on with its places
	}
	delete(p.values, v.id)
	if v.shard.values--; v.shard.values == 0 && now >= v.shard.end {
		v.shard.beatAt = exchange.Never
	}
}

// mayUseHeld says whether another call may pass without asking.
func (v *value) mayUseHeld(now clock.Instant, limit int64) bool {
	return v.inUse < v.held && v.inUse < limit && now < v.shard.end
}

// pass has a call pass, and returns its ticket.
func (p *Places) pass(v *value) (ticket uint64) {
	call := callSlot{v, v.number}
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
func (p *Places) slotOf(ticket uint64) *callSlot {
	if ticket == 0 || ticket > uint64(len(p.slots)) || p.slots[ticket-1].value == nil {
		return nil
	}
	return &p.slots[ticket-1]
}

func (p *Places) end(now clock.Instant, ticket uint64) {
	slot := p.slotOf(ticket)
	if slot == nil {
		return
	}
	v := slot.value
	*slot = callSlot{}
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
func (p *Places) serve(now clock.Instant, v *value) {
	for len(v.waiting) > 0 && v.mayUseHeld(now, v.limit) {
		w := v.waiting[0]
		v.waiting = v.waiting[1:]
		v.shard.queued--
		p.waiting--
		if w.left {
			continue
		}
		w.ticket = p.pass(v)
		p.answer(w, exchange.Allowed)
	}
}

func (p *Places) answer(w *waiting, state exchange.State) {
	w.state = state
	p.set.Later(w.wake)
}

// release answers all calls that wait: nothing is decided.
func (p *Places) release(v *value) {
	if c := v.request; c != nil {
		v.waiting = append(c.calls, v.waiting...)
		c.failed = true
	}
	for _, w := range v.waiting {
		p.waiting--
		p.answer(w, exchange.Released)
	}
	v.request, v.waiting = nil, nil
}

// mayWait says whether a call may wait for an answer.
func (p *Places) mayWait(now clock.Instant, s *shard) bool {
	if p.set.IsOut() || s.err != nil {
		return p.waiting < maxWaitingLate && !p.decidesAlone(now, s)
	}
	return p.waiting < maxWaiting && p.set.Running()
}

// decidesAlone says whether calls are decided on without the backend.
func (p *Places) decidesAlone(now clock.Instant, s *shard) bool {
	return now >= p.aloneFrom(now, s)
}

// aloneFrom is from when on calls are decided on without the backend: when the store does not count any
// more what it was told before the outage, and others may have that. Until then an answer may be late, and
// calls wait for it.
func (p *Places) aloneFrom(now clock.Instant, s *shard) clock.Instant {
	set := p.set
	from := exchange.Never
	switch {
	case !set.Running():
		return now
	case set.IsOut():
		from = set.OutSince()
	case s.err != nil && now < s.retryAt:
		from = s.since
	default:
		return exchange.Never
	}
	if p.onOutage != fleet.OutageOpen {
		from = from.Add(p.life() - set.Timeout())
	}
	return from
}

// decide decides on a call without the backend, which is told of it.
func (p *Places) decide(now clock.Instant, v *value) (ticket uint64, state exchange.State) {
	if v.inUse < p.allowedOf(v) {
		ticket = p.pass(v)
		p.returnSoon(now, v)
		return ticket, exchange.Allowed
	}
	p.forget(now, v)
	return 0, exchange.Denied
}

// allowedOf is how many calls of a value may be under way in an outage.
func (p *Places) allowedOf(v *value) int64 {
	switch {
	case p.onOutage != fleet.OutageLast:
		return p.allowed(v.limit)
	case v.isUsedUp:
		return min(v.held, v.limit)
	}
	return max(p.allowed(v.limit), min(v.held, v.limit))
}

// allowed is the same of values of which nothing is known, as are most when an outage begins.
func (p *Places) allowed(limit int64) int64 {
	count := int64(p.set.Instances())
	switch {
	case p.onOutage == fleet.OutageOpen:
		return limit * places.Most // without a limit, but for rules that let nothing pass
	case p.onOutage == fleet.OutageClosed || count == 0:
		return 0
	case p.onOutage == fleet.OutageLast:
		return (limit + count - 1) / count
	}
	return limit / count
}
