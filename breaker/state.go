package breaker

import "github.com/penstock-go/penstock/rule"

// state is a code in the low 16 bits, and above them how often the state has changed.
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

// changes returns how often the state has changed.
func (s state) changes() uint64 { return uint64(s >> codeBits) }

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

// A ticket is how often the state had changed when the call passed and, of a probe, its
// place in the high 16 bits, counted from 1. Tickets of calls that are no probes so are
// small numbers, which the engine keeps at less cost. The ticket of a call that is watched
// while it runs has a slot instead, see running.
const (
	placeShift  = 64 - codeBits
	changesMask = 1<<(placeShift-1) - 1
)

// notCounted is the ticket of calls that pass while the breaker is forced closed, and of those that have
// counted before their end.
const notCounted rule.Ticket = 0

// ticket returns the ticket of calls that a closed breaker lets pass.
func (s state) ticket() rule.Ticket { return rule.Ticket(s.changes()) }

// probeTicket returns the ticket of a probe in a place, counted from 0.
func probeTicket(s state, place int) rule.Ticket {
	return s.ticket() | rule.Ticket(place+1)<<placeShift
}

func isProbe(t rule.Ticket) bool { return t>>placeShift != 0 }

// placeOf returns the place of a probe, counted from 0.
func placeOf(t rule.Ticket) int { return int(t>>placeShift) - 1 }

// isOf says whether the state has not changed since the call passed.
func isOf(t rule.Ticket, s state) bool { return uint64(t&changesMask) == s.changes() }

// isClosedSince says whether the breaker is closed and has been since the call passed.
func isClosedSince(t rule.Ticket, s state) bool { return s.code() == closed && isOf(t, s) }
