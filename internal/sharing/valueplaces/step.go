package valueplaces

import (
	"errors"
	"time"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/fleet"
	"github.com/penstock-go/penstock/internal/places"
	"github.com/penstock-go/penstock/internal/sharing/exchange"
)

// valueBeat is how often an instance says that it lives.
const beatInterval = 250 * time.Millisecond

// life is how long the store counts what was told without hearing from the instance.
func (p *Places) life() time.Duration { return places.LifeOf(p.set.Timeout()) }

// tellSoon has the store told of a value with the next batch.
func (p *Places) tellSoon(v *value) {
	if !v.isAsking && v.request == nil {
		v.isAsking = true
		v.shard.asking = append(v.shard.asking, v)
	}
}

// returnSoon has free places of a value returned, unless calls use them before, or the store told of calls
// that have passed without it.
func (p *Places) returnSoon(now clock.Instant, v *value) {
	if v.isReturning || v.isAsking || v.request != nil {
		return
	}
	v.isReturning = true
	s := v.shard
	s.returning = append(s.returning, v)
	s.returnAt = min(s.returnAt, now.Add(returnsAfter))
}

// Step sends what is to be sent of places of values.
func (set *Set) Step(now clock.Instant) {
	for _, p := range set.all {
		p.lookAt(now)
	}
}

func (p *Places) lookAt(now clock.Instant) {
	p.decideWaiting(now)
	if p.set.IsOut() {
		return
	}
	p.settleDoubts(now)
	p.forgetUsedUp(now)
	for i := range p.shards {
		if s := &p.shards[i]; s.err == nil || now >= s.retryAt {
			p.lookAtShard(now, s)
		}
	}
}

func (p *Places) lookAtShard(now clock.Instant, s *shard) {
	s.hasSent = false
	p.tellNext(now, s, &s.asking)
	if now >= s.returnAt {
		p.tellNext(now, s, &s.returning)
	}
	if len(s.returning) == 0 {
		s.returnAt = exchange.Never
	}
	p.beat(now, s)
	if s.err != nil && s.hasSent {
		s.retryAt = now.Add(p.set.Jitter(exchange.MaxProbeWait))
	}
}

// tellNext tells the store of the values in a list, as far as requests can be sent.
func (p *Places) tellNext(now clock.Instant, s *shard, list *[]*value) {
	for len(*list) > 0 && p.maySend(s) {
		v := (*list)[0]
		(*list)[0] = nil
		if *list = (*list)[1:]; list == &s.asking {
			v.isAsking = false
		} else {
			v.isReturning = false
		}
		p.tell(now, v)
	}
}

func (p *Places) maySend(s *shard) bool {
	return p.set.MaySendMore(p.set.PartitionOf(s.key))
}

// settleDoubts has the store told once more of the values of which a request has no answer for so
// long that it does not arrive any more.
func (p *Places) settleDoubts(now clock.Instant) {
	for len(p.doubted) > 0 && p.doubted[0].doubtUntil <= now {
		v := p.doubted[0]
		p.doubted[0] = nil
		p.doubted = p.doubted[1:]
		v.doubtUntil, v.tellAgain = 0, true
		p.tellSoon(v)
	}
}

// forgetUsedUp forgets the values of which no place was left a while ago.
func (p *Places) forgetUsedUp(now clock.Instant) {
	for len(p.usedUp) > 0 && p.usedUp[0].keptUntil <= now {
		v := p.usedUp[0]
		p.usedUp[0] = nil
		p.usedUp = p.usedUp[1:]
		v.keptUntil = 0
		p.forget(now, v)
	}
}

// decideWaiting decides on the calls that wait, if that is to be done without the backend.
func (p *Places) decideWaiting(now clock.Instant) {
	for i := range p.shards {
		s := &p.shards[i]
		if s.queued == 0 || !p.decidesAlone(now, s) {
			continue
		}
		for _, v := range p.values {
			if v.shard == s {
				p.decideAll(v)
			}
		}
	}
}

// decideAll decides on the calls that wait without the backend.
func (p *Places) decideAll(v *value) {
	v.shard.queued -= len(v.waiting)
	for _, w := range v.waiting {
		p.waiting--
		if w.left {
			continue
		}
		state := exchange.Denied
		if v.inUse < p.allowedOf(v) {
			state, w.ticket = exchange.Allowed, p.pass(v)
		}
		p.answer(w, state)
	}
	v.waiting = nil
}

// tell makes a claim of a value, if there is something to be told.
func (p *Places) tell(now clock.Instant, v *value) {
	if v.request != nil || len(v.waiting) == 0 && v.told == v.inUse && !v.tellAgain {
		p.forget(now, v)
		return
	}
	c := &request{places: p, claim: claim{value: v, shard: v.shard, sent: now, inUse: v.inUse, calls: v.waiting}}
	message := p.claim(now, v.shard, v.inUse)
	message.Value, message.Limit, message.Want = v.name, v.limit, int64(len(c.calls))
	v.shard.queued -= len(c.calls)
	v.request, v.waiting, v.held, v.tellAgain = &c.claim, nil, v.inUse, false
	p.send(now, message, c)
}

// beat says that the instance lives, if it has something of the shard.
func (p *Places) beat(now clock.Instant, s *shard) {
	if s.values > 0 && s.beatAt <= now && !s.beats && p.maySend(s) {
		s.beats = true
		p.send(now, p.claim(now, s, s.inUse), &request{places: p, claim: claim{shard: s, sent: now}})
	}
}

func (p *Places) claim(now clock.Instant, s *shard, inUse int64) *places.ValueClaim {
	return &places.ValueClaim{
		Instance: p.set.ClaimID(), Sequence: p.set.nextSequence(now), InUse: min(inUse, places.Most),
		Life: p.life(), Born: s.born, Number: s.number,
	}
}

// nextSequence is the number of the next claim: higher than those of an instance of the name before.
func (set *Set) nextSequence(now clock.Instant) int64 {
	set.sequence = max(set.sequence+1, now.Time().UnixMicro())
	return set.sequence
}

// request takes the answer to a claim.
type request struct {
	claim
	places *Places
}

func (p *Places) send(now clock.Instant, message *places.ValueClaim, c *request) {
	c.shard.hasSent = true
	p.set.Request(now, fleet.Request{Operation: fleet.ClaimValuePlaces, Terms: fleet.Terms{Key: c.shard.key}, Value: message}, c, true)
}

// Answered implements Requester.
func (c *request) Answered(now clock.Instant, reply *fleet.Reply) {
	p, s := c.places, c.shard
	if reply.Err == nil && reply.Value.Late {
		reply = &fleet.Reply{Err: errSequence}
	}
	switch {
	case p.place < 0 || c.failed: // what a late answer granted is told anew
		return
	case reply.Err != nil:
		p.refusedBy(now, s, reply.Err)
		c.Unanswered(now, reply.Err)
		return
	}
	s.lost = 0
	if s.err != nil {
		s.err, s.since, s.retryAt = nil, 0, 0
		p.set.NoteAccepted()
		p.refusing--
		p.tellAll(now, s)
	}
	g := &reply.Value
	isEmptied := s.born != 0 && g.Born != s.born
	// An answer that says that the instance is new may be lost, and the next one does not say it again. But
	// the store forgets an instance only after its lease has ended here, or with the whole register.
	if g.IsNew || isEmptied || c.value == nil && now >= s.end {
		p.tellAll(now, s)
	}
	s.born, s.number = g.Born, max(s.number, g.Number)
	if c.value == nil || g.IsNew {
		s.end = max(s.end, c.sent.Add(p.life()))
		s.beatAt = c.sent.Add(beatInterval)
	}
	switch {
	case c.value == nil:
		s.beats = false
		if s.values == 0 {
			s.beatAt = exchange.Never
		}
	case isEmptied, now >= s.end || now >= c.sent.Add(p.life()): // what was granted may be lost, or others may have it
		c.askAgain()
	default:
		c.value.tellAgain = false // it is what has just been told
		if g.Granted > 0 {
			c.value.number = max(c.value.number, g.Number)
		}
		c.granted(now, g.Granted)
	}
}

// askAgain has the calls of a claim ask once more.
func (c *request) askAgain() {
	v := c.value
	v.request, v.tellAgain = nil, true
	v.waiting = append(c.calls, v.waiting...)
	v.shard.queued += len(c.calls)
	c.places.tellSoon(v)
}

var errSequence = errors.New("fleet: the store has a later claim of this instance: another one has its name")

// granted gives the places that were granted to the calls that asked for them.
func (c *request) granted(now clock.Instant, count int64) {
	p, v := c.places, c.value
	v.request = nil
	v.told = c.inUse + max(0, count)
	v.held = c.inUse + count
	if v.isUsedUp = count < int64(len(c.calls)); v.isUsedUp && v.keptUntil == 0 && len(p.values) <= p.most/2 {
		v.keptUntil = now.Add(p.life())
		p.usedUp = append(p.usedUp, v)
	}
	for _, w := range c.calls {
		p.waiting--
		switch {
		case w.left:
		case v.inUse < v.held:
			w.ticket = p.pass(v)
			p.answer(w, exchange.Allowed)
		default:
			p.answer(w, exchange.Denied)
		}
	}
	p.serve(now, v)
	switch {
	case len(v.waiting) > 0 || v.tellAgain:
		p.tellSoon(v)
	case v.inUse != v.told:
		p.returnSoon(now, v)
	default:
		p.forget(now, v)
	}
}

// Unanswered implements Requester. What the store counts is not known: it is told anew, and once
// more when the request cannot arrive any more.
func (c *request) Unanswered(now clock.Instant, err error) {
	p, v, s := c.places, c.value, c.shard
	if c.failed || p.place < 0 {
		return
	}
	c.failed = true
	if s.lost++; s.lost >= exchange.MaxLost && !p.set.IsInDoubt() {
		p.refusedBy(now, s, err)
	}
	if v == nil {
		s.beats = false
		s.beatAt = now.Add(exchange.Tick)
		return
	}
	if c.askAgain(); p.decidesAlone(now, s) {
		p.decideAll(v)
	}
	if v.doubtUntil == 0 {
		p.doubted = append(p.doubted, v)
		v.doubtUntil = now.Add(p.life())
	}
}

// refusedBy has the values of a shard go on without the store, which does not count for them.
func (p *Places) refusedBy(now clock.Instant, s *shard, err error) {
	if s.err == nil {
		p.set.NoteRefusal(p.key, err)
		p.refusing++
		p.err = err
		s.since = now
	}
	s.err = err
	s.retryAt = now.Add(p.set.Jitter(exchange.MaxProbeWait))
	p.decideWaiting(now)
}

// tellAll has the store told of all values of a shard.
func (p *Places) tellAll(now clock.Instant, of *shard) {
	for _, v := range p.values {
		switch {
		case v.shard != of:
		case v.inUse > 0 || v.told > 0 || v.doubtUntil > 0:
			v.tellAgain = true
			v.held = min(v.held, v.inUse) // others may have the free ones meanwhile
			p.tellSoon(v)
		default:
			p.forget(now, v)
		}
	}
}

// BeginOutages decides on calls that wait: the backend does not answer.
func (set *Set) BeginOutages(now clock.Instant) {
	for _, p := range set.all {
		p.decideWaiting(now)
	}
}

// BackIsUp has all told anew: the backend answers again.
func (set *Set) BackIsUp(now clock.Instant) {
	for _, p := range set.all {
		p.retry(now)
	}
}

func (p *Places) retry(now clock.Instant) {
	for i := range p.shards {
		s := &p.shards[i]
		if s.values == 0 {
			continue
		}
		if s.err == nil {
			p.tellAll(now, s)
		}
		s.beatAt = now
	}
}

// Leave adds to a batch that the instance leaves. Calls under way count for a while longer.
func (set *Set) Leave(now clock.Instant, last *exchange.Batch) {
	for _, p := range set.all {
		p.leave(now, last)
	}
}

func (p *Places) leave(now clock.Instant, last *exchange.Batch) {
	for i := range p.shards {
		s := &p.shards[i]
		if s.end == 0 || p.set.IsOut() || !p.set.CanCount() {
			continue
		}
		message := p.claim(now, s, s.inUse)
		message.Life = 0
		last.Add(fleet.Request{Operation: fleet.ClaimValuePlaces, Terms: fleet.Terms{Key: s.key}, Value: message})
		s.end, s.beatAt = 0, exchange.Never
	}
}

// Next is when something of places of values is to be done.
func (set *Set) Next(now clock.Instant) clock.Instant {
	due := exchange.Never
	if !set.Running() {
		return due
	}
	for _, p := range set.all {
		due = min(due, p.due(now))
	}
	return due
}

func (p *Places) due(now clock.Instant) clock.Instant {
	due := exchange.Never
	for i := range p.shards {
		s := &p.shards[i]
		if alone := p.aloneFrom(now, s); p.waiting > 0 && now < alone {
			due = min(due, alone)
		}
		if !p.set.IsOut() {
			due = min(due, max(p.requestsDue(now, s), s.retryAt))
		}
	}
	if p.set.IsOut() {
		return due
	}
	if len(p.doubted) > 0 {
		due = min(due, p.doubted[0].doubtUntil)
	}
	if len(p.usedUp) > 0 {
		due = min(due, p.usedUp[0].keptUntil)
	}
	return due
}

// requestsDue is when something is to be sent of a shard.
func (p *Places) requestsDue(now clock.Instant, s *shard) clock.Instant {
	due := exchange.Never
	if s.values == 0 && len(s.asking) == 0 && len(s.returning) == 0 || !p.maySend(s) {
		return due
	}
	if len(s.asking) > 0 {
		due = now
	}
	if len(s.returning) > 0 {
		due = min(due, s.returnAt)
	}
	if s.values > 0 && !s.beats {
		due = min(due, s.beatAt)
	}
	return due
}

// UnansweredBefore implements Requester.
func (c *request) UnansweredBefore() int { return c.shard.lost }

// Probe calls ask with the keys that the values have in the store.
func (set *Set) Probe(ask func(fleet.Operation, fleet.Terms)) {
	for _, p := range set.all[:min(len(set.all), exchange.MaxProbed)] {
		for i := range p.shards {
			ask(fleet.LeaseBucket, fleet.Terms{Key: p.shards[i].key, Limit: 1, Window: time.Second, Burst: 1})
		}
	}
}

// Uses returns what is used of the limits.
func (set *Set) Uses() (uses []fleet.Use) {
	for _, p := range set.all {
		uses = append(uses, p.usage())
	}
	return uses
}

// Status tells how the limits are.
func (set *Set) Status() (all []fleet.LimitStatus) {
	for _, p := range set.all {
		all = append(all, p.status())
	}
	return all
}
