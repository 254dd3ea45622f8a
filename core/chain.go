package core

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/rule"
)

// chain is the rules that one call has to pass, in the order in which they are
// asked: steps, which are rules of other kinds than flow; the flow rules, last, those
// with queues before those with windows; and once the call has passed, shadow rules.
// Flow rules are asked directly rather than through [rule.Limiter]; this is the one
// file that knows of that.
//
// A chain never changes, except that it notes that it was used. The zero value lets all
// calls pass.
type chain struct {
	onlyWindows bool // there is nothing but flow rules that calls cannot wait for, and no observer of calls
	isOneStep   bool // there is nothing but one step, which has one key at the most and injects no faults
	isFollowed  bool // shadow rules, rules with related or an observer are asked once the call has passed

	rates    flow.Chain
	refusals []*refusals // of the flow rules, by their index
	steps    []step
	shadows  []step
	counters []rule.PassCounter // of rules on other resources that count the passes
	tickets  bool               // steps need their tickets when the call ends, or by Guard.Settle
	injects  bool               // a step or a shadow injects faults: calls get a number
	suspends bool               // a step or a shadow has to know that a call waits within the call
	ends     []end              // of steps that learn how calls end, the last first

	extras   guardExtras    // of guards that need no others
	recorded []*recordedKey // attributes of calls that are recorded

	named   []*evidence // of the rules for the one origin that the chain is for
	entered atomic.Bool // a call of that origin was noted there
}

// noteOrigin takes note of a call of the one origin that the chain is for.
func (c *chain) noteOrigin() {
	c.entered.Store(true)
	for _, e := range c.named {
		if e != nil {
			e.fromOrigin.Store(true)
		}
	}
}

// step is a rule of a chain that is no flow rule, or a shadow rule of any kind. The
// interfaces that its limiter has are looked up once, when the chain is made.
type step struct {
	limiter    rule.Limiter
	first      rule.Limiter      // of its versions, see versionedLimiter
	queue      rule.Queue        // nil if calls cannot wait
	finisher   rule.Finisher     // nil if it need not learn how calls end
	settler    rule.Settler      // nil if it counts no tokens
	prefetcher rule.Prefetcher   // nil if it has nothing to prefetch
	late       rule.LateReader   // nil if it cannot decide without the attribute
	suspends   rule.Suspender    // nil if it need not know that the call waits for another rule
	sources    rule.SourceReader // nil if it does not judge calls by where they come from
	keys       []string          // of the attributes that the rule looks at
	evidence   *evidence         // whether calls have them; nil if nobody wants to know
	seenKey    unsafe.Pointer    // to the bytes of an option's key that is the rule's, see attribute; atomic
	composites *sync.Pool        // of *[rule.MaxKeys]rule.Attribute, if there are several keys
	denies     bool              // its reason is Denied: a call that it refuses cannot pass later either
	injects    bool              // it injects faults: its waits are delays, which calls with NoWait have too
	decides    time.Duration     // how long calls with NoWait wait for its decision, see rule.Decider
	refusals   *refusals
}

func newStep(entry *plannedEntry) step {
	limiter, reason := entry.limiter.Limiter, entry.rule.Type().Reason()
	if shared, ok := limiter.(rule.Divided); ok && entry.state.rule.sharesLimiter {
		limiter = shared.For(entry.state.refusals.resource)
	}
	s := step{
		limiter: limiter, first: entry.limiter.first, keys: entry.rule.Attributes(),
		denies: reason == rule.Denied, injects: reason == rule.Injected, refusals: entry.state.refusals,
	}
	if len(s.keys) > 0 {
		s.evidence = entry.state.evidenceFor(entry.rule)
	}
	if len(s.keys) > 1 {
		s.composites = &sync.Pool{New: func() any { return new([rule.MaxKeys]rule.Attribute) }}
	}
	s.queue, _ = limiter.(rule.Queue)
	s.finisher, _ = limiter.(rule.Finisher)
	s.settler, _ = limiter.(rule.Settler)
	s.late, _ = limiter.(rule.LateReader)
	s.suspends, _ = limiter.(rule.Suspender)
	s.sources, _ = limiter.(rule.SourceReader)
	if p, ok := limiter.(rule.Prefetcher); ok && len(s.keys) == 1 && p.Prefetches() {
		s.prefetcher = p
	}
	if decider, ok := limiter.(rule.Decider); ok {
		s.decides = decider.DecidesWithin()
	}
	return s
}

// end is a step that learns how calls end.
type end struct {
	finisher rule.Finisher
	step     int // its index
}

// waitOrder says whether calls can wait for a rule.
type waitOrder uint8

const (
	asksFirst   waitOrder = iota // a step, before the flow rules of its phase
	canWait                      // a flow rule with a queue
	decidesLast                  // a flow rule with a window
)

func waitOrderOf(limiter versionedLimiter) waitOrder {
	switch l, isFlow := limiter.Limiter.(*flow.RuleLimiter); {
	case !isFlow:
		return asksFirst
	case l.CanWait():
		return canWait
	}
	return decidesLast
}

// The types of package flow that other files of this package use, by names without the kind.
type (
	rateMember    = flow.Member
	rateTurns     = flow.Turns
	rateAdmission = flow.Admission
)

// add adds a rule to the chain, and returns the members with it if it is a flow rule. wide
// says that several resources share its limit.
func (c *chain) add(members []rateMember, entry *plannedEntry, wide bool) []rateMember {
	limiter, isFlow := entry.limiter.Limiter.(*flow.RuleLimiter)
	if !isFlow {
		c.steps = append(c.steps, newStep(entry))
		return members
	}
	c.refusals = append(c.refusals, entry.state.refusals)
	return append(members, rateMember{Limiter: limiter, Shared: wide})
}

// finish completes the chain, once all rules have been added. observed says that an observer learns of
// the calls that pass: these go the way on which more than windows is asked, so that the others need not
// look whether there is one.
func (c *chain) finish(members []rateMember, observed bool) {
	c.rates = flow.NewChain(members)
	c.onlyWindows = !observed && !c.rates.CanWait() && len(c.steps)+len(c.shadows)+len(c.counters) == 0
	for i := range slices.Backward(c.steps) {
		s := &c.steps[i]
		if s.finisher != nil {
			c.ends = append(c.ends, end{s.finisher, i})
		}
		c.tickets = c.tickets || s.finisher != nil || s.settler != nil
	}
	for i := range len(c.steps) + len(c.shadows) {
		s := c.slotStep(i)
		c.injects = c.injects || s.injects
		c.suspends = c.suspends || s.suspends != nil && s.finisher != nil
	}
	c.isOneStep = !observed && len(c.steps) == 1 && c.rates.Len()+len(c.shadows)+len(c.counters) == 0 && !c.injects &&
		len(c.steps[0].keys) <= 1
	c.isFollowed = observed || len(c.shadows)+len(c.counters) > 0
	c.extras.chain = c
	c.recorded = c.keysToRecord()
}

// takeBack undoes that a call has passed at once.
func (r *resource) takeBack(c *chain, q *request, tickets []rule.Ticket, rates *takenRates) {
	r.node.TakeBack(q.Now, q.Tokens)
	if c.rates.Len() > 0 {
		c.rates.GiveBackAll(q.Now, q.Tokens, rates.ticket, &rates.reserved)
	}
	c.giveBack(len(c.steps), q, tickets)
}

// tryPass asks all rules of a chain at one instant. On Pass all rules let the call pass, and
// it has been counted. On Block one rule refuses it: by makes the error, wait is its
// RetryAfter. On any other decision the call may be able to wait, or has to try again: that
// is for an admission. Unless it passes, the call has given back what it took.
func (r *resource) tryPass(
	ctx context.Context, q *request, opts []Option, c *chain, tickets []rule.Ticket, rates *takenRates,
) (by *refusals, wait time.Duration, decision rule.Decision) {
	which := 0
	switch len(c.steps) {
	case 0:
	case 1:
		tickets[0], decision = c.steps[0].ask(q.Call, q, opts)
	default:
		which, decision = c.acquire(q, opts, tickets)
	}
	switch {
	case decision == rule.Pass && c.rates.Len() > 0:
		return r.tryRates(ctx, q, opts, c, tickets, rates)
	case decision == rule.Pass:
		if r.pass(q.Now, q.Tokens) {
			return nil, 0, rule.Pass
		}
		c.giveBack(len(c.steps), q, tickets)
		return nil, 0, rule.Stale
	case decision == rule.Stale || decision == rule.Wait && c.steps[which].waits(q):
		return nil, 0, decision
	}
	if c.rates.Len() > 0 {
		wait = c.rates.RetryAfter(-1, q.Now, q.Tokens, q.Priority(), r.engine.patience(ctx, q.noWait))
	}
	return c.steps[which].refusals, c.longestForStep(which, wait, q, opts, nil), rule.Block
}

// takenRates is what a call that has passed at once took of the flow rules.
type takenRates struct {
	ticket   flow.Turn
	reserved rateTurns
}

// tryRates is tryPass for the flow rules, once all steps have let the call pass. It notes in rates
// what it took of them, unless that is nil.
func (r *resource) tryRates(
	ctx context.Context, q *request, opts []Option, c *chain, tickets []rule.Ticket, rates *takenRates,
) (by *refusals, wait time.Duration, decision rule.Decision) {
	var reserved rateTurns
	ticket, which, decision := c.rates.TryTake(q.Now, q.Tokens, q.Priority(), q.noWait, &reserved)
	if decision == rule.Pass {
		if r.pass(q.Now, q.Tokens) {
			if rates != nil {
				*rates = takenRates{ticket, reserved}
			}
			return nil, 0, rule.Pass
		}
		c.rates.GiveBackAll(q.Now, q.Tokens, ticket, &reserved)
		decision = rule.Stale
	}
	c.giveBack(len(c.steps), q, tickets)
	if decision != rule.Block {
		return nil, 0, decision
	}
	patience := r.engine.patience(ctx, q.noWait)
	wait = c.rates.RetryAfterTurn(which, ticket, q.Now, q.Tokens, q.Priority(), patience)
	return c.refusals[which], c.longest(-1, wait, q, opts, nil), rule.Block
}

// acquire asks the steps for a ticket each. If one does not let the call pass, acquire
// gives back the tickets of the steps before and returns the index of that step.
func (c *chain) acquire(q *request, opts []Option, tickets []rule.Ticket) (which int, decision rule.Decision) {
	passed := 0
	defer func() {
		if passed < len(c.steps) { // also when a limiter panics
			c.giveBack(passed, q, tickets)
		}
	}()
	for passed < len(c.steps) {
		ticket, decision := c.steps[passed].ask(q.Call, q, opts)
		if decision != rule.Pass {
			return passed, decision
		}
		tickets[passed] = ticket
		passed++
	}
	return 0, rule.Pass
}

// ask asks the limiter whether the call of the request passes, and reads its attribute only if
// the limiter needs it.
func (s *step) ask(call rule.Call, q *request, opts []Option) (rule.Ticket, rule.Decision) {
	switch {
	case len(s.keys) == 0: // most are so, and this is quicker
		ticket, decision := s.limiter.Acquire(call)
		return ticket, s.allowed(decision)
	case s.late != nil:
		if ticket, decision := s.late.AcquireUnread(call); decision != rule.NeedsAttribute {
			return ticket, s.allowed(decision)
		}
	}
	if len(s.keys) > 1 {
		return s.askComposite(q, opts)
	}
	switch last := len(opts) - 1; {
	case last < 0: // there are no attributes
		s.evidence.note(0, false)
	case opts[last].key == atomic.LoadPointer(&s.seenKey) && opts[last].kind == len(s.keys[0]):
		call.Attribute = opts[last].value
	default:
		call.Attribute = s.attribute(q, opts)
	}
	ticket, decision := s.limiter.Acquire(call)
	if decision == rule.NeedsSource {
		return s.askFrom(call, q, opts)
	}
	return ticket, s.allowed(decision)
}

// askFrom asks the limiter again, which has to know where the call comes from.
func (s *step) askFrom(call rule.Call, q *request, opts []Option) (rule.Ticket, rule.Decision) {
	if s.sources == nil {
		return 0, rule.Block
	}
	source := q.attribute(opts, rule.KeyIPPrefix)
	if !source.IsSet() {
		source = q.attribute(opts, rule.KeyOrigin)
	}
	ticket, decision := s.sources.AcquireFrom(call, source)
	return ticket, s.allowed(decision)
}

// attribute returns the attribute of the one key, which the last option often has. It remembers
// where that option has its key. That of most later calls is the same constant: these need
// not compare the texts, which saves 2 ns.
func (s *step) attribute(q *request, opts []Option) rule.Attribute {
	if o := &opts[len(opts)-1]; o.hasKey(s.keys[0]) {
		if atomic.LoadPointer(&s.seenKey) == nil {
			atomic.StorePointer(&s.seenKey, o.key)
		}
		s.evidence.note(0, o.value.IsSet())
		return o.value
	}
	a := q.attribute(opts, s.keys[0])
	s.evidence.note(0, a.IsSet())
	return a
}

// prefetching returns the first step with a prefetcher; nil if there is none.
func (c *chain) prefetching() *step {
	for i := range c.steps {
		if s := &c.steps[i]; s.prefetcher != nil {
			return s
		}
	}
	return nil
}

// prefetch has the prefetcher load what the step will look at, if an option is the attribute.
func (s *step) prefetch(opts []Option) {
	for i := len(opts) - 1; i >= 0; i-- {
		if o := &opts[i]; o.hasKey(s.keys[0]) {
			if o.value.IsSet() {
				s.prefetcher.Prefetch(o.value)
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

// retryAfter returns how long it takes until such a call passes this step.
func (s *step) retryAfter(q *request, opts []Option) (wait time.Duration) {
	if s.late != nil {
		return s.limiter.RetryAfter(q.Call)
	}
	s.withAttribute(q, opts, func(call rule.Call) { wait = s.limiter.RetryAfter(call) })
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
	switch len(s.keys) {
	case 0:
		fn(q.Call)
	case 1:
		a := q.attribute(opts, s.keys[0])
		s.evidence.note(0, a.IsSet())
		fn(q.with(a))
	default:
		parts, _ := s.composites.Get().(*[rule.MaxKeys]rule.Attribute)
		for i, key := range s.keys {
			parts[i] = q.attribute(opts, key)
			s.evidence.note(i, parts[i].IsSet())
		}
		fn(q.with(rule.Composite(parts, len(s.keys))))
		*parts = [rule.MaxKeys]rule.Attribute{} // keeps nothing of the call alive
		s.composites.Put(parts)
	}
}

// giveBack returns the tickets of the first count steps, the last first, also those behind one
// that panics.
func (c *chain) giveBack(count int, q *request, tickets []rule.Ticket) {
	if count == 0 {
		return
	}
	if count > 1 {
		defer c.giveBack(count-1, q, tickets)
	}
	c.steps[count-1].limiter.GiveBack(q.Now, tickets[count-1], q.Tokens)
}

// indexOf returns the step of a limiter, by the first of its versions; -1 if there is
// none.
func (c *chain) indexOf(first rule.Limiter) int {
	for i := range c.steps {
		if c.steps[i].first == first {
			return i
		}
	}
	return -1
}

// longestForStep returns the RetryAfter of a call that the step with index which refuses: the
// longest of rateWait, which is that of the flow rules, and those of all steps; 0 if the step
// denies.
func (c *chain) longestForStep(which int, rateWait time.Duration, q *request, opts []Option, held *heldTickets) time.Duration {
	s := &c.steps[which]
	if s.denies {
		return 0
	}
	wait := s.retryAfter(q, opts)
	if wait == rule.Forbidden {
		return wait
	}
	wait = max(rateWait, wait)
	if len(c.steps) == 1 {
		return wait
	}
	return c.longest(which, wait, q, opts, held)
}

// longest returns the longest of wait and the retry times of all steps, other than the one
// with index but, those that deny, and those of which the call holds a ticket.
func (c *chain) longest(but int, wait time.Duration, q *request, opts []Option, held *heldTickets) time.Duration {
	for i := range c.steps {
		s := &c.steps[i]
		if i == but || s.denies || held != nil && held.has(i) {
			continue
		}
		if other := s.retryAfter(q, opts); other != rule.Forbidden {
			wait = max(wait, other)
		} else {
			wait = Never // the rule that refuses has another reason
		}
	}
	return wait
}

// settle adds tokens to those that a call took of every rule that counts them, see
// [Guard.Settle].
func (c *chain) settle(g *Guard, now clock.Instant, tokens int32) {
	c.rates.Settle(now, g.start, g.queuedAt(), tokens)
	if record := g.extras.record; record != nil {
		record.settle(c, now, g.start, tokens)
		return
	}
	word := atomic.LoadUint32(&g.state.word)
	for i := range c.steps {
		if s := &c.steps[i]; s.settler != nil {
			s.settler.Settle(now, g.start, ticketIn(word, g.state.rest, i), tokens)
		}
	}
}

// slotStep returns the step whose ticket is in slot i of a guardRecord: those of the chain
// come first, then its shadow rules.
func (c *chain) slotStep(i int) *step {
	if i < len(c.steps) {
		return &c.steps[i]
	}
	return &c.shadows[i-len(c.steps)]
}
