package sharing

import (
	"time"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/fleet"
)

const (
	// maxUnderWay is how many batches may be under way to one partition of the store, and
	// maxRequests how many requests are in one.
	maxUnderWay = 64
	maxRequests = 1000

	// maxRequestsUnderWay is how many requests may be under way to one partition: no more than
	// a server answers in less than half of [fleet.DefaultTimeout].
	maxRequestsUnderWay = 4000

	// maxPartitions is how many partitions are told apart.
	maxPartitions = 1000
)

// partition is what a member has for one server of its store, see [fleet.Partitioned]. One that does
// not answer holds up no request to another one.
type partition struct {
	asks     []*asking // calls that ask, not sent yet
	flushes  []*Asker  // that have something to hand back or to pay
	underWay int       // batches that have not ended
	sending  int       // goroutines that send
	requests int       // in batches that have not ended
}

// partitionOf returns the partition that has the limit of a key: the only one, unless the store
// says otherwise. The mutex is held.
func (m *Member) partitionOf(key string) *partition {
	number := 0
	if m.isPartitioned() {
		number = min(max(0, m.partitioned.Partition(key)), maxPartitions-1)
	}
	for len(m.partitions) <= number {
		m.partitions = append(m.partitions, &partition{})
	}
	return m.partitions[number]
}

// isPartitioned says whether the store has several servers.
func (m *Member) isPartitioned() bool { return m.partitioned != nil && m.partitioned.Partitions() > 1 }

// maySend says whether another batch may be under way to the partition.
func (m *Member) maySend(p *partition) bool {
	return m.running && p.batches() < maxUnderWay && p.requests < maxRequestsUnderWay
}

// maySendMore says whether another batch may be under way of requests of which there may be
// many: some are kept free for the others.
func (m *Member) maySendMore(p *partition) bool {
	return m.running && p.batches() < maxUnderWay*3/4 && p.requests < maxRequestsUnderWay*3/4
}

func (p *partition) batches() int { return max(p.underWay, p.sending) }

// end notes that a batch has ended.
func (p *partition) end(b *Batch) {
	p.underWay--
	p.requests -= len(b.Requests)
}

// partitionDue is when something of the partition is to be sent, or is decided without an answer.
func (m *Member) partitionDue(p *partition) clock.Instant {
	waiting := len(p.asks)
	if !m.connection.out {
		waiting += len(p.flushes)
	}
	switch {
	case waiting > 0 && m.maySendMore(p):
		return 0
	case len(p.asks) > 0:
		return p.asks[0].asked.Add(m.config.Timeout)
	default:
		return never
	}
}

// isSilent says whether a batch has no answer, and nothing was sent since that the store answers
// if any of its servers does.
func (m *Member) isSilent() bool {
	if m.connection.out || len(m.underWay) == 0 {
		return false
	}
	first := m.underWay[0].sent
	return m.probed <= first && (!m.isPartitioned() || m.connection.heard < first)
}

// probeDue is when to see whether any server of a store that has several answers.
func (m *Member) probeDue() clock.Instant {
	c := &m.connection
	switch {
	case !m.isPartitioned() || !m.running || m.announceAt == never:
		return never
	case c.out:
		return c.probeAt
	case c.suspect != 0 && m.probed < c.suspected:
		return c.suspected
	case m.isSilent():
		return m.overdue(m.underWay[0])
	default:
		return never
	}
}

// maxProbed is how many limits are looked at to find one of each partition.
const maxProbed = 64

// probePartitions asks every partition for nothing, by one of its limits: the server that takes
// announcements may be the only one that does not answer.
func (m *Member) probePartitions(now clock.Instant) {
	m.probed = now
	probed := make(map[*partition]bool)
	ask := func(operation fleet.Operation, terms fleet.Terms) {
		if to := m.partitionOf(terms.Key); !probed[to] && m.maySend(to) {
			probed[to] = true
			m.request(now, fleet.Request{Operation: operation, Terms: terms, Keep: maxLife}, probe{}, false)
		}
	}
	for _, b := range m.budgets[:min(len(m.budgets), maxProbed)] {
		if b.most.Load() > 0 { // or a store may answer without its server
			ask(b.operation(), b.terms)
		}
	}
	for _, p := range m.places[:min(len(m.places), maxProbed)] {
		ask(fleet.LeaseBucket, fleet.Terms{Key: p.key, Limit: 1, Window: time.Second, Burst: 1})
	}
	for _, p := range m.values[:min(len(m.values), maxProbed)] {
		p.eachKey(func(key string) {
			ask(fleet.LeaseBucket, fleet.Terms{Key: key, Limit: 1, Window: time.Second, Burst: 1})
		})
	}
	for _, a := range m.askers[:min(len(m.askers), maxProbed)] {
		if a.terms.Limit >= 1 || a.operation == fleet.AskBalance {
			ask(a.operation, a.terms)
		}
	}
}

// probe is who asks for nothing: that there is an answer is all that matters.
type probe struct{}

func (probe) answered(clock.Instant, *fleet.Reply) {}
func (probe) unanswered(clock.Instant, error)      {}
