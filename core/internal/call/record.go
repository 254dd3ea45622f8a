package call

import (
	"sync/atomic"

	"github.com/penstock-go/penstock/core/internal/each"
	"github.com/penstock-go/penstock/internal/optional"
	"github.com/penstock-go/penstock/rule"
)

// Record holds the tickets of a call that the guard itself cannot carry. The rules get
// them back when the call ends or is settled. Records come from a pool. A guard knows its
// own by the generation, so that neither a second Exit nor that of a copy can reach the
// record of another call.
type Record struct {
	Extras         // the guard's; the record is this one
	LongLived bool // the call is, see core.LongLived
	Decided   bool // the outcome is, whatever is marked later

	Generation atomic.Uint32
	Refusal    atomic.Pointer[Refusal] // of the first shadow rule that would have refused
	few        [InlineSlots]ticketSlot // of the steps, then of shadow rules
	more       []ticketSlot            // all of them, if they are more
	RecordedAt uint32                  // where it is recorded that the call has passed; 0 for nowhere
}

// ticketSlot is the ticket of one rule, if the call has one.
type ticketSlot struct {
	ticket rule.Ticket
	held   bool
}

// Word returns that of the guard whose record it is.
func (r *Record) Word() uint32 { return r.Generation.Load()<<GenerationShift | InRecord }

// Hold notes the ticket of the step with an index; held is false for one that is none of its limiter.
func (r *Record) Hold(i int, ticket rule.Ticket, held bool) { *r.slot(i) = ticketSlot{ticket, held} }

// Ticket returns the ticket of the step with an index.
func (r *Record) Ticket(i int) rule.Ticket { return r.slot(i).ticket }

func (r *Record) slot(i int) *ticketSlot {
	if len(r.Passed.Rules) > InlineSlots {
		return &r.more[i]
	}
	return &r.few[i]
}

// Claim reports whether the caller is the first to end the call of that generation.
func (r *Record) Claim(generation uint32) bool {
	return r.Generation.CompareAndSwap(generation, (generation+1)&maxGeneration)
}

// WouldBlock returns how the first shadow rule would have refused the call of that generation; nil if none would.
func (r *Record) WouldBlock(generation uint32) *Blocked {
	would := r.Refusal.Load()
	if would == nil || r.Generation.Load() != generation {
		return nil
	}
	return &would.Err
}

// Exit tells the rules how the call ended, which is charged with so many tokens.
func (r *Record) Exit(exit rule.Exit, tokens int32) {
	defer r.done(len(r.Passed.Rules), tokens, &exit)
	outer := r.Outer
	r.Outer = nil
	exit.Waited = outer.End(exit.Now)
}

// done tells so many rules how the call ended, in the reverse of the order in which they let it
// pass; also those behind one that panics. Long-lived calls have a record under no such rule too.
func (r *Record) done(count int, tokens int32, exit *rule.Exit) {
	defer func() {
		if count > 0 { // the last of them has panicked
			r.done(count-1, tokens, exit)
		}
	}()
	for ; count > 0; count-- {
		if slot := r.slot(count - 1); slot.held {
			r.Passed.Rules[count-1].finish(slot.ticket, tokens, exit)
		}
	}
}

// LeaveShadows gives back the tickets of so many shadow rules, for a call that is not made after
// all: another one has panicked. The record is not used any more.
func (r *Record) LeaveShadows(q *Request, count int) {
	if count == 0 {
		return
	}
	defer r.LeaveShadows(q, count-1)
	if slot := r.slot(r.Passed.Asked() + count - 1); slot.held {
		r.Passed.Rules[r.Passed.Asked()+count-1].Limiter.GiveBack(q.Now, slot.ticket, q.Tokens)
	}
}

// MarkLongLived tells the rules that look at calls under way.
func (r *Record) MarkLongLived() {
	i := 0
	each.Of(r.Passed.Rules, func(of PassedRule) {
		slot := r.slot(i)
		i++
		if watcher, ok := of.Limiter.(optional.Watcher); ok && slot.held {
			watcher.MarkLongLived(slot.ticket)
		}
	})
}
