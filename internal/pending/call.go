// Package pending is what all calls have in common that wait for a rule: how a wait ends, and who may end it.
package pending

import (
	"sync/atomic"
	"time"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/rule"
)

// Place is what a [Call] waits for. Its lock guards the end of the wait: whoever ends it holds that, and looks
// before whether the call still waits. The goroutine of the call calls these methods.
type Place interface {
	// Look ends the wait if its time has come. Otherwise it returns after how long it is to be called again if
	// nothing wakes the call before; 0 if only that matters.
	Look(now clock.Instant) time.Duration

	// Withdraw ends the wait of a call that gives up, unless it has ended.
	Withdraw(now clock.Instant)

	// GiveBack gives back what was granted, with a ticket, to a call that gave up before it had collected it.
	GiveBack(now clock.Instant, ticket rule.Ticket)
}

// Call is a call that waits. A limiter embeds it in what it knows of one. It is a [rule.Waiter].
type Call struct {
	place Place
	wake  func()

	// state leaves waits under the lock of the place. After that only the goroutine of the call changes it.
	state  atomic.Uint32
	ticket rule.Ticket // of one that was granted; written before the state
}

// The states of a call.
const (
	none     uint32 = iota // it does not wait: it has not begun, has collected what was granted, or has given up
	waits                  // it waits
	granted                // it may pass, which Poll has not returned yet
	refused                // it may not wait any longer
	released               // the rule has changed or is gone
)

var _ rule.Waiter = (*Call)(nil)

// Begin has a call wait that does not. wake is that of its [rule.Patience].
func (c *Call) Begin(place Place, wake func()) {
	c.place, c.wake = place, wake
	c.state.Store(waits)
}

// Place returns what the call waits for.
func (c *Call) Place() Place { return c.place }

// Waits says whether the wait goes on.
func (c *Call) Waits() bool { return c.state.Load() == waits }

// Grant lets the call pass with a ticket.
func (c *Call) Grant(ticket rule.Ticket) {
	c.ticket = ticket
	c.state.Store(granted)
}

// Refuse ends the wait: the call is refused.
func (c *Call) Refuse() { c.state.Store(refused) }

// Release ends the wait: the rule has changed or is gone, and the call asks anew.
func (c *Call) Release() { c.state.Store(released) }

// End ends the wait of a call that gives up.
func (c *Call) End() { c.state.Store(none) }

// Wake has the call look how it stands.
func (c *Call) Wake() { c.wake() }

// Poll implements [rule.Waiter].
func (c *Call) Poll(now clock.Instant) (rule.Ticket, time.Duration, rule.Decision) {
	var after time.Duration
	if c.Waits() {
		after = c.place.Look(now)
	}
	switch c.state.Load() {
	case waits:
		return 0, after, rule.Wait
	case granted:
		c.state.Store(none)
		return c.ticket, 0, rule.Pass
	case released:
		return 0, 0, rule.Stale
	}
	return 0, 0, rule.Block
}

// Leave implements [rule.Waiter].
func (c *Call) Leave(now clock.Instant) {
	if c.Waits() {
		c.place.Withdraw(now)
	}
	if c.state.Swap(none) == granted {
		c.place.GiveBack(now, c.ticket)
	}
}
