package exchange

import (
	"slices"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/fleet"
)

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
