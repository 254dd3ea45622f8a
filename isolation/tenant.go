package isolation

import (
	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/internal/fairqueue"
	"github.com/penstock-go/penstock/internal/tenants"
	"github.com/penstock-go/penstock/internal/waitqueue"
	"github.com/penstock-go/penstock/rule"
)

// tenant is whose call it is that joins the queue.
type tenant struct {
	waitqueue.Tenant
	value rule.Attribute
}

// tenantOf returns the tenant of a call, which keeps its value for status.
func (l *limiter) tenantOf(value rule.Attribute, now clock.Instant) tenant {
	key := l.pool.hasher.Hash(value)
	weight, hasWeight := l.weights.Of(value)
	return tenant{
		waitqueue.Tenant{Key: key, Weight: weight, Known: l.knows(key, value, hasWeight, now)}, tenants.Kept(value),
	}
}

// knows says whether the tenant of a value is known to this version of the rule.
func (l *limiter) knows(tenant uint64, value rule.Attribute, hasWeight bool, now clock.Instant) bool {
	return !l.learns || l.pool.acquaintances.Knows(tenant, value, hasWeight, now)
}

// charged are the calls under way whose tenants were charged for them when they got their places, by
// what they were expected to take. The ticket of such a call has the index of its record. There are no
// more of them than places.
type charged struct {
	records []chargedCall // 0 stands for none
	free    uint32
}

type chargedCall struct {
	age    rule.Ticket // of the place, see ages
	since  clock.Instant
	charge waitqueue.Charge // not set if the record is free
	next   uint32           // free one
}

// The index is above what the ticket has of the age: 20 bits, as there are at most maxLimit places.
const chargedShift = generationShift + 32

// callCost is the cost of a call with ByCalls.
const callCost = 1 << 20

// charge takes a call out of the queue that has got a place, charges its tenant, and returns the
// ticket with the index of the record.
func (p *pool) charge(now clock.Instant, w *waiter, age rule.Ticket) rule.Ticket {
	if p.current.rule.WeightBy == ByCalls {
		p.queue.Learn(callCost)
		p.acquaint(p.queue.ServeAt(&w.node, callCost), now)
		return age
	}
	charge := p.queue.ServeAt(&w.node, fairqueue.Unknown)
	p.acquaint(charge, now)
	if !charge.IsSet() {
		return age
	}
	return age | rule.Ticket(p.charged.add(chargedCall{age: age, since: now, charge: charge}))<<chargedShift
}

// acquaint makes a tenant known that was served while few unknown ones waited.
func (p *pool) acquaint(of waitqueue.Charge, now clock.Instant) {
	if p.current.learns {
		p.acquaintances.Add(of, now)
	}
}

func (c *charged) add(call chargedCall) uint32 {
	if i := c.free; i != 0 {
		c.free = c.records[i].next
		c.records[i] = call
		return i
	}
	if len(c.records) == 0 {
		c.records = make([]chargedCall, 1, 16)
	}
	c.records = append(c.records, call)
	return uint32(len(c.records) - 1)
}

// take frees the record of a ticket and returns it; false if it has none, or not any more.
func (c *charged) take(t rule.Ticket) (chargedCall, bool) {
	i := uint32(t >> chargedShift)
	if i == 0 || int(i) >= len(c.records) || !c.records[i].charge.IsSet() || c.records[i].age != t&ageMask {
		return chargedCall{}, false
	}
	call := c.records[i]
	c.records[i] = chargedCall{next: c.free}
	c.free = i
	return call, true
}

// settle charges the tenant of a call that ends for the time that it had its place. From a call that
// had not to wait is learnt what calls cost.
func (p *pool) settle(now, start clock.Instant, t rule.Ticket) {
	if call, ok := p.charged.take(t); ok {
		p.queue.Settle(call.charge, int64(now.Sub(call.since)))
	} else if start != 0 && p.current.rule.WeightBy == ByTime {
		p.queue.Learn(int64(now.Sub(start)))
	}
}

// settleExpired charges the tenants of calls whose places were given back because of their age: who
// knows whether they ever end.
func (p *pool) settleExpired(now clock.Instant) {
	for i := range p.charged.records {
		call := &p.charged.records[i]
		if call.charge.IsSet() && !p.ages.isOf(uint64(call.age&indexMask), call.age) {
			p.settle(now, 0, call.age|rule.Ticket(i)<<chargedShift)
		}
	}
}

// describeTenants adds to a status which tenants wait, and who is in front.
func (p *pool) describeTenants(s *rule.Status) {
	tenants.Describe(s, &p.queue, p.queue.First(), "the next place",
		func(w *waiter) tenants.Waiting { return tenants.Waiting{Tenant: w.tenant, Since: w.since} },
		func(value rule.Attribute) string { return p.current.rule.tenants().Name(value, p.hasher) })
}
