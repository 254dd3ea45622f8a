// Package optional has what limiters of the kinds of this repository can do beyond the contract for all
// kinds, which is package rule. The engine asks each limiter for these methods.
package optional

import (
	"time"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/rule"
)

// Suspender is a queue that limits the calls under way. A call that waits for a later rule
// keeps its ticket, but is not under way meanwhile; neither is one within which another call
// waits for a rule, as far as they are linked. The engine calls the methods in turn, and
// never gives back or ends a call that is suspended.
type Suspender interface {
	rule.Queue

	// Suspend is called when the call that has the ticket begins to wait for another rule, or a
	// call within it.
	Suspend(now clock.Instant, t rule.Ticket)

	// Resume is called when it goes on. It has been let pass already: this cannot fail.
	Resume(now clock.Instant, t rule.Ticket)
}

// Decider is a queue that needs some time to decide, as when it asks another machine. Calls
// with NoWait wait for the decision too, as long as DecidesWithin.
type Decider interface {
	rule.Queue

	// DecidesWithin returns how long a decision takes at most.
	DecidesWithin() time.Duration
}

// Aged is a limiter of calls under way that takes a call for ended after a time, though nobody has said
// so.
type Aged interface {
	rule.Finisher

	// MaxAge returns that time, 0 if it waits for the end however long that takes.
	MaxAge() time.Duration
}

// Placed is a limiter of calls under way whose places may be those of the whole fleet.
type Placed interface {
	rule.Limiter

	// PlaceNumber returns the fencing number of a call under way that passed at an instant and has a
	// ticket: higher than those of calls that had its place before; false if the limit is none of the
	// fleet, or the call has no place.
	PlaceNumber(start clock.Instant, t rule.Ticket) (uint64, bool)
}

// Inheritor is a limiter that begins with what another one of the same rule has
// counted. Names beyond core.Config.MaxResources share one limiter for each pattern rule; a
// name that gets a resource of its own later inherits from that.
type Inheritor interface {
	rule.Limiter

	Inherit(shared rule.Limiter, now clock.Instant)
}

// PassCounter is a limiter that counts the calls that pass on another resource, see
// [rule.Target.Related].
type PassCounter interface {
	rule.Limiter

	CountPass(now clock.Instant, tokens int32)
}
