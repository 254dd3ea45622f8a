package ask

import (
	"fmt"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/fleet"
	"github.com/penstock-go/penstock/internal/sharing/exchange"
	"github.com/penstock-go/penstock/internal/sharing/usage"
)

// Askers are those of one instance.
type Askers struct {
	*exchange.Exchange

	// What follows is guarded by Mu of the exchange.
	all    []*Asker
	queues []*queue // by the number of the partition
}

// queueOf returns the queue to the partition that has the limit of a key.
func (set *Askers) queueOf(key string) *queue {
	to := set.PartitionOf(key)
	for len(set.queues) <= to.Number {
		set.queues = append(set.queues, nil)
	}
	if set.queues[to.Number] == nil {
		set.queues[to.Number] = &queue{to: to}
	}
	return set.queues[to.Number]
}

// Expire decides on the calls that have waited for the timeout.
func (set *Askers) Expire(now clock.Instant) {
	for _, q := range set.queues {
		for q != nil && len(q.asks) > 0 && q.asks[0].asked.Add(set.Timeout()) <= now {
			q.nextAsk().Unanswered(now, fleet.ErrUnavailable)
		}
	}
}

// Step adds requests for all calls that ask, and for what is to be handed back or paid.
func (set *Askers) Step(now clock.Instant) {
	for _, q := range set.queues {
		if q == nil {
			continue
		}
		for len(q.asks) > 0 && set.MaySendMore(q.to) {
			one := q.nextAsk()
			batch := set.Request(now, one.request(now), one, one.asker.group != nil)
			batch.Deadline = min(batch.Deadline, one.asked.Add(set.Timeout()))
		}
		if !set.IsOut() && set.MaySendMore(q.to) {
			set.sendFlushes(now, q)
		}
	}
}

// Next returns when something is to be sent, or is decided without an answer.
func (set *Askers) Next(now clock.Instant) clock.Instant {
	due := exchange.Never
	for _, q := range set.queues {
		if q != nil {
			due = min(due, max(now, set.nextOf(q)))
		}
	}
	return due
}

func (set *Askers) nextOf(q *queue) clock.Instant {
	waiting := len(q.asks)
	if !set.IsOut() {
		waiting += len(q.flushes)
	}
	switch {
	case waiting > 0 && set.MaySendMore(q.to):
		return 0
	case len(q.asks) > 0:
		return q.asks[0].asked.Add(set.Timeout())
	default:
		return exchange.Never
	}
}

// BeginOutages has all askers decide by themselves.
func (set *Askers) BeginOutages(now clock.Instant) {
	for _, a := range set.all {
		if a.outage.Err == nil {
			a.beginOutage(now)
		}
	}
}

// BackIsUp ends that: the backend answers again.
func (set *Askers) BackIsUp(now clock.Instant) {
	for _, a := range set.all {
		if a.outage.Err == nil {
			a.backIsUp(now)
		}
	}
}

// Probe calls ask with limits that the store answers.
func (set *Askers) Probe(ask func(fleet.Operation, fleet.Terms)) {
	for _, a := range set.all[:min(len(set.all), exchange.MaxProbed)] {
		if a.terms.Limit >= 1 || a.operation == fleet.AskBalance {
			ask(a.operation, a.terms)
		}
	}
}

// HandBackAll requests that all is handed back or paid that is to be.
func (set *Askers) HandBackAll(now clock.Instant) {
	for _, q := range set.queues {
		if q != nil {
			set.sendFlushes(now, q)
		}
	}
}

// Stop decides on all calls that wait: the instance ends.
func (set *Askers) Stop(now clock.Instant) {
	for _, q := range set.queues {
		for q != nil && len(q.asks) > 0 {
			q.nextAsk().Unanswered(now, fleet.ErrUnavailable)
		}
	}
}

// Uses returns what is used of the limits of no group.
func (set *Askers) Uses(now clock.Instant) (uses []fleet.Use) {
	for _, a := range set.all {
		if a.group == nil {
			uses = append(uses, a.usage(now))
		}
	}
	return uses
}

// Status tells how the limits of no group are.
func (set *Askers) Status(now clock.Instant) (all []fleet.LimitStatus) {
	for _, a := range set.all {
		if a.group == nil {
			all = append(all, a.status(now))
		}
	}
	return all
}

// New returns what asks the backend for each call, by one of the operations whose names
// begin with Ask, and counts in the tally of a group if that is not nil. Release ends it.
func (set *Askers) New(g *usage.Tally, terms fleet.Terms, operation fleet.Operation, onOutage fleet.OnOutage) *Asker {
	now := set.Now()
	a := &Asker{set: set, group: g, terms: completed(terms, operation), operation: operation, onOutage: onOutage}
	a.passes = a.newPasses(now)
	set.Mu.Lock()
	defer set.Unlock(now)
	a.counted = now
	a.place = len(set.all)
	set.all = append(set.all, a)
	set.Join(now)
	switch {
	case !set.CanCount():
		a.refusedBy(now, fmt.Errorf("%w: mode %s needs a store that counts", fleet.ErrUnsupported, fleet.ModeAsk))
		a.outage.AskAt = exchange.Never
	case set.IsOut():
		a.beginOutage(now)
	}
	return a
}
