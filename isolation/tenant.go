package isolation

import (
	"encoding/binary"
	"fmt"
	"hash/maphash"
	"strings"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/internal/fairqueue"
	"github.com/penstock-go/penstock/internal/waitqueue"
	"github.com/penstock-go/penstock/rule"
)

// tenant is whose call it is that joins the queue.
type tenant struct {
	waitqueue.Tenant
	value rule.Attribute
}

// tenantOf returns the tenant of a call, which keeps its value for status.
func (l *limiter) tenantOf(value rule.Attribute) tenant {
	t := tenant{waitqueue.Tenant{Key: l.pool.hasher.hash(value), Weight: l.weights.of(value)}, value}
	if parts := value.Parts(); parts != nil { // valid only while the call joins
		kept := new([rule.MaxKeys]rule.Attribute)
		count := copy(kept[:], parts)
		t.value = rule.Composite(kept, count)
	}
	return t
}

// hasher makes hashes of values, with a seed of its own: nobody who chooses values can tell which of
// them collide, unless a simulation gives the seed. It is two words of a pool.
type hasher struct {
	seed  maphash.Seed
	fixed uint64 // the seed that was given, or 0
}

func newHasher(seed uint64) hasher { return hasher{maphash.MakeSeed(), seed} }

// hash returns the hash of a value. Values of different types have different ones, and calls that lack
// the value have one together.
func (h *hasher) hash(value rule.Attribute) uint64 {
	var space [rule.MaxKeys * (longText + 3)]byte
	b := space[:0]
	if parts := value.Parts(); parts != nil {
		for _, part := range parts {
			b = h.encode(b, part)
		}
	} else {
		b = h.encode(b, value)
	}
	return h.bytes(b)
}

// longText is the length of texts that are hashed on their own before.
const longText = 48

// encode appends a value so that no others are the same bytes.
func (h *hasher) encode(b []byte, value rule.Attribute) []byte {
	if text, ok := value.Text(); ok {
		if len(text) > longText {
			return binary.LittleEndian.AppendUint64(append(b, 'l'), h.text(text))
		}
		return append(append(b, 't', byte(len(text))), text...)
	}
	if number, ok := value.Number(); ok {
		return binary.LittleEndian.AppendUint64(append(b, 'n'), uint64(number))
	}
	if truth, ok := value.Boolean(); ok {
		if truth {
			return append(b, '1')
		}
		return append(b, '0')
	}
	return append(b, '-')
}

func (h *hasher) bytes(b []byte) uint64 {
	if h.fixed == 0 {
		return maphash.Bytes(h.seed, b)
	}
	return fixedHash(h.fixed, string(b))
}

func (h *hasher) text(text string) uint64 {
	if h.fixed == 0 {
		return maphash.String(h.seed, text)
	}
	return fixedHash(h.fixed, text)
}

// fixedHash is FNV-1a from a seed, whose bits are spread at the end.
func fixedHash(seed uint64, text string) uint64 {
	hash := seed ^ 0xCBF29CE484222325
	for i := range len(text) {
		hash = (hash ^ uint64(text[i])) * 0x100000001B3
	}
	hash ^= hash >> 32
	hash *= 0xD6E8FEB86659FD93
	return hash ^ hash>>32
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

// The index is above what the ticket has of the age: 20 bits, as there are at most MaxLimit places.
const chargedShift = generationShift + 32

// callCost is the cost of a call with ByCalls.
const callCost = 1 << 20

// charge takes a call out of the queue that has got a place, charges its tenant, and returns the
// ticket with the index of the record.
func (p *pool) charge(now clock.Instant, w *waiter, age rule.Ticket) rule.Ticket {
	if p.current.rule.WeightBy == ByCalls {
		p.queue.Learn(callCost)
		p.queue.ServeAt(&w.node, callCost)
		return age
	}
	charge := p.queue.ServeAt(&w.node, fairqueue.Unknown)
	if !charge.IsSet() {
		return age
	}
	return age | rule.Ticket(p.charged.add(chargedCall{age: age, since: now, charge: charge}))<<chargedShift
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
	const most = 3
	shares := p.queue.Longest(most)
	longest := 0
	if len(shares) > 0 {
		longest = shares[0].Waiting
	}
	s.Gauges = append(s.Gauges, float64(p.queue.Tenants()), float64(longest))
	if len(shares) == 0 {
		return
	}
	first := p.queue.First()
	var b strings.Builder
	if n := p.queue.Tenants(); n == 1 {
		b.WriteString("calls of 1 tenant wait: ")
	} else {
		fmt.Fprintf(&b, "calls of %d tenants wait, most of them of ", n)
	}
	since := first.since
	for i, share := range shares {
		if i > 0 {
			b.WriteString(", ")
		}
		fmt.Fprintf(&b, "%s (%d)", p.nameOf(share.Oldest.tenant), share.Waiting)
		since = min(since, share.Oldest.since)
	}
	fmt.Fprintf(&b, "; the next place goes to %s", p.nameOf(first.tenant))
	s.Notes = append(s.Notes, rule.Note{Since: since, Text: b.String()})
}

// maxName is how many bytes of a tenant status shows.
const maxName = 64

// nameOf returns a tenant as status shows it.
func (p *pool) nameOf(value rule.Attribute) string {
	switch {
	case !value.IsSet():
		return "(missing)"
	case p.current.rule.Mask == MaskHash:
		return fmt.Sprintf("#%016x", p.hasher.hash(value))
	}
	text := value.String()
	isCut := len(text) > maxName
	text = strings.ToValidUTF8(text[:min(len(text), maxName)], "�")
	text = strings.Map(func(r rune) rune {
		if rule.IsInvisible(r) {
			return '�'
		}
		return r
	}, text)
	if isCut {
		text = strings.TrimRight(text, "�") + "…"
	}
	return text
}
