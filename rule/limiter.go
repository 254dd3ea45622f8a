package rule

import (
	"time"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/fleet"
	"github.com/penstock-go/penstock/list"
)

// Limiter enforces one version of one rule, on one resource or on all that share the
// rule. Limiters are used concurrently. Acquire, GiveBack and Done are on the way of
// every call: they must not allocate, and should not block. If one panics, or ends its
// goroutine, the call gives back what it has taken of all other limiters, and the panic goes
// on; Done of the others is called too.
//
// A limiter that can do more has the methods of [Queue], [Finisher], [Settler], [QuotaReader], [Activator],
// [Retirer] or [Controllable] too.
type Limiter interface {
	// Acquire decides on a call. On Pass it has taken what the call needs, in one atomic
	// step with the decision: two calls must never both get the last token. Otherwise it
	// has taken nothing. Only a [Queue] may return Wait.
	//
	// With Block the ticket is a [RetryTicket] of what RetryAfter would return now; 0 has
	// the engine ask RetryAfter, which may cost as much as Acquire.
	Acquire(Call) (Ticket, Decision)

	// GiveBack undoes an Acquire that returned Pass, as though it had never been, counters included; only what
	// others have got by it already, such as a place that was handed on, stays as it is. A later
	// rule refused the call or made it wait, or the caller gave up. Tokens are those of the
	// call; its attribute is not known any more: a limiter with a state for each value finds it by
	// the ticket. Time may have passed since, and the rule may have a newer version; what others have taken
	// meanwhile stays taken.
	GiveBack(now clock.Instant, t Ticket, tokens int32)

	// RetryAfter returns how long it takes until such a call passes this rule if
	// nobody else comes: 0 if it would pass now or that is unknown, [Never] if it
	// cannot pass at all.
	RetryAfter(Call) time.Duration

	// Status returns the state at an instant. It may be slow, but must not change what
	// later calls get. A change of state that the time has brought, and no call has met, is reported
	// before it returns, see [Env.Changed].
	Status(now clock.Instant) Status

	// Idle says whether the limiter is at now as a new one would be: then the engine may
	// forget it with a resource that nobody calls.
	Idle(now clock.Instant) bool
}

// Queue is a limiter that lets calls wait. For a shadow rule no call waits: one that
// Acquire says Wait to passes, and counts as one that the rule would refuse.
//
// The engine does not know who waits: the limiter wakes its calls, and Poll says Stale, when the rule is not for
// them any more. That is when a newer version comes into force that is a shadow, or has another origin, and when
// the limiter is retired, for which a queue is a [Retirer]: the rule was removed, or [Spec.Adopt] returned nil.
type Queue interface {
	Limiter

	// Join puts a call into the queue to which Acquire said Wait. Pass, with a ticket, means
	// that it need not wait any more; Block, with a ticket as of Acquire, that it may not wait; Stale as of Acquire.
	Join(Call, Patience) (Waiter, Ticket, Decision)
}

// Patience says how a call can wait.
type Patience struct {
	Since clock.Instant // when the call began to wait, for this rule or for another
	Until clock.Instant // when its context ends; the last instant there is if never

	// Wake is called when Poll should be called, perhaps more often than need be and
	// perhaps while the limiter is locked. It neither blocks nor calls the limiter.
	Wake func()
}

// Waiter is a call that waits in a queue. Its methods are called by one goroutine at a
// time.
type Waiter interface {
	// Poll says whether the call still waits. Pass: the call has its ticket and has left the
	// queue. Wait: it goes on; Poll is to be called again when the call is woken, and
	// after the duration if that is not 0. When the context of the call ends, Leave is called; a limit of the
	// limiter's own to the wait is for Poll to keep. Block: the wait has ended, and the ticket is as of
	// Acquire.
	// Stale: the rule has changed or is gone, and the call has left the queue.
	Poll(now clock.Instant) (Ticket, time.Duration, Decision)

	// Leave ends the wait of a call that has given up. What was granted to it and not
	// collected yet is given back.
	Leave(now clock.Instant)
}

// Finisher is a limiter that learns how calls end.
type Finisher interface {
	Limiter

	// Done is called once for every call that passed all of its rules, when it ends,
	// with the ticket that it got here.
	Done(Ticket, Exit)
}

// Settler is a limiter that counts tokens and can correct what a call took.
type Settler interface {
	Limiter

	// Settle adds tokens to what a call took that passed at start, or gives some of
	// them back if the number is negative. It never fails.
	Settle(now, start clock.Instant, t Ticket, tokens int32)
}

// Activator is a limiter that has something to do when its version of the rule comes
// into force. Calls may reach it shortly before.
type Activator interface {
	Limiter

	Activate(now clock.Instant)
}

// Retirer is a limiter that has something to release when its rule is removed: it ends the
// waits of its calls, with Stale, and frees what it holds elsewhere. It is retired as well
// when it is Idle and the engine forgets its resource. Calls under way may still give back,
// and end, after that.
type Retirer interface {
	Limiter

	Retire(now clock.Instant)
}

// Controllable is a limiter whose state can be set by an operator.
type Controllable interface {
	Limiter

	// Control forces a state, one of [Spec.Controls]; "" releases it.
	Control(now clock.Instant, state string)
}

// Env is what the engine gives to a new limiter.
type Env struct {
	// Version numbers the versions of rules: a later one is higher.
	Version uint64

	// Compiled is what [Spec.Compile] returned for the rule; nil for kinds without it.
	Compiled any

	// Resource is the name of the resource that the limiter is for; "" if several share
	// it. It is [OtherResources] for that of the names beyond the bound of the engine.
	Resource string

	// Now is the present instant.
	Now clock.Instant

	// Until returns the time until a time of the calendar, as the wall clock tells it at present;
	// negative if that has passed. Now and the instants of calls measure time, and do not follow
	// when the wall clock is set, or a suspended machine resumes: what people mean by the calendar
	// is asked here. nil if instants are the only time there is.
	//
	// What the wall clock shows now, as a kind that goes by the time of day has to know, is
	// t.Add(-Until(t)), with t the time of any instant. It may be set at any moment: look again after a second at the most.
	Until func(t time.Time) time.Duration

	// Forced is the state, one of [Spec.Controls], in which the limiter begins, or goes
	// on, because an operator has forced it; "" for none. See [Controllable].
	Forced string

	// Lists are the lists that rules refer to by name. It is never nil.
	Lists *list.Registry

	// Signals has the readings of the signals that [Spec.Signals] and [Spec.Hints] name. It is never nil.
	// Limiters may keep the readings.
	Signals Signals

	// Fleet is this instance's side of the fleet, for rules that [Spec.Fleet] says are for
	// all instances; nil if the engine has no backend for that: then their limit is that of
	// this instance.
	Fleet fleet.Member

	// Seed is the seed of everything that the limiter draws at random, so that simulations
	// can be repeated; 0 if it is to choose a seed itself.
	Seed uint64

	// Sources is for kinds of this repository, see NeedsSource in package internal/optional.
	Sources bool

	// Warn logs what an operator should know, with the name of the rule. A limiter says one
	// thing once, or at most once a minute if it happens again. It is called without a lock of the limiter; nil to log nothing.
	Warn func(message string)

	// Changed reports a change of state, for kinds that have [Spec.States], and what led to it, in plain
	// words; "" for nothing. It is called without a lock of the limiter, once for each change, in their order:
	// from is the state that was reported last. A change that the time brings is reported by the first call, or
	// Status, that finds it: there is no timer. It is never nil.
	Changed func(at clock.Instant, from, to, because string)
}
