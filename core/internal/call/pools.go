package call

import (
	"sync"

	"github.com/penstock-go/penstock/rule"
)

// InlineSlots is how many tickets fit into a record, a guard and the stack of Entry.
const InlineSlots = 8

// Pools are what calls use again.
type Pools struct {
	records     sync.Pool // of *Record
	ticketLists sync.Pool // of *[]rule.Ticket, for calls of many rules
}

// NewTicketList returns a list of so many tickets, from a pool.
func (p *Pools) NewTicketList(n int) *[]rule.Ticket {
	list, ok := p.ticketLists.Get().(*[]rule.Ticket)
	if !ok || cap(*list) < n {
		fresh := make([]rule.Ticket, n)
		list = &fresh
	}
	*list = (*list)[:n]
	return list
}

// DropTicketList returns such a list to the pool.
func (p *Pools) DropTicketList(list *[]rule.Ticket) { p.ticketLists.Put(list) }

// NewRecord returns a record for a guard of a call that passed rules.
func (p *Pools) NewRecord(of *PassedRules) *Record {
	record, ok := p.records.Get().(*Record)
	if !ok {
		record = new(Record)
		record.Record = record
	}
	record.Passed = of
	if n := len(of.Rules); n > InlineSlots {
		if cap(record.more) < n {
			record.more = make([]ticketSlot, n)
		}
		record.more = record.more[:n]
	}
	return record
}

// DropRecord returns the record of a call that has ended to the pool.
func (p *Pools) DropRecord(record *Record) { p.records.Put(record) }
