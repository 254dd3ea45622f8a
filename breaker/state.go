package breaker

import "github.com/penstock-go/penstock/rule"

// state is a code in the low 16 bits, and above them how often the state has changed.
// The state of a closed breaker is also the ticket of the calls that pass.
type state uint64

const (
	closed state = iota
	open
	halfOpen
	forcedClosed
	forcedOpen

	codeBits = 16
	codeMask = 1<<codeBits - 1
)

func (s state) code() state { return s & codeMask }

func (s state) ticket() rule.Ticket { return rule.Ticket(s) }

// next returns the state after this one.
func (s state) next(code state) state { return (s>>codeBits+1)<<codeBits | code }

// name returns the state as users see it.
func (s state) name() string {
	switch s.code() {
	case open, forcedOpen:
		return Open
	case halfOpen:
		return HalfOpen
	}
	return Closed
}

// notCounted is the ticket of calls that pass while the breaker is forced closed.
const notCounted rule.Ticket = 0

// probeTicket returns the ticket of a probe: how often the state has changed, and the
// place of the probe, counted from 1.
func probeTicket(s state, place int) rule.Ticket {
	return rule.Ticket(s&^codeMask) | rule.Ticket(place+1)
}

func isProbe(t rule.Ticket) bool { return t&codeMask != 0 }

// isOf says whether the state has not changed since the call passed.
func isOf(t rule.Ticket, s state) bool { return state(t)>>codeBits == s>>codeBits }
