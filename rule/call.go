package rule

import (
	"math"
	"time"

	"github.com/penstock-go/penstock/clock"
)

// Call is a call as limiters see it. It is passed by value, in registers, so that asking a
// limiter allocates nothing.
type Call struct {
	Now       clock.Instant
	Tokens    int32     // that the call takes, at least 1
	packed    uint32    // its number, its priority, and what else there is to say of it
	Attribute Attribute // what the rule asked for, see [Spec.Attributes]
}

// The parts of the packed word of a call.
const (
	inboundBit    = 1 // it comes from outside
	priorityShift = 1 // three bits, signed
	longLivedBit  = 1 << 4
	numberShift   = 5
)

// Priority returns how important the call is.
func (c Call) Priority() Priority { return Priority(int8(c.packed<<4) >> 5) }

// Inbound says whether the call comes from outside.
func (c Call) Inbound() bool { return c.packed&inboundBit != 0 }

// LongLived says that the call lasts as long as its caller wants, as a watch, a stream of events
// or a download does, and was known to when it entered. How long it lasts tells nothing of what
// is called.
func (c Call) LongLived() bool { return c.packed&longLivedBit != 0 }

// SetLongLived says that the call is long-lived. The engine does so before it asks limiters.
func (c *Call) SetLongLived() { c.packed |= longLivedBit }

// Number is a random number of the call, from 1 to 2²⁷-1: all limiters see the same one,
// however often they are asked about the call. Only calls under rules whose reason is
// [Injected] have one; that of others is 0.
func (c Call) Number() uint32 { return c.packed >> numberShift }

// SetNumber sets the number, of which the lower 27 bits count. The engine does so.
func (c *Call) SetNumber(n uint32) {
	c.packed = n<<numberShift | c.packed&(1<<numberShift-1)
}

// SetCaller sets the priority, or the nearest that there is, and whether the call comes from
// outside. The engine does so before it asks limiters.
func (c *Call) SetCaller(p Priority, inbound bool) {
	p = min(max(p, PrioritySheddable), PriorityCritical)
	c.packed = c.packed&^(7<<priorityShift|inboundBit) | uint32(p&7)<<priorityShift
	if inbound {
		c.packed |= inboundBit
	}
}

// Priority says how important a call is. The zero value is PriorityNormal.
type Priority int8

// The priorities, the most important first.
const (
	PriorityCritical  Priority = 2
	PriorityHigh      Priority = 1
	PriorityNormal    Priority = 0
	PriorityLow       Priority = -1
	PrioritySheddable Priority = -2
)

// String returns the priority as documents spell it: "critical", "high", "normal",
// "low" or "sheddable".
func (p Priority) String() string {
	switch {
	case p >= PriorityCritical:
		return "critical"
	case p == PriorityHigh:
		return "high"
	case p == PriorityNormal:
		return "normal"
	case p == PriorityLow:
		return "low"
	}
	return "sheddable"
}

// Priorities returns all priorities, the most important first.
func Priorities() [PriorityLevels]Priority {
	return [...]Priority{PriorityCritical, PriorityHigh, PriorityNormal, PriorityLow, PrioritySheddable}
}

// PriorityLevels is how many priorities there are.
const PriorityLevels = 5

// Level returns the priority as an index: from 0 for the least important one to
// [PriorityLevels] - 1. A priority beyond the least or the most important counts as that.
func (p Priority) Level() int {
	return int(min(max(p, PrioritySheddable), PriorityCritical) - PrioritySheddable)
}

// ParsePriority returns the priority that a text spells, in the lower case of
// [Priority.String]; false if it spells none.
func ParsePriority(text string) (p Priority, ok bool) {
	for _, p := range Priorities() {
		if p.String() == text {
			return p, true
		}
	}
	return PriorityNormal, false
}

// Decision is the answer of a limiter to a call.
type Decision uint8

// The decisions.
const (
	// Pass lets the call through, as far as this rule is concerned.
	Pass Decision = iota
	// Block refuses it.
	Block
	// Wait says that the call may wait, see [Queue].
	Wait
	// Stale says that the limiter has gone over to a newer version of the rule, or
	// has seen a later instant: the engine looks again which rules there are and what
	// time it is. A limiter that has seen a later instant returns that as the ticket, else
	// 0: the call goes on at no earlier one, whatever the clock shows.
	Stale
)

// Ticket is what a limiter gives to a call that passes, and gets back when the call
// ends or was refused by another rule. Its meaning is the limiter's own.
type Ticket uint64

// RetryUnknown is the ticket of a refused call if nobody knows when such a call passes.
const RetryUnknown Ticket = math.MaxUint64

// RetryTicket returns the ticket of a refused call such as passes in that time; 0 if that is
// unknown, [Never] if none does.
func RetryTicket(d time.Duration) Ticket {
	if d <= 0 {
		return RetryUnknown
	}
	return Ticket(d)
}

// RetryTime returns the time that a ticket of RetryTicket was made of.
func (t Ticket) RetryTime() time.Duration {
	if t == RetryUnknown {
		return 0
	}
	return time.Duration(t)
}

// Exit is how a call ended.
type Exit struct {
	Now    clock.Instant
	Start  clock.Instant // when it passed
	Failed bool

	// Ignored says that the end tells neither success nor failure, for the caller gave
	// up or a guard further down refused the call. Failed is false then.
	Ignored bool

	// LongLived says that the call lasted as long as its caller wanted, so that Took is no
	// response time. It is set for calls with [Call.LongLived], and for those that turned out to
	// be long-lived once they had passed.
	LongLived bool

	// Waited is for how long calls within this one waited for rules, as far as they are linked
	// to it. Limiters of other kinds than adaptive may find it 0.
	Waited time.Duration
}

// Took returns the response time. It is 0 if the goroutine that ended the call has read an earlier
// time than the one that began it.
func (e Exit) Took() time.Duration { return max(0, e.Now.Sub(e.Start)) }

// Never is a retry time: the call cannot pass however long it waits. It is the
// longest duration, about 292 years.
const Never = time.Duration(math.MaxInt64)

// Forbidden is a retry time of calls that may not be made, now or later: the reason of their refusal
// is [Denied], whatever that of the kind is, and adapters answer what [Spec.Forbids] says.
const Forbidden = Never - 1
