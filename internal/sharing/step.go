package sharing

import (
	"math"
	"slices"
	"time"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/fleet"
)

// Due returns when Step is to be called next: an instant that has passed if at once, the last
// instant there is if never. It becomes earlier when calls come.
func (m *Member) Due() clock.Instant { return clock.Instant(m.due.Load()) }

// Step brings the member up to now, and returns the batches that are to be sent. For each,
// the caller calls Deliver or Fail, in any order. It may be called before it is due.
func (m *Member) Step(now clock.Instant) []*Batch {
	m.mu.Lock()
	m.expire(now)
	m.takeWoken(now)
	m.lookAtDue(now)
	m.lookAtPlaces(now)
	m.lookAtValues(now)
	m.sendAsks(now)
	m.announceIfDue(now)
	batches := m.batches
	m.batches = nil
	for _, batch := range batches {
		m.statistics.batches++
		m.statistics.requests += int64(len(batch.Requests))
	}
	m.underWay = append(m.underWay, batches...)
	m.unlock(now)
	return batches
}

// unlock sets when the member is due, releases the mutex, and makes the calls that had to
// wait for that: to those who wait for answers or tokens, and to the log.
func (m *Member) unlock(now clock.Instant) {
	calls := m.calls
	m.calls = nil
	m.setDue(now)
	m.mu.Unlock()
	for _, call := range calls {
		call()
	}
}

func (m *Member) setDue(now clock.Instant) {
	due := min(m.queue.due(), m.connection.due())
	due = min(due, m.announceDue(), m.probeDue(), m.placesDue(), m.valuesDue(now))
	if len(m.batches) > 0 { // a recharge
		due = min(due, now)
	}
	for _, batch := range m.underWay {
		if !batch.arrived.Load() {
			due = min(due, batch.deadline)
		}
	}
	for _, p := range m.partitions {
		due = min(due, max(now, m.partitionDue(p)))
	}
	if m.due.Swap(int64(due)) > int64(due) {
		m.signal()
	}
	if m.woken.Load() != nil { // since it was taken
		m.hasten(nextTick(now))
	}
	if m.wokenPlaces.Load() != nil {
		m.hasten(now)
	}
}

// wakeUp has the next step look at a budget that was quiet.
func (m *Member) wakeUp(now clock.Instant, b *Budget) {
	for {
		b.nextWoken = m.woken.Load()
		if m.woken.CompareAndSwap(b.nextWoken, b) {
			break
		}
	}
	m.hasten(nextTick(now))
}

// hasten has the member due at an instant, if it is not earlier.
func (m *Member) hasten(at clock.Instant) {
	for {
		due := m.due.Load()
		if due <= int64(at) {
			return
		}
		if m.due.CompareAndSwap(due, int64(at)) {
			m.signal()
			return
		}
	}
}

// signal tells whoever steps the member that it is due earlier.
func (m *Member) signal() {
	select {
	case m.wake <- struct{}{}:
	default:
	}
}

// takeWoken has all budgets looked at that calls have woken.
func (m *Member) takeWoken(now clock.Instant) {
	for b := m.woken.Swap(nil); b != nil; {
		next := b.nextWoken
		b.nextWoken = nil
		b.isWoken.Store(false)
		if b.place >= 0 {
			m.queue.set(b, now)
		}
		b = next
	}
}

// maxLooks is how many budgets that are of no group are looked at in one step: about as many
// as in a millisecond, so that answers and calls do not wait for long.
const maxLooks = 1000

// lookAtDue looks at the budgets that are due, those first that have been for longest. If there
// are too many, the next step looks at the others.
func (m *Member) lookAtDue(now clock.Instant) {
	for looks := 0; looks < maxLooks && m.queue.budgets.due() <= now; looks++ {
		m.lookAt(m.queue.budgets[0], now)
	}
	for looks := 0; looks < maxGroupLooks && m.queue.groups.due() <= now; looks++ {
		m.lookAt(m.queue.groups[0], now)
	}
}

func (m *Member) lookAt(b *Budget, now clock.Instant) {
	if request, p := b.look(now); p != nil {
		m.request(now, request, p, b.group != nil)
	}
	if b.released.Load() && b.isQuiet() {
		m.removeBudget(b)
	}
}

// request adds a request to the batch that is made now.
func (m *Member) request(now clock.Instant, request fleet.Request, by requester, ofGroup bool) *Batch {
	if request.Terms.Calendar != nil {
		request.At = clock.TimeOf(m.clock, now)
	}
	batch := m.batchFor(now, m.partitionOf(request.Terms.Key), ofGroup)
	batch.to.requests++
	batch.Requests = append(batch.Requests, request)
	batch.Replies = append(batch.Replies, fleet.Reply{})
	batch.askers = append(batch.askers, by)
	return batch
}

// batchFor returns a batch that can take a request to a partition. Those of groups are in
// batches of their own.
func (m *Member) batchFor(now clock.Instant, to *partition, ofGroup bool) *Batch {
	most := maxRequests
	if ofGroup {
		most = maxGroupRequests
	}
	for _, batch := range slices.Backward(m.batches) {
		if batch.Announce == nil && batch.ofGroups == ofGroup && batch.to == to {
			if len(batch.Requests) < most {
				return batch
			}
			break
		}
	}
	batch := &Batch{ofGroups: ofGroup, to: to}
	m.addBatch(now, batch)
	return batch
}

func (m *Member) addBatch(now clock.Instant, batch *Batch) {
	batch.sent, batch.deadline = now, now.Add(m.config.Timeout)
	batch.to.underWay++
	if !m.isPartitioned() {
		m.probed = now
	}
	m.batches = append(m.batches, batch)
}

// overdue is from when on the member looks whether the backend still answers at all, because
// a batch has no answer.
func (m *Member) overdue(batch *Batch) clock.Instant {
	return batch.sent.Add(max(m.config.Timeout/2, min(4*m.roundTrip(), m.config.Timeout)))
}

// expire fails the batches that have no answer within the timeout.
func (m *Member) expire(now clock.Instant) {
	for _, batch := range slices.Clone(m.underWay) {
		if batch.deadline <= now && !batch.arrived.Load() {
			m.fail(now, batch, fleet.ErrUnavailable)
		}
	}
	for _, p := range m.partitions {
		for len(p.asks) > 0 && p.asks[0].asked.Add(m.config.Timeout) <= now {
			p.nextAsk().unanswered(now, fleet.ErrUnavailable)
		}
	}
}

// Deliver takes the answer to a batch that was sent, which came at now. Answers that come
// after the timeout are taken too, and their tokens handed back if they have ended.
func (m *Member) Deliver(now clock.Instant, batch *Batch) {
	m.mu.Lock()
	defer m.unlock(now)
	late := batch.ended
	if !late {
		m.end(batch)
		m.measure(now.Sub(batch.sent))
	}
	if batch.announceErr == nil {
		m.heard(now, batch.sent)
	}
	for i, by := range batch.askers {
		reply := &batch.Replies[i]
		if reply.Err == nil {
			reply.Err = check(&batch.Requests[i], reply)
		}
		by.answered(now, reply)
	}
	if batch.Announce != nil && !late { // another one has followed
		m.takeFleet(now, batch.Fleet, batch.announceErr)
	}
}

// Fail says that a batch has no answer, and why. A batch without an answer fails by itself
// in the first Step after the timeout.
func (m *Member) Fail(now clock.Instant, batch *Batch, err error) {
	m.mu.Lock()
	defer m.unlock(now)
	m.fail(now, batch, err)
}

func (m *Member) fail(now clock.Instant, batch *Batch, err error) {
	if batch.ended {
		return
	}
	m.end(batch)
	m.statistics.lost++
	if !batch.isOfLost() {
		m.unheard(now, batch, err)
	}
	if batch.Announce != nil {
		m.loseAnnouncement(now, err)
	}
	for _, by := range batch.askers {
		by.unanswered(now, err)
	}
}

// end removes a batch from those under way.
func (m *Member) end(batch *Batch) {
	batch.ended = true
	batch.to.end(batch)
	m.underWay = slices.DeleteFunc(m.underWay, func(other *Batch) bool { return other == batch })
	if batch.cancel != nil {
		batch.cancel()
	}
}

// roundTrip is how long an answer takes, and lead how long it takes from when tokens are
// missing until new ones are there.
func (m *Member) roundTrip() time.Duration { return m.connection.mean }

func (m *Member) lead() time.Duration {
	return tick + min(m.connection.mean+2*m.connection.deviation, m.config.Timeout)
}

// nextTick returns the first tick that is not before an instant.
func nextTick(at clock.Instant) clock.Instant {
	return (at + clock.Instant(tick) - 1) / clock.Instant(tick) * clock.Instant(tick)
}

// never is the last instant there is.
const never = clock.Instant(math.MaxInt64)
