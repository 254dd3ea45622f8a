package core

import (
	"sync/atomic"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/rule"
)

// inlineSlots is how many tickets fit into a record, a guard and the stack of Entry.
const inlineSlots = 8

// newTicketList returns a list of so many tickets, from a pool.
func (e *callEnv) newTicketList(n int) *[]rule.Ticket {
	list, ok := e.ticketLists.Get().(*[]rule.Ticket)
	if !ok || cap(*list) < n {
		fresh := make([]rule.Ticket, n)
		list = &fresh
	}
	*list = (*list)[:n]
	return list
}

// guardRecord holds the tickets of a call that the guard itself cannot carry. The rules get
// them back when the call ends or is settled. Records come from a pool. A guard knows its
// own by the generation, so that neither a second Exit nor that of a copy can reach the
// record of another call.
type guardRecord struct {
	guardExtras // the guard's; the record is this one

	generation atomic.Uint32
	refusal    atomic.Pointer[refusal] // of the first shadow rule that would have refused
	few        [inlineSlots]ticketSlot // of the steps, then of shadow rules
	more       []ticketSlot            // all of them, if they are more
	recordedAt uint32                  // where it is recorded that the call has passed; 0 for nowhere
}

// ticketSlot is the ticket of one rule, if the call has one.
type ticketSlot struct {
	ticket rule.Ticket
	held   bool
}

// newRecord returns a record for a guard of a call that passed rules.
func (e *callEnv) newRecord(of *passedRules) *guardRecord {
	record, ok := e.records.Get().(*guardRecord)
	if !ok {
		record = new(guardRecord)
		record.record = record
	}
	record.passed = of
	if n := len(of.rules); n > inlineSlots {
		if cap(record.more) < n {
			record.more = make([]ticketSlot, n)
		}
		record.more = record.more[:n]
	}
	return record
}

// word returns that of the guard whose record it is.
func (r *guardRecord) word() uint32 { return r.generation.Load()<<generationShift | recorded }

func (r *guardRecord) slot(i int) *ticketSlot {
	if len(r.passed.rules) > inlineSlots {
		return &r.more[i]
	}
	return &r.few[i]
}

// claim reports whether the caller is the first to end the call of that generation.
func (r *guardRecord) claim(generation uint32) bool {
	return r.generation.CompareAndSwap(generation, (generation+1)&maxGeneration)
}

func (r *guardRecord) wouldBlock(generation uint32) *BlockError {
	would := r.refusal.Load()
	if would == nil || r.generation.Load() != generation {
		return nil
	}
	return &would.err
}

// exit tells the rules how the call ended, which is charged with so many tokens.
func (r *guardRecord) exit(exit rule.Exit, tokens int32) {
	defer r.done(len(r.passed.rules), tokens, &exit)
	outer := r.outer
	r.outer = nil
	exit.Waited = outer.end(exit.Now)
}

// done tells so many rules how the call ended, in the reverse of the order in which they let it
// pass; also those behind one that panics. Long-lived calls have a record under no such rule too.
func (r *guardRecord) done(count int, tokens int32, exit *rule.Exit) {
	if count == 0 {
		return
	}
	defer r.done(count-1, tokens, exit)
	if of, slot := &r.passed.rules[count-1], r.slot(count-1); slot.held {
		of.finish(slot.ticket, tokens, exit)
	}
}

// leaveShadows gives back the tickets of so many shadow rules, for a call that is not made after
// all: another one has panicked. The record is not used any more.
func (r *guardRecord) leaveShadows(q *request, count int) {
	if count == 0 {
		return
	}
	defer r.leaveShadows(q, count-1)
	if slot := r.slot(r.passed.asked + count - 1); slot.held {
		r.passed.rules[r.passed.asked+count-1].limiter.GiveBack(q.Now, slot.ticket, q.Tokens)
	}
}

// exitRecord ends a call whose tickets are in a record, and returns the record to the pool. It counts no
// call that a copy of the guard has ended.
func (g *Guard) exitRecord(now clock.Instant, word uint32) (counted, longLived bool) {
	record := g.extras.record
	if !record.claim(word >> generationShift) {
		return false, false // a copy of the guard has exited
	}
	exit := rule.Exit{
		Now: now, Start: g.start, LongLived: record.longLived,
		Failed: word&stateMask == failed, Ignored: word&stateMask == ignored,
	}
	if exit.LongLived {
		g.resource.node.DoneLongLived(now, exit.Failed)
	} else {
		g.resource.node.Done(g.start, now, exit.Failed)
	}
	g.recordEnd(now, word, exit.LongLived, record.recordedAt)
	record.exit(exit, int32(g.state.rest))
	g.dropRecord(record)
	return true, exit.LongLived
}

// dropRecord returns the record of a call that has ended to the pool.
func (g *Guard) dropRecord(record *guardRecord) {
	g.extras = &record.passed.extras
	if would := record.refusal.Load(); would != nil {
		g.extras = &would.extras
		record.refusal.Store(nil)
	}
	g.resource.env.records.Put(record)
}
