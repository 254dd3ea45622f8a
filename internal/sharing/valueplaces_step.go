package sharing

import (
	"errors"
	"fmt"
	"time"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/fleet"
	"github.com/penstock-go/penstock/internal/places"
)

var errNoCount = fmt.Errorf("%w: a limit on calls under way needs a backend that counts: use Redis or Valkey, or remove scope", fleet.ErrUnsupported)

// valueBeat is how often an instance says that it lives.
const valueBeat = 250 * time.Millisecond

// life is how long the store counts what was told without hearing from the instance.
func (p *ValuePlaces) life() time.Duration { return places.LifeOf(p.member.config.Timeout) }

// tellSoon has the store told of a value with the next batch.
func (p *ValuePlaces) tellSoon(v *valuePlaces) {
	if !v.isAsking && v.request == nil {
		v.isAsking = true
		v.shard.asking = append(v.shard.asking, v)
	}
}

// returnSoon has free places of a value returned, unless calls use them before, or the store told of calls
// that have passed without it.
func (p *ValuePlaces) returnSoon(now clock.Instant, v *valuePlaces) {
	if v.isReturning || v.isAsking || v.request != nil {
		return
	}
	v.isReturning = true
	s := v.shard
	s.returning = append(s.returning, v)
	s.returnAt = min(s.returnAt, now.Add(returnsAfter))
}

// placesByValue is a [ValuePlaces] as its member knows it. The mutex of the member is held.
type placesByValue interface {
	unordered
	lookAt(now clock.Instant)
	decideWaiting(now clock.Instant)
	retry(now clock.Instant)
	leave(now clock.Instant, last *Batch)
	due(now clock.Instant) clock.Instant
	eachKey(do func(key string))
}

// countedCalls is the same as its group knows it.
type countedCalls interface {
	calls() (inUse, waiting int64)
	allowed(limit int64) int64
}

func (p *ValuePlaces) calls() (inUse, waiting int64) { return p.inUse, p.waiting }

// eachKey calls do with the keys that the values have in the store.
func (p *ValuePlaces) eachKey(do func(key string)) {
	for i := range p.shards {
		do(p.shards[i].key)
	}
}

// lookAtValues sends what is to be sent of places of values.
func (m *Member) lookAtValues(now clock.Instant) {
	for _, p := range m.values {
		p.lookAt(now)
	}
}

func (p *ValuePlaces) lookAt(now clock.Instant) {
	p.decideWaiting(now)
	if p.member.connection.out {
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

func (p *ValuePlaces) lookAtShard(now clock.Instant, s *valueShard) {
	s.hasSent = false
	p.tellNext(now, s, &s.asking)
	if now >= s.returnAt {
		p.tellNext(now, s, &s.returning)
	}
	if len(s.returning) == 0 {
		s.returnAt = never
	}
	p.beat(now, s)
	if s.err != nil && s.hasSent {
		s.retryAt = now.Add(p.member.jitter(maxProbeWait))
	}
}

// tellNext tells the store of the values in a list, as far as requests can be sent.
func (p *ValuePlaces) tellNext(now clock.Instant, s *valueShard, list *[]*valuePlaces) {
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

func (p *ValuePlaces) maySend(s *valueShard) bool {
	return p.member.maySendMore(p.member.partitionOf(s.key))
}

// settleDoubts has the store told once more of the values of which a request has no answer for so
// long that it does not arrive any more.
func (p *ValuePlaces) settleDoubts(now clock.Instant) {
	for len(p.doubted) > 0 && p.doubted[0].doubtUntil <= now {
		v := p.doubted[0]
		p.doubted[0] = nil
		p.doubted = p.doubted[1:]
		v.doubtUntil, v.tellAgain = 0, true
		p.tellSoon(v)
	}
}

// forgetUsedUp forgets the values of which no place was left a while ago.
func (p *ValuePlaces) forgetUsedUp(now clock.Instant) {
	for len(p.usedUp) > 0 && p.usedUp[0].keptUntil <= now {
		v := p.usedUp[0]
		p.usedUp[0] = nil
		p.usedUp = p.usedUp[1:]
		v.keptUntil = 0
		p.forget(now, v)
	}
}

// decideWaiting decides on the calls that wait, if that is to be done without the backend.
func (p *ValuePlaces) decideWaiting(now clock.Instant) {
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
func (p *ValuePlaces) decideAll(v *valuePlaces) {
	v.shard.queued -= len(v.waiting)
	for _, w := range v.waiting {
		p.waiting--
		if w.left {
			continue
		}
		state := WaitDenied
		if v.inUse < p.allowedOf(v) {
			state, w.ticket = WaitAllowed, p.pass(v)
		}
		p.answer(w, state)
	}
	v.waiting = nil
}

// tell makes a claim of a value, if there is something to be told.
func (p *ValuePlaces) tell(now clock.Instant, v *valuePlaces) {
	if v.request != nil || len(v.waiting) == 0 && v.told == v.inUse && !v.tellAgain {
		p.forget(now, v)
		return
	}
	c := &valueClaim{places: p, value: v, shard: v.shard, sent: now, inUse: v.inUse, calls: v.waiting}
	claim := p.claim(now, v.shard, v.inUse)
	claim.Value, claim.Limit, claim.Want = v.name, v.limit, int64(len(c.calls))
	v.shard.queued -= len(c.calls)
	v.request, v.waiting, v.held, v.tellAgain = c, nil, v.inUse, false
	p.send(now, claim, c)
}

// beat says that the instance lives, if it has something of the shard.
func (p *ValuePlaces) beat(now clock.Instant, s *valueShard) {
	if s.values > 0 && s.beatAt <= now && !s.beats && p.maySend(s) {
		s.beats = true
		p.send(now, p.claim(now, s, s.inUse), &valueClaim{places: p, shard: s, sent: now})
	}
}

func (p *ValuePlaces) claim(now clock.Instant, s *valueShard, inUse int64) *places.ValueClaim {
	return &places.ValueClaim{
		Instance: p.member.placesID(), Sequence: p.member.nextSequence(now), InUse: min(inUse, places.Most),
		Life: p.life(), Born: s.born, Number: s.number,
	}
}

// nextSequence is the number of the next claim: higher than those of an instance of the name before.
func (m *Member) nextSequence(now clock.Instant) int64 {
	m.sequence = max(m.sequence+1, now.Time().UnixMicro())
	return m.sequence
}

func (p *ValuePlaces) send(now clock.Instant, claim *places.ValueClaim, c *valueClaim) {
	c.shard.hasSent = true
	p.member.request(now, fleet.Request{Operation: fleet.ClaimValuePlaces, Terms: fleet.Terms{Key: c.shard.key}, Value: claim}, c, true)
}

// answered implements requester.
func (c *valueClaim) answered(now clock.Instant, reply *fleet.Reply) {
	p, s := c.places, c.shard
	if reply.Err == nil && reply.Value.Late {
		reply = &fleet.Reply{Err: errSequence}
	}
	switch {
	case p.place < 0 || c.failed: // what a late answer granted is told anew
		return
	case reply.Err != nil:
		p.refusedBy(now, s, reply.Err)
		c.unanswered(now, reply.Err)
		return
	}
	s.lost = 0
	if s.err != nil {
		s.err, s.since, s.retryAt = nil, 0, 0
		p.member.noteAccepted()
		p.group.tally.Accepted()
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
		s.beatAt = c.sent.Add(valueBeat)
	}
	switch {
	case c.value == nil:
		s.beats = false
		if s.values == 0 {
			s.beatAt = never
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
func (c *valueClaim) askAgain() {
	v := c.value
	v.request, v.tellAgain = nil, true
	v.waiting = append(c.calls, v.waiting...)
	v.shard.queued += len(c.calls)
	c.places.tellSoon(v)
}

var errSequence = errors.New("fleet: the store has a later claim of this instance: another one has its name")

// granted gives the places that were granted to the calls that asked for them.
func (c *valueClaim) granted(now clock.Instant, count int64) {
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
			p.answer(w, WaitAllowed)
		default:
			p.answer(w, WaitDenied)
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

// unanswered implements requester. What the store counts is not known: it is told anew, and once
// more when the request cannot arrive any more.
func (c *valueClaim) unanswered(now clock.Instant, err error) {
	p, v, s := c.places, c.value, c.shard
	if c.failed || p.place < 0 {
		return
	}
	c.failed = true
	if s.lost++; s.lost >= maxLost && !p.member.connection.isInDoubt() {
		p.refusedBy(now, s, err)
	}
	if v == nil {
		s.beats = false
		s.beatAt = now.Add(tick)
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
func (p *ValuePlaces) refusedBy(now clock.Instant, s *valueShard, err error) {
	if s.err == nil {
		p.member.noteRefusal(p.key, err)
		p.group.tally.Refused(err)
		s.since = now
	}
	s.err = err
	s.retryAt = now.Add(p.member.jitter(maxProbeWait))
	p.decideWaiting(now)
}

// tellAll has the store told of all values of a shard.
func (p *ValuePlaces) tellAll(now clock.Instant, of *valueShard) {
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

// beginValueOutages decides on calls that wait: the backend does not answer.
func (m *Member) beginValueOutages(now clock.Instant) {
	for _, p := range m.values {
		p.decideWaiting(now)
	}
}

// retryValues has all told anew: the backend answers again.
func (m *Member) retryValues(now clock.Instant) {
	for _, p := range m.values {
		p.retry(now)
	}
}

func (p *ValuePlaces) retry(now clock.Instant) {
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

// leaveValues adds to a batch that the instance leaves. Calls under way count for a while longer.
func (m *Member) leaveValues(now clock.Instant, last *Batch) {
	for _, p := range m.values {
		p.leave(now, last)
	}
}

func (p *ValuePlaces) leave(now clock.Instant, last *Batch) {
	for i := range p.shards {
		s := &p.shards[i]
		if s.end == 0 || p.member.connection.out || !p.member.canCount() {
			continue
		}
		claim := p.claim(now, s, s.inUse)
		claim.Life = 0
		last.Requests = append(last.Requests, fleet.Request{Operation: fleet.ClaimValuePlaces, Terms: fleet.Terms{Key: s.key}, Value: claim})
		last.Replies = append(last.Replies, fleet.Reply{})
		s.end, s.beatAt = 0, never
	}
}

// valuesDue is when something of places of values is to be done.
func (m *Member) valuesDue(now clock.Instant) clock.Instant {
	due := never
	if !m.running {
		return due
	}
	for _, p := range m.values {
		due = min(due, p.due(now))
	}
	return due
}

func (p *ValuePlaces) due(now clock.Instant) clock.Instant {
	due := never
	for i := range p.shards {
		s := &p.shards[i]
		if alone := p.aloneFrom(now, s); p.waiting > 0 && now < alone {
			due = min(due, alone)
		}
		if !p.member.connection.out {
			due = min(due, max(p.requestsDue(now, s), s.retryAt))
		}
	}
	if p.member.connection.out {
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
func (p *ValuePlaces) requestsDue(now clock.Instant, s *valueShard) clock.Instant {
	due := never
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
