package exchange

import (
	"math"
	"slices"
	"time"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/fleet"
)

const (
	// Tick is how often limits with demand are looked at, at most. What is due within one
	// goes in one batch.
	Tick = 10 * time.Millisecond

	// MaxLife is how long leased tokens may be used at most.
	MaxLife = time.Second
)

// Due returns when Step is to be called next: an instant that has passed if at once, the last
// instant there is if never. It becomes earlier when calls come.
func (x *Exchange) Due() clock.Instant { return clock.Instant(x.due.Load()) }

// Limits are the limits of an instance, as its exchange knows them. The mutex is held in all calls.
type Limits interface {
	// Next returns when the first of them is to be looked at, and Woken the same of those that calls have woken
	// since that was told.
	Next(now clock.Instant) clock.Instant
	Woken(now clock.Instant) clock.Instant

	// BeginOutages has all decide by themselves: the backend does not answer. StayOut says that it does not
	// answer what was sent since, either, and BackIsUp that it answers again.
	BeginOutages(now clock.Instant)
	StayOut(now clock.Instant)
	BackIsUp(now clock.Instant)

	// Probe calls ask with limits of as many servers as possible.
	Probe(ask func(fleet.Operation, fleet.Terms))

	// Announce returns what the instance announces, and whether all instances are to be told to it.
	Announce(now clock.Instant) (uses []fleet.Use, withInstances bool)

	// Divide takes the answer, and returns when to announce the instance again. Undivided says that there is none.
	Divide(now clock.Instant, known fleet.Fleet) clock.Instant
	Undivided(now clock.Instant)
}

// Batches announces the instance if that is due, and returns the batches that are to be sent.
func (x *Exchange) Batches(now clock.Instant) []*Batch {
	x.announceIfDue(now)
	batches := x.batches
	x.batches = nil
	for _, batch := range batches {
		x.statistics.batches++
		x.statistics.requests += int64(len(batch.Requests))
	}
	x.underWay = append(x.underWay, batches...)
	return batches
}

// Unlock sets when the member is due, releases the mutex, and makes the calls that had to
// wait for that: to those who wait for answers or tokens, and to the log.
func (x *Exchange) Unlock(now clock.Instant) {
	calls := x.calls
	x.calls = nil
	x.setDue(now)
	x.Mu.Unlock()
	for _, call := range calls {
		call()
	}
}

func (x *Exchange) setDue(now clock.Instant) {
	due := min(x.limits.Next(now), x.connection.due(), x.announceDue(), x.probeDue())
	if len(x.batches) > 0 { // a recharge
		due = min(due, now)
	}
	for _, batch := range x.underWay {
		if !batch.Arrived.Load() {
			due = min(due, batch.Deadline)
		}
	}
	if x.due.Swap(int64(due)) > int64(due) {
		x.signal()
	}
	x.Hasten(x.limits.Woken(now)) // since those were taken that calls have woken
}

// Hasten has the member due at an instant, if it is not earlier.
func (x *Exchange) Hasten(at clock.Instant) {
	for {
		due := x.due.Load()
		if due <= int64(at) {
			return
		}
		if x.due.CompareAndSwap(due, int64(at)) {
			x.signal()
			return
		}
	}
}

// signal tells whoever steps the member that it is due earlier.
func (x *Exchange) signal() {
	select {
	case x.wake <- struct{}{}:
	default:
	}
}

// Request adds a request to the batch that is made now.
func (x *Exchange) Request(now clock.Instant, request fleet.Request, by Requester, ofGroup bool) *Batch {
	if request.Terms.Calendar != nil {
		request.At = clock.TimeOf(x.clock, now)
	}
	batch := x.batchFor(now, x.PartitionOf(request.Terms.Key), ofGroup)
	batch.to.Requests++
	batch.Add(request)
	batch.askers = append(batch.askers, by)
	return batch
}

// maxGroupRequests is how many requests of groups are in one batch, so that the others
// do not wait for long behind it.
const maxGroupRequests = 256

// batchFor returns a batch that can take a request to a partition. Those of groups are in
// batches of their own.
func (x *Exchange) batchFor(now clock.Instant, to *Partition, ofGroup bool) *Batch {
	most := maxRequests
	if ofGroup {
		most = maxGroupRequests
	}
	for _, batch := range slices.Backward(x.batches) {
		if batch.Announce == nil && batch.ofGroups == ofGroup && batch.to == to {
			if len(batch.Requests) < most {
				return batch
			}
			break
		}
	}
	batch := &Batch{ofGroups: ofGroup, to: to}
	x.addBatch(now, batch)
	return batch
}

func (x *Exchange) addBatch(now clock.Instant, batch *Batch) {
	batch.sent, batch.Deadline = now, now.Add(x.config.Timeout)
	batch.to.UnderWay++
	if !x.isPartitioned() {
		x.probed = now
	}
	x.batches = append(x.batches, batch)
}

// overdue is from when on the member looks whether the backend still answers at all, because
// a batch has no answer.
func (x *Exchange) overdue(batch *Batch) clock.Instant {
	return batch.sent.Add(max(x.config.Timeout/2, min(4*x.RoundTrip(), x.config.Timeout)))
}

// Expire fails the batches that have no answer within the timeout.
func (x *Exchange) Expire(now clock.Instant) {
	for _, batch := range slices.Clone(x.underWay) {
		if batch.Deadline <= now && !batch.Arrived.Load() {
			x.fail(now, batch, fleet.ErrUnavailable)
		}
	}
}

// Deliver takes the answer to a batch that was sent, which came at now. Answers that come
// after the timeout are taken too, and their tokens handed back if they have ended.
func (x *Exchange) Deliver(now clock.Instant, batch *Batch) {
	x.Mu.Lock()
	defer x.Unlock(now)
	late := batch.ended
	if !late {
		x.end(batch)
		x.measure(now.Sub(batch.sent))
	}
	if batch.announceErr == nil {
		x.heard(now, batch.sent)
	}
	for i, by := range batch.askers {
		reply := &batch.Replies[i]
		if reply.Err == nil {
			reply.Err = check(&batch.Requests[i], reply)
		}
		by.Answered(now, reply)
	}
	if batch.Announce != nil && !late { // another one has followed
		x.takeFleet(now, batch.Fleet, batch.announceErr)
	}
}

// Fail says that a batch has no answer, and why. A batch without an answer fails by itself
// in the first Step after the timeout.
func (x *Exchange) Fail(now clock.Instant, batch *Batch, err error) {
	x.Mu.Lock()
	defer x.Unlock(now)
	x.fail(now, batch, err)
}

func (x *Exchange) fail(now clock.Instant, batch *Batch, err error) {
	if batch.ended {
		return
	}
	x.end(batch)
	x.statistics.lost++
	if !batch.isOfLost() {
		x.unheard(now, batch, err)
	}
	if batch.Announce != nil {
		x.loseAnnouncement(now, err)
	}
	for _, by := range batch.askers {
		by.Unanswered(now, err)
	}
}

// end removes a batch from those under way.
func (x *Exchange) end(batch *Batch) {
	batch.ended = true
	batch.to.end(batch)
	x.underWay = slices.DeleteFunc(x.underWay, func(other *Batch) bool { return other == batch })
	if batch.cancel != nil {
		batch.cancel()
	}
}

// RoundTrip is how long an answer takes.
func (x *Exchange) RoundTrip() time.Duration { return x.connection.mean }

// Lead is how long it takes from when tokens are missing until new ones are there.
func (x *Exchange) Lead() time.Duration {
	return Tick + min(x.connection.mean+2*x.connection.deviation, x.config.Timeout)
}

// NextTick returns the first tick that is not before an instant.
func NextTick(at clock.Instant) clock.Instant {
	return (at + clock.Instant(Tick) - 1) / clock.Instant(Tick) * clock.Instant(Tick)
}

// Never is the last instant there is.
const Never = clock.Instant(math.MaxInt64)
