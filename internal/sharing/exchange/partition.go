package exchange

import (
	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/fleet"
)

const (
	// maxUnderWay is how many batches may be under way to one partition of the store, and
	// maxRequests how many requests are in one.
	maxUnderWay = 64
	maxRequests = 1000

	// MaxRequestsUnderWay is how many requests may be under way to one partition: no more than
	// a server answers in less than half of [DefaultTimeout].
	MaxRequestsUnderWay = 4000

	// maxPartitions is how many partitions are told apart.
	maxPartitions = 1000
)

// Partition is what a member has for one server of its store, see [fleet.Partitioned]. One that does
// not answer holds up no request to another one.
type Partition struct {
	Number   int
	UnderWay int // batches that have not ended
	sending  int // goroutines that send
	Requests int // in batches that have not ended
}

// PartitionOf returns the partition that has the limit of a key: the only one, unless the store
// says otherwise. The mutex is held.
func (x *Exchange) PartitionOf(key string) *Partition {
	number := 0
	if x.isPartitioned() {
		number = min(max(0, x.partitioned.Partition(key)), maxPartitions-1)
	}
	for len(x.Partitions) <= number {
		x.Partitions = append(x.Partitions, &Partition{Number: len(x.Partitions)})
	}
	return x.Partitions[number]
}

// isPartitioned says whether the store has several servers.
func (x *Exchange) isPartitioned() bool {
	return x.partitioned != nil && x.partitioned.Partitions() > 1
}

// MaySend says whether another batch may be under way to the partition.
func (x *Exchange) MaySend(p *Partition) bool {
	return x.running && p.batches() < maxUnderWay && p.Requests < MaxRequestsUnderWay
}

// MaySendMore says whether another batch may be under way of requests of which there may be
// many: some are kept free for the others.
func (x *Exchange) MaySendMore(p *Partition) bool {
	return x.running && p.batches() < maxUnderWay*3/4 && p.Requests < MaxRequestsUnderWay*3/4
}

func (p *Partition) batches() int { return max(p.UnderWay, p.sending) }

// end notes that a batch has ended.
func (p *Partition) end(b *Batch) {
	p.UnderWay--
	p.Requests -= len(b.Requests)
}

// isSilent says whether a batch has no answer, and nothing was sent since that the store answers
// if any of its servers does.
func (x *Exchange) isSilent() bool {
	if x.connection.out || len(x.underWay) == 0 {
		return false
	}
	first := x.underWay[0].sent
	return x.probed <= first && (!x.isPartitioned() || x.connection.heard < first)
}

// probeDue is when to see whether any server of a store that has several answers.
func (x *Exchange) probeDue() clock.Instant {
	c := &x.connection
	switch {
	case !x.isPartitioned() || !x.running || x.announceAt == Never:
		return Never
	case c.out:
		return c.probeAt
	case c.suspect != 0 && x.probed < c.suspected:
		return c.suspected
	case x.isSilent():
		return x.overdue(x.underWay[0])
	default:
		return Never
	}
}

// probePartitions asks every partition for nothing, by one of its limits: the server that takes
// announcements may be the only one that does not answer.
func (x *Exchange) probePartitions(now clock.Instant) {
	x.probed = now
	probed := make(map[*Partition]bool)
	ask := func(operation fleet.Operation, terms fleet.Terms) {
		if to := x.PartitionOf(terms.Key); !probed[to] && x.MaySend(to) {
			probed[to] = true
			x.Request(now, fleet.Request{Operation: operation, Terms: terms, Keep: MaxLife}, probe{}, false)
		}
	}
	x.limits.Probe(ask)
}

// probe is who asks for nothing: that there is an answer is all that matters.
type probe struct{}

func (probe) Answered(clock.Instant, *fleet.Reply) {}
func (probe) Unanswered(clock.Instant, error)      {}
func (probe) UnansweredBefore() int                { return 0 }
