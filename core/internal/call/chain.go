package call

import (
	"runtime"
	"slices"
	"sync/atomic"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/core/internal/recorder"
	"github.com/penstock-go/penstock/internal/optional"
	"github.com/penstock-go/penstock/rule"
)

// Chain is the rules that one call has to pass, in the order in which they are asked, as
// steps, and once the call has passed, shadow rules.
//
// A chain never changes, except that it notes that it was used, and what refused last. The zero value
// lets all calls pass.
type Chain struct {
	*Details // nil of a chain with none of these

	IsEmpty     bool         // there are no rules, and no observer of calls
	IsOneStep   bool         // there is nothing but one step, which has one key at the most and injects no faults
	IsFollowed  bool         // shadow rules, rules with related or an observer are asked once the call has passed
	Injects     bool         // a step or a shadow injects faults: calls get a number
	demotes     bool         // a step demotes calls; none from forecasts on does
	pends       bool         // a call may give back what it took of a limit that resources share
	decidesLast bool         // from forecasts on there are several, for none of which calls wait
	refusedLast atomic.Int32 // if decidesLast: the step, counted from 1, that refused last

	Steps []Step
	PassedRules
}

// Details is what few chains have: it is apart, since ten thousand resources may have a chain each.
type Details struct {
	shadows      []Step
	counters     []optional.PassCounter // of rules on other resources that count the passes
	recordedKeys []*recorder.Key        // attributes of calls that are recorded
	prefetching  *KeyedStep             // the first step with a prefetcher; nil if there is none
	Named        *NamedOrigin           // nil unless the chain is for one origin
	origins      map[string]*Chain      // of the chain for all others: those for the origins that rules name; nil without any
}

// ForOrigin returns the chain for the origin of a call, given the one for all that no rule names, which has
// details.
func (c *Chain) ForOrigin(origin string) *Chain {
	if c.origins == nil {
		return c
	}
	of := c.origins[origin]
	if of == nil {
		return c
	}
	if !of.Named.Entered.Load() {
		of.NoteOrigin()
	}
	return of
}

// HasOrigin says whether a rule names the origin, given the chain for all that no rule names.
func (c *Chain) HasOrigin(origin string) bool { return c.Details != nil && c.origins[origin] != nil }

// SetOrigins sets the chains for the origins that rules name, of the chain for all others.
func (c *Chain) SetOrigins(origins map[string]*Chain) { c.ensureDetails().origins = origins }

// Prefetching returns the first step with a prefetcher; nil if there is none.
func (d *Details) Prefetching() *KeyedStep {
	if d == nil {
		return nil
	}
	return d.prefetching
}

// HasShadows says whether there are shadow rules.
func (d *Details) HasShadows() bool { return d != nil && len(d.shadows) > 0 }

// HasCounters says whether rules on other resources count the passes.
func (d *Details) HasCounters() bool { return d != nil && len(d.counters) > 0 }

// HasRecordedKeys says whether attributes of calls are recorded.
func (d *Details) HasRecordedKeys() bool { return d != nil && len(d.recordedKeys) > 0 }

// Shadows returns the shadow rules.
func (d *Details) Shadows() []Step {
	if d == nil {
		return nil
	}
	return d.shadows
}

// RecordedKeys returns the attributes of calls that are recorded.
func (d *Details) RecordedKeys() []*recorder.Key {
	if d == nil {
		return nil
	}
	return d.recordedKeys
}

// AddShadow adds a shadow rule, before the chain is finished, whose step it returns to be filled.
func (c *Chain) AddShadow() *Step {
	d := c.ensureDetails()
	d.shadows = append(d.shadows, Step{})
	return &d.shadows[len(d.shadows)-1]
}

// CountBy has rules on other resources count the calls that pass, before the chain is finished.
func (c *Chain) CountBy(counters []optional.PassCounter) {
	if len(counters) > 0 {
		c.ensureDetails().counters = counters
	}
}

// IsFor makes it a chain for the calls of one origin, of which rules have evidence.
func (c *Chain) IsFor(evidence []*Evidence) {
	c.ensureDetails().Named = &NamedOrigin{Evidence: evidence}
}

func (c *Chain) ensureDetails() *Details {
	if c.Details == nil {
		c.Details = new(Details)
	}
	return c.Details
}

// NamedOrigin is the one origin that a chain is for.
type NamedOrigin struct {
	Evidence []*Evidence // of the rules for it
	Entered  atomic.Bool // a call of it was noted there
}

// NoteOrigin takes note of a call of the one origin that the chain is for.
func (c *Chain) NoteOrigin() {
	c.Named.Entered.Store(true)
	for _, e := range c.Named.Evidence {
		if e != nil {
			e.fromOrigin.Store(true)
		}
	}
}

// Finish completes the chain, once all rules have been added. observed says that an observer learns of
// the calls that pass: these go the way on which more than the rules is asked, so that the others need
// not look whether there is one.
func (c *Chain) Finish(observed bool) {
	shadows := c.Shadows()
	c.asked, c.forecasts = int32(len(c.Steps)), int32(len(c.Steps))
	c.Rules = slices.Grow(c.Rules, len(c.Steps)+len(shadows))
	for i := range c.Steps {
		c.add(&c.Steps[i])
	}
	for i := range slices.Backward(c.Steps) {
		s, of := &c.Steps[i], &c.Rules[i]
		c.demotes = c.demotes || s.demotes
		if of.isFinished() {
			c.Finishes, c.several, c.finisher = true, c.Finishes, int32(i)
		}
		isInstant := of.forecasts && s.queue == nil // its ticket is the instant at which the call passes
		c.Tickets = c.Tickets || of.isFinished() || of.settler != nil && !isInstant || s.demotes
		if s.Forecaster != nil && !c.demotes {
			c.forecasts = int32(i)
		}
	}
	for i := range shadows {
		c.add(&shadows[i])
	}
	c.decidesLast = len(c.Steps)-c.Forecasts() > 1
	for i := c.Forecasts(); i < len(c.Steps); i++ {
		s := &c.Steps[i]
		c.decidesLast = c.decidesLast && s.Forecaster != nil && s.queue == nil
		s.mayGiveBack = s.Pending != nil && i+1 < len(c.Steps)
		c.pends = c.pends || s.mayGiveBack
	}
	for i := range len(c.Steps) + len(shadows) {
		c.Injects = c.Injects || c.slotStep(i).injects
	}
	c.IsFollowed = observed || c.HasShadows() || c.HasCounters()
	c.IsEmpty = len(c.Steps) == 0 && !c.IsFollowed
	c.IsOneStep = len(c.Steps) == 1 && !c.IsFollowed && !c.Injects && !c.demotes && len(c.Steps[0].keys()) <= 1
	c.Extras.Passed = &c.PassedRules
	if keys := c.keysToRecord(); len(keys) > 0 {
		c.ensureDetails().recordedKeys = keys
	}
	first := slices.IndexFunc(c.Steps, func(s Step) bool { return s.Keyed != nil && s.Keyed.prefetcher != nil })
	if first >= 0 {
		c.ensureDetails().prefetching = c.Steps[first].Keyed
	}
}

// RefusesToWait says whether a call is refused for which a step says Wait, as it does not wait, or another rule would
// refuse it then, and by which answer.
func (c *Chain) RefusesToWait(said Answer, q *Request) (by Answer, refuses bool) {
	if by, refuses = c.RefusesLater(said, q); refuses {
		return
	}
	return said, !c.Steps[said.Which].Waits(q)
}

// RefusesLater looks for a rule that would refuse the call, behind one for which it would wait, at the
// instant to which it would have to wait. It returns the answer of that.
func (c *Chain) RefusesLater(waits Answer, q *Request) (a Answer, ok bool) {
	if c.Steps[waits.Which].Forecaster == nil || waits.Ticket == 0 { // nobody knows how long
		return waits, false
	}
	for i := max(waits.Which+1, c.Forecasts()); i < len(c.Steps); i++ {
		if c.Steps[i].refuses(q, clock.Instant(waits.Ticket)) {
			return Answer{Which: i, Decision: rule.Block}, true
		}
	}
	return waits, false
}

// Acquire asks the steps for a ticket each. If one does not let the call pass, Acquire
// gives back the tickets of the steps before and returns the answer of that step.
func (c *Chain) Acquire(q *Request, opts []Option, tickets []rule.Ticket) (a Answer) {
	passed := 0
	defer func() {
		if passed < len(c.Steps) { // also when a limiter panics
			c.GiveBack(0, passed, q, tickets)
		}
	}()
	for passed < len(c.Steps) {
		if passed == c.Forecasts() && passed+1 < len(c.Steps) {
			if a = c.AcquireLast(q, opts, tickets); a.Decision == rule.Pass {
				passed = len(c.Steps)
			}
			return a
		}
		s := &c.Steps[passed]
		var ticket rule.Ticket
		var decision rule.Decision
		if s.demotes {
			ticket, decision = c.askDemoting(passed, q, opts, tickets)
		} else {
			ticket, decision = s.Ask(q, opts)
		}
		for tries := 0; decision == rule.Block && tries < MaxTries && s.MayGetBack(q); tries++ {
			runtime.Gosched()
			ticket, decision = s.Ask(q, opts)
		}
		if decision != rule.Pass {
			return Answer{passed, ticket, decision, true}
		}
		tickets[passed] = ticket
		passed++
	}
	return Answer{Decision: rule.Pass}
}

// AcquireOne is Acquire for a chain that IsOneStep, of which no ticket has to be given back.
func (c *Chain) AcquireOne(q *Request, opts []Option, tickets []rule.Ticket) Answer {
	s := &c.Steps[0]
	ticket, decision := s.Ask(q, opts)
	for tries := 0; decision == rule.Block && tries < MaxTries && s.MayGetBack(q); tries++ {
		runtime.Gosched()
		ticket, decision = s.Ask(q, opts)
	}
	tickets[0] = ticket
	return Answer{0, ticket, decision, true}
}

// AcquireLast is Acquire for the steps from the first Forecaster on. A call that finds one full asks
// again until it is sure that nothing remained but what another call gives back.
func (c *Chain) AcquireLast(q *Request, opts []Option, tickets []rule.Ticket) (a Answer) {
	if last := int(c.refusedLast.Load()); last > 0 && c.Steps[last-1].refuses(q, q.Now) {
		return c.firstRefusal(last-1, q)
	}
	for range MaxTries {
		a = c.tryLast(q, opts, tickets)
		if a.Decision != rule.Block || !c.Steps[a.Which].MayGetBack(q) {
			break
		}
		runtime.Gosched()
	}
	if c.decidesLast && a.Decision == rule.Block {
		c.refusedLast.Store(int32(a.Which + 1))
	}
	return a
}

// firstRefusal returns the first step of those that decide at once which refuses the call; another one
// is known to.
func (c *Chain) firstRefusal(known int, q *Request) Answer {
	for i := c.Forecasts(); i < known; i++ {
		if c.Steps[i].refuses(q, q.Now) {
			known = i
		}
	}
	return Answer{Which: known, Decision: rule.Block, isFirst: true}
}

// tryLast asks the steps from the first Forecaster on, one after the other.
func (c *Chain) tryLast(q *Request, opts []Option, tickets []rule.Ticket) (a Answer) {
	passed, begun := c.Forecasts(), c.Forecasts()
	defer func() {
		if c.pends {
			defer c.endPending(begun)
		}
		if passed < len(c.Steps) { // also when a limiter panics
			c.GiveBack(c.Forecasts(), passed, q, tickets)
		}
	}()
	for ; passed < len(c.Steps); passed++ {
		s := &c.Steps[passed]
		if s.mayGiveBack {
			s.Pending.begin()
		}
		begun = passed + 1
		ticket, decision := s.Ask(q, opts)
		if decision != rule.Pass {
			return Answer{passed, ticket, decision, true}
		}
		tickets[passed] = ticket
	}
	return Answer{Decision: rule.Pass}
}

// endPending ends what tryLast has begun on the steps before the one with an index: the call has
// nothing of them that it may still give back.
func (c *Chain) endPending(before int) {
	for i := c.Forecasts(); i < before; i++ {
		if s := &c.Steps[i]; s.mayGiveBack {
			s.Pending.end()
		}
	}
}

// Promise notes that a call that waits at a step will take n tokens of the rules behind it, or, if n is
// negative, that it does not wait any longer.
func (c *Chain) Promise(from int, n int32) {
	for i := max(from+1, c.Forecasts()); i < len(c.Steps); i++ {
		if s := &c.Steps[i]; s.promises {
			s.Refusals.Tally.promised.Add(int64(n))
		}
	}
}

// IndexOf returns the step of a series of limiters; -1 if there is none.
func (c *Chain) IndexOf(series uint64) int {
	for i := range c.Steps {
		if c.Steps[i].Series == series {
			return i
		}
	}
	return -1
}

// WaitsWithin says whether the limiter of the step with an index has to know that calls wait within calls
// of it.
func (c *Chain) WaitsWithin(i int) bool {
	_, suspends := c.Steps[i].Limiter.(optional.Suspender)
	return suspends
}

// slotStep returns the step whose ticket is in slot i of a Record: those of the chain
// come first, then its shadow rules.
func (c *Chain) slotStep(i int) *Step {
	if i < len(c.Steps) {
		return &c.Steps[i]
	}
	return &c.shadows[i-len(c.Steps)]
}

// askDemoting asks the step with an index, which demotes calls.
func (c *Chain) askDemoting(i int, q *Request, opts []Option, tickets []rule.Ticket) (rule.Ticket, rule.Decision) {
	if q.DemotedBy != nil {
		return demotedTicket, rule.Pass
	}
	s := &c.Steps[i]
	ticket, decision := s.Ask(q, opts)
	if !s.demotesBy(ticket, decision) {
		return ticket, decision
	}
	for j := range i {
		if before := tickets[j]; c.Steps[j].demotes {
			tickets[j] = demotedTicket
			c.Steps[j].Limiter.GiveBack(q.Now, before, q.Tokens)
		}
	}
	q.demote(s.Refusals.Tally)
	return demotedTicket, rule.Pass
}

// keysToRecord returns the attributes that rules of the chain look at, the first few.
func (c *Chain) keysToRecord() (keys []*recorder.Key) {
	add := func(name string) {
		for _, k := range keys {
			if k.Name == name {
				return
			}
		}
		if len(keys) < recorder.MaxKeys {
			keys = append(keys, &recorder.Key{Name: name})
		}
	}
	for i := range len(c.Steps) + len(c.Shadows()) {
		s := c.slotStep(i)
		for _, key := range s.keys() {
			add(key)
		}
		if s.Keyed != nil && s.Keyed.sources != nil {
			add(rule.KeyIPPrefix)
		}
	}
	return keys
}

// Answer is what the step with index which says to a call.
type Answer struct {
	Which    int
	Ticket   rule.Ticket
	Decision rule.Decision
	isFirst  bool // the steps before it let the call pass at that instant
}
