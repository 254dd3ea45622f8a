package optional

import (
	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/rule"
)

// Forecaster is a limiter of how much passes in a time, which knows how that goes on. Its rule looks
// at no attribute. Its tickets are the instants at which calls took what these stand for: the call's own,
// unless it is a [rule.Queue] too; with Wait that at which the call would pass, 0 if that is unknown.
// It is asked after all of its phase that are none, and queues come first.
//
// By the forecast no call waits for one rule to be refused by a later one, and none is refused for
// tokens that another call holds for a moment and gives back.
type Forecaster interface {
	rule.Limiter

	// Forecast says whether such a call is refused now and, whatever comes until then as far as
	// that is known, at a later instant, at which it would be asked; else when it would pass if it
	// came then. Promised tokens are for calls that wait already, and will be taken before. It may count
	// the call as one that was refused, and takes nothing.
	Forecast(c rule.Call, at clock.Instant, promised int64) (passes clock.Instant, refused bool)
}

// Watcher is a [rule.Finisher] that looks at calls while they are under way, such as one that counts a slow
// call before it ends.
type Watcher interface {
	rule.Finisher

	// MarkLongLived says that a call which has the ticket has turned out to be long-lived, see
	// [rule.Call.LongLived]. Done follows, with [rule.Exit.LongLived].
	MarkLongLived(rule.Ticket)
}

// Refunder is a limiter that counts tokens and can give some back to who has no ticket of the
// calls that took them.
type Refunder interface {
	rule.Limiter

	// Refund gives back as many tokens as the call says, which calls like it have taken: those
	// first that have counted the longest, and no more than count at its instant. So whatever
	// is given back, no more is left than if nobody had called.
	Refund(rule.Call)
}

// Divided is a limiter that several resources share, and that tells them apart.
type Divided interface {
	rule.Limiter

	// For returns the limiter of the calls of a resource, for which the engine asks it. It has
	// the methods that this one has, and may be called again for the same resource.
	For(resource string) rule.Limiter
}

// LoadReporter is a limiter from whose calls under way or waiting can be told how loaded the service is.
type LoadReporter interface {
	rule.Limiter

	// Load returns the present load. It must not allocate.
	Load(now clock.Instant) rule.Load
}
