package core

import (
	"sync"
	"sync/atomic"
	"time"
	"unsafe"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/rule"
)

// step is a rule of a chain, or a shadow rule. The interfaces that its limiter has are looked up
// once, when the chain is made.
type step struct {
	limiter     rule.Limiter
	first       rule.Limiter    // of its versions, see versionedLimiter
	queue       rule.Queue      // nil if calls cannot wait
	forecaster  rule.Forecaster // nil if it knows nothing of later calls
	keyed       *keyedStep      // nil if the rule looks at no attribute
	pending     *pendingCalls   // of a forecaster's limit that several resources take from; else nil
	promised    *atomic.Int64   // tokens that calls which wait will take, see chain.promise; nil if none are
	decides     time.Duration   // how long calls with NoWait wait for its decision, see rule.Decider
	mayGiveBack bool            // it has pending, and rules are asked after it
	denies      bool            // its reason is Denied: a call that it refuses cannot pass later either
	demotes     bool            // it demotes calls in place of refusing them
	counts      countedCalls    // that take tokens of it
	injects     bool            // it injects faults: its waits are delays, which calls with NoWait have too
	refusals    *refusals
}

// keyedStep is what only a step has whose rule looks at attributes of calls.
type keyedStep struct {
	keys       []string          // of the attributes
	late       rule.LateReader   // nil if it cannot decide without the attribute
	seenKey    unsafe.Pointer    // to the bytes of an option's key that is the rule's, see attribute; atomic
	evidence   *evidence         // whether calls have them; nil if nobody wants to know
	sources    rule.SourceReader // nil if it does not judge calls by where they come from
	prefetcher rule.Prefetcher   // nil if it has nothing to prefetch
	composites *sync.Pool        // of *[rule.MaxKeys]rule.Attribute, if there are several keys
}

// keys returns the keys of the attributes that the rule looks at.
func (s *step) keys() []string {
	if s.keyed == nil {
		return nil
	}
	return s.keyed.keys
}

// ask asks the limiter whether the call of the request passes, and reads its attribute only if
// the limiter needs it.
func (s *step) ask(call rule.Call, q *request, opts []Option) (rule.Ticket, rule.Decision) {
	k := s.keyed
	switch {
	case k == nil: // most are so, and this is quicker
		ticket, decision := s.limiter.Acquire(call)
		return ticket, s.allowed(decision)
	case k.late != nil:
		if ticket, decision := k.late.AcquireUnread(call); decision != rule.NeedsAttribute {
			return ticket, s.allowed(decision)
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
	ticket, decision := s.limiter.Acquire(call)
	if decision == rule.NeedsSource {
		return s.askFrom(call, q, opts)
	}
	return ticket, s.allowed(decision)
}

// askFrom asks the limiter again, which has to know where the call comes from.
func (s *step) askFrom(call rule.Call, q *request, opts []Option) (rule.Ticket, rule.Decision) {
	if s.keyed.sources == nil {
		return 0, rule.Block
	}
	source := q.attribute(opts, rule.KeyIPPrefix)
	if !source.IsSet() {
		source = q.attribute(opts, rule.KeyOrigin)
	}
	ticket, decision := s.keyed.sources.AcquireFrom(call, source)
	return ticket, s.allowed(decision)
}

// attribute returns the attribute of the one key, which the last option often has. It remembers
// where that option has its key. That of most later calls is the same constant: these need
// not compare the texts, which saves 2 ns.
func (k *keyedStep) attribute(q *request, opts []Option) rule.Attribute {
	if o := &opts[len(opts)-1]; o.hasKey(k.keys[0]) {
		if atomic.LoadPointer(&k.seenKey) == nil {
			atomic.StorePointer(&k.seenKey, o.key)
		}
		k.evidence.note(0, o.value.IsSet())
		return o.value
	}
	a := q.attribute(opts, k.keys[0])
	k.evidence.note(0, a.IsSet())
	return a
}

// prefetch has the prefetcher load what the step will look at, if an option is the attribute.
func (k *keyedStep) prefetch(opts []Option) {
	for i := len(opts) - 1; i >= 0; i-- {
		if o := &opts[i]; o.hasKey(k.keys[0]) {
			if o.value.IsSet() {
				k.prefetcher.Prefetch(o.value)
			}
			return
		}
	}
}

func (s *step) askComposite(q *request, opts []Option) (ticket rule.Ticket, decision rule.Decision) {
	s.withAttribute(q, opts, func(call rule.Call) {
		if ticket, decision = s.limiter.Acquire(call); decision == rule.NeedsSource {
			ticket, decision = s.askFrom(call, q, opts)
		}
	})
	return ticket, s.allowed(decision)
}

// waits reports whether a call waits if the step says Wait to it: with NoWait most do not.
func (s *step) waits(q *request) bool { return !q.noWait || s.injects || s.decides > 0 }

// allowed returns the decision, or Block in place of one that the limiter may not return,
// such as Wait of a limiter that is no queue.
func (s *step) allowed(decision rule.Decision) rule.Decision {
	if decision == rule.Wait && s.queue == nil || decision > rule.Stale {
		return rule.Block
	}
	return decision
}

// retryTime returns how long it takes until a call passes this step that got an answer which refuses
// it; 0 if that says nothing.
func (s *step) retryTime(a answer, q *request, opts []Option) time.Duration {
	switch {
	case a.ticket == 0:
	case a.decision == rule.Block:
		return a.ticket.RetryTime()
	case a.decision == rule.Wait && s.forecaster != nil:
		return max(1, clock.Instant(a.ticket).Sub(q.Now))
	}
	return s.retryAfter(q, opts)
}

// retryAfter returns how long it takes until such a call passes this step.
func (s *step) retryAfter(q *request, opts []Option) (wait time.Duration) {
	ask := func(call rule.Call) {
		wait = s.limiter.RetryAfter(call)
		if wait == 0 && q.noWait && s.forecaster != nil && s.queue != nil {
			passAt, _ := s.forecaster.Forecast(call, q.Now, 0)
			wait = max(0, passAt.Sub(q.Now))
		}
	}
	if s.keyed == nil || s.keyed.late != nil {
		ask(q.Call)
	} else {
		s.withAttribute(q, opts, ask)
	}
	return wait
}

// join puts the call into the queue of the step.
func (s *step) join(q *request, opts []Option, patience rule.Patience) (
	waiter rule.Waiter, ticket rule.Ticket, decision rule.Decision,
) {
	s.withAttribute(q, opts, func(call rule.Call) { waiter, ticket, decision = s.queue.Join(call, patience) })
	return waiter, ticket, decision
}

// withAttribute calls fn with the call and the attribute that the rule looks at.
func (s *step) withAttribute(q *request, opts []Option, fn func(rule.Call)) {
	k := s.keyed
	switch {
	case k == nil:
		fn(q.Call)
	case len(k.keys) == 1:
		a := q.attribute(opts, k.keys[0])
		k.evidence.note(0, a.IsSet())
		fn(q.with(a))
	default:
		parts, _ := k.composites.Get().(*[rule.MaxKeys]rule.Attribute)
		for i, key := range k.keys {
			parts[i] = q.attribute(opts, key)
			k.evidence.note(i, parts[i].IsSet())
		}
		fn(q.with(rule.Composite(parts, len(k.keys))))
		*parts = [rule.MaxKeys]rule.Attribute{} // keeps nothing of the call alive
		k.composites.Put(parts)
	}
}

// refuses says whether the step refuses such a call now and, as far as is known, at a later instant,
// and not only because another call holds tokens for a moment.
func (s *step) refuses(q *request, at clock.Instant) bool {
	if s.forecaster == nil {
		return false
	}
	promised := int64(0)
	if s.promised != nil {
		promised = s.promised.Load()
	}
	_, refused := s.forecaster.Forecast(q.Call, at, promised)
	return refused && !s.mayGetBack(q)
}

// mayGetBack says whether tokens may come back from calls that hold them for a moment, for such a
// call, which the step refuses.
func (s *step) mayGetBack(q *request) bool {
	return s.pending != nil && s.pending.any(s.forecaster, q.Call)
}

// answer is what the step with index which says to a call.
type answer struct {
	which    int
	ticket   rule.Ticket
	decision rule.Decision
	isFirst  bool // the steps before it let the call pass at that instant
}

// demotesBy says whether an answer of the limiter demotes a call: the step is one that does, and the
// call is not one that may never be made.
func (s *step) demotesBy(ticket rule.Ticket, decision rule.Decision) bool {
	return s.demotes && decision == rule.Block && ticket != rule.Ticket(rule.Forbidden)
}
