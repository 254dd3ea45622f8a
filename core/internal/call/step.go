package call

import (
	"sync"
	"sync/atomic"
	"time"
	"unsafe"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/internal/optional"
	"github.com/penstock-go/penstock/rule"
)

// Step is a rule of a chain, or a shadow rule. The interfaces that its limiter has are looked up
// once, when the chain is made.
type Step struct {
	Limiter     rule.Limiter
	Series      uint64              // of its versions, see VersionedLimiter
	queue       rule.Queue          // nil if calls cannot wait
	Forecaster  optional.Forecaster // nil if it knows nothing of later calls
	Keyed       *KeyedStep          // nil if the rule looks at no attribute
	Pending     *PendingCalls       // of a forecaster's limit that several resources take from; else nil
	mayGiveBack bool                // it has pending, and rules are asked after it
	Denies      bool                // its reason is Denied: a call that it refuses cannot pass later either
	demotes     bool                // it demotes calls in place of refusing them
	counts      countedCalls        // that take tokens of it
	promises    bool                // calls which wait for other rules will take tokens of it, see Chain.Promise
	decides     bool                // calls with NoWait wait for its decision, see optional.Decider
	injects     bool                // it injects faults: its waits are delays, which calls with NoWait have too
	Refusals    *Refusals
}

// KeyedStep is what only a step has whose rule looks at attributes of calls.
type KeyedStep struct {
	keys       []string              // of the attributes
	late       optional.LateReader   // nil if it cannot decide without the attribute
	seenKey    unsafe.Pointer        // to the bytes of an option's key that is the rule's, see attribute; atomic
	evidence   *Evidence             // whether calls have them; nil if nobody wants to know
	sources    optional.SourceReader // nil if it does not judge calls by where they come from
	prefetcher optional.Prefetcher   // nil if it has nothing to prefetch
	composites *sync.Pool            // of *[rule.MaxKeys]rule.Attribute, if there are several keys
}

// keys returns the keys of the attributes that the rule looks at.
func (s *Step) keys() []string {
	if s.Keyed == nil {
		return nil
	}
	return s.Keyed.keys
}

// Ask asks the limiter whether the call of the request passes, and reads its attribute only if
// the limiter needs it.
func (s *Step) Ask(q *Request, opts []Option) (rule.Ticket, rule.Decision) {
	if s.Keyed == nil { // most are so
		ticket, decision := s.Limiter.Acquire(q.Call)
		if decision == rule.Pass {
			return ticket, decision
		}
		return ticket, s.Allowed(decision)
	}
	return s.askKeyed(q, opts)
}

// askKeyed is Ask of a rule that looks at attributes.
func (s *Step) askKeyed(q *Request, opts []Option) (rule.Ticket, rule.Decision) {
	k, call := s.Keyed, q.Call
	if k.late != nil {
		if k.evidence.looksAt(call.Now) {
			k.look(q, opts)
		}
		if ticket, decision := k.late.AcquireUnread(call); decision != optional.NeedsAttribute {
			return ticket, s.Allowed(decision)
		}
	}
	if len(k.keys) > 1 {
		return s.askComposite(q, opts)
	}
	switch last := len(opts) - 1; {
	case last < 0: // there are no attributes
		k.evidence.note(0, false)
	case opts[last].key == atomic.LoadPointer(&k.seenKey) && opts[last].kind == len(k.keys[0]):
		call.Attribute = opts[last].value
	default:
		call.Attribute = k.attribute(q, opts)
	}
	ticket, decision := s.Limiter.Acquire(call)
	if decision == optional.NeedsSource {
		return s.askFrom(call, q, opts)
	}
	return ticket, s.Allowed(decision)
}

// look takes note of which attributes the call has, before it has taken anything. Each call has an origin, if only
// an empty one, which callers without a name share: that is no misspelled name.
func (k *KeyedStep) look(q *Request, opts []Option) {
	for i, key := range k.keys {
		k.evidence.note(i, key == rule.KeyOrigin || q.Attribute(opts, key).IsSet())
	}
}

// askFrom asks the limiter again, which has to know where the call comes from.
func (s *Step) askFrom(call rule.Call, q *Request, opts []Option) (rule.Ticket, rule.Decision) {
	if s.Keyed.sources == nil {
		return 0, rule.Block
	}
	source := q.Attribute(opts, rule.KeyIPPrefix)
	if !source.IsSet() {
		source = q.Attribute(opts, rule.KeyOrigin)
	}
	ticket, decision := s.Keyed.sources.AcquireFrom(call, source)
	return ticket, s.Allowed(decision)
}

// attribute returns the attribute of the one key, which the last option often has. It remembers
// where that option has its key. That of most later calls is the same constant: these need
// not compare the texts, which saves 2 ns.
func (k *KeyedStep) attribute(q *Request, opts []Option) rule.Attribute {
	if o := &opts[len(opts)-1]; o.hasKey(k.keys[0]) {
		if atomic.LoadPointer(&k.seenKey) == nil {
			atomic.StorePointer(&k.seenKey, o.key)
		}
		k.evidence.note(0, o.value.IsSet())
		return o.value
	}
	a := q.Attribute(opts, k.keys[0])
	k.evidence.note(0, a.IsSet())
	return a
}

// Prefetch has the prefetcher load what the step will look at, if an option is the attribute.
func (k *KeyedStep) Prefetch(opts []Option) {
	for i := len(opts) - 1; i >= 0; i-- {
		if o := &opts[i]; o.hasKey(k.keys[0]) {
			if o.value.IsSet() {
				k.prefetcher.Prefetch(o.value)
			}
			return
		}
	}
}

func (s *Step) askComposite(q *Request, opts []Option) (ticket rule.Ticket, decision rule.Decision) {
	s.withAttribute(q, opts, func(call rule.Call) {
		if ticket, decision = s.Limiter.Acquire(call); decision == optional.NeedsSource {
			ticket, decision = s.askFrom(call, q, opts)
		}
	})
	return ticket, s.Allowed(decision)
}

// Waits reports whether a call waits if the step says Wait to it: with NoWait most do not.
func (s *Step) Waits(q *Request) bool { return !q.NoWait || s.injects || s.decides }

// DecidesWithin returns how long calls with NoWait wait for a decision of the step; 0 if they do not.
func (s *Step) DecidesWithin() time.Duration {
	if !s.decides {
		return 0
	}
	return s.queue.(optional.Decider).DecidesWithin()
}

// Allowed returns the decision, or Block in place of one that the limiter may not return,
// such as Wait of a limiter that is no queue.
func (s *Step) Allowed(decision rule.Decision) rule.Decision {
	if decision == rule.Wait && s.queue == nil || decision > rule.Stale {
		return rule.Block
	}
	return decision
}

// retryTime returns how long it takes until a call passes this step that got an answer which refuses
// it; 0 if that says nothing.
func (s *Step) retryTime(a Answer, q *Request, opts []Option) time.Duration {
	switch {
	case a.Ticket == 0:
	case a.Decision == rule.Block:
		return a.Ticket.RetryTime()
	case a.Decision == rule.Wait && s.Forecaster != nil:
		return max(1, clock.Instant(a.Ticket).Sub(q.Now))
	}
	return s.retryAfter(q, opts)
}

// retryAfter returns how long it takes until such a call passes this step.
func (s *Step) retryAfter(q *Request, opts []Option) (wait time.Duration) {
	ask := func(call rule.Call) {
		wait = s.Limiter.RetryAfter(call)
		if wait == 0 && q.NoWait && s.Forecaster != nil && s.queue != nil {
			passAt, _ := s.Forecaster.Forecast(call, q.Now, 0)
			wait = max(0, passAt.Sub(q.Now))
		}
	}
	if s.Keyed == nil || s.Keyed.late != nil {
		ask(q.Call)
	} else {
		s.withAttribute(q, opts, ask)
	}
	return wait
}

// Join puts the call into the queue of the step.
func (s *Step) Join(q *Request, opts []Option, patience rule.Patience) (
	waiter rule.Waiter, ticket rule.Ticket, decision rule.Decision,
) {
	s.withAttribute(q, opts, func(call rule.Call) { waiter, ticket, decision = s.queue.Join(call, patience) })
	return waiter, ticket, decision
}

// withAttribute calls fn with the call and the attribute that the rule looks at.
func (s *Step) withAttribute(q *Request, opts []Option, fn func(rule.Call)) {
	k := s.Keyed
	switch {
	case k == nil:
		fn(q.Call)
	case len(k.keys) == 1:
		a := q.Attribute(opts, k.keys[0])
		k.evidence.note(0, a.IsSet())
		fn(q.With(a))
	default:
		parts, _ := k.composites.Get().(*[rule.MaxKeys]rule.Attribute)
		for i, key := range k.keys {
			parts[i] = q.Attribute(opts, key)
			k.evidence.note(i, parts[i].IsSet())
		}
		fn(q.With(rule.Composite(parts, len(k.keys))))
		*parts = [rule.MaxKeys]rule.Attribute{} // keeps nothing of the call alive
		k.composites.Put(parts)
	}
}

// refuses says whether the step refuses such a call now and, as far as is known, at a later instant,
// and not only because another call holds tokens for a moment.
func (s *Step) refuses(q *Request, at clock.Instant) bool {
	if s.Forecaster == nil {
		return false
	}
	promised := int64(0)
	if s.promises {
		promised = s.Refusals.Tally.promised.Load()
	}
	_, refused := s.Forecaster.Forecast(q.Call, at, promised)
	return refused && !s.MayGetBack(q)
}

// MayGetBack says whether tokens may come back from calls that hold them for a moment, for such a
// call, which the step refuses.
func (s *Step) MayGetBack(q *Request) bool {
	return s.Pending != nil && s.Pending.any(s.Forecaster, q.Call)
}

// demotesBy says whether an answer of the limiter demotes a call: the step is one that does, and the
// call is not one that may never be made.
func (s *Step) demotesBy(ticket rule.Ticket, decision rule.Decision) bool {
	return s.demotes && decision == rule.Block && ticket != rule.Ticket(rule.Forbidden)
}
