package core

import (
	"sync/atomic"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/rule"
)

// Guard stands for one call that was let through. Call Exit when the call has ended,
// usually with defer.
//
// A Guard is a value and must not be copied once it is in use; hand on a pointer to it.
// If a copy exits too, the call ends twice. The methods of the zero Guard, which Entry
// returns with an error, do nothing.
type Guard struct {
	// Four words, which the compiler returns in registers: 10 ns a call.
	resource *resource
	start    clock.Instant
	extras   *guardExtras // nil for the zero Guard
	state    guardState
}

// guardState is one word of a guard.
type guardState struct {
	_    noCopy
	word uint32 // a state, and where the tickets of the call are; atomic
	rest uint32 // the tokens that the call is charged with; bits of a wide ticket, or where it is recorded
}

// noCopy has go vet find copies of guards.
type noCopy struct{}

func (*noCopy) Lock()   {}
func (*noCopy) Unlock() {}

// The states of a guard.
const (
	underWay  = iota
	failed    // under way, and known to have failed
	exited    // whoever says so first ends the call
	ignored   // under way, and known to end neither well nor badly
	stateMask = 3

	// Where the tickets are of rules that learn of the end of the call, or of its cost; 0 if
	// there are no such rules. The guard itself can carry them if at most one is not 0. The
	// word then has the index of its rule and the ticket, or the lower bits of one that is
	// wide. If they are in a record, the word has its generation.
	carried   = 1 << 2
	recorded  = 2 << 2
	wide      = 3 << 2
	whereMask = 3 << 2

	generationShift = 4
	maxGeneration   = 1<<(32-generationShift) - 1

	indexShift  = 4
	indexMask   = inlineSlots - 1
	ticketShift = 7
	ticketBits  = 32 - ticketShift

	// The rest of a guard with a wide ticket, and of one that remembers where it is recorded.
	tokenBits = 8
	tokenMask = 1<<tokenBits - 1
	wideBits  = ticketBits + 32 - tokenBits

	remembers       = 1 << 31 // else the rest is the tokens, or has a wide ticket
	rememberedShift = tokenBits
	maxRemembered   = remembers>>rememberedShift - 1
)

// newGuard returns the guard of a call that has passed.
func newGuard(r *resource, start clock.Instant, extras *guardExtras, word, rest uint32) Guard {
	return Guard{resource: r, start: start, extras: extras, state: guardState{word: word, rest: rest}}
}

// guard returns the guard of a call that has passed, with the tickets of the steps. It
// also asks the shadow rules, and counts the call for rules with related. If one of these
// panics, it keeps nothing of the shadow rules; what else the call has taken is the caller's
// to give back.
func (c *chain) guard(r *resource, q *request, opts []Option, tickets []rule.Ticket) (g Guard) {
	word, rest, ok := uint32(0), uint32(q.Tokens), true
	if c.tickets {
		word, rest, ok = c.carry(tickets, q.Now, q.Tokens)
	}
	if !ok || len(c.shadows) > 0 || q.LongLived() {
		g = c.recordedGuard(r, q, opts, tickets)
	} else {
		g = newGuard(r, q.Now, &c.extras, word, remember(q.recordedAt, word, rest))
	}
	if len(c.counters) > 0 {
		c.count(q, g.extras.record)
	}
	return
}

// count counts a call for rules with related.
func (c *chain) count(q *request, record *guardRecord) {
	counted := false
	defer func() {
		if !counted && record != nil {
			record.leaveShadows(q, len(c.shadows))
		}
	}()
	for _, counter := range c.counters {
		counter.CountPass(q.Now, q.Tokens)
	}
	counted = true
}

// stepGuard is guard for a chain that isOneStep. It is told where the call is recorded.
func (c *chain) stepGuard(
	r *resource, now clock.Instant, tokens int32, opts []Option, ticket rule.Ticket, record uint32,
) Guard {
	word, rest, ok := uint32(0), uint32(tokens), true
	if c.tickets {
		if c.isStart(0, ticket, now) {
			ticket = 0 // it need not be carried
		}
		word, rest, ok = carryOne(0, ticket, tokens)
	}
	if !ok {
		q := request{Call: rule.Call{Now: now, Tokens: tokens}, recordedAt: record}
		return c.recordedGuard(r, &q, opts, []rule.Ticket{ticket})
	}
	return newGuard(r, now, &c.extras, word, remember(record, word, rest))
}

// longLivedGuard is guard for a long-lived call and a chain that is empty.
func (c *chain) longLivedGuard(r *resource, now clock.Instant, tokens int32, record uint32) Guard {
	q := request{Call: rule.Call{Now: now, Tokens: tokens}, recordedAt: record}
	q.SetLongLived()
	return c.recordedGuard(r, &q, nil, nil)
}

// recordedGuard returns the guard with a record of the tickets. It asks the shadow rules,
// each as if it were the only one, and notes the first that would have refused the call.
func (c *chain) recordedGuard(r *resource, q *request, opts []Option, tickets []rule.Ticket) Guard {
	record := r.env.newRecord(&c.passedRules)
	for i, ticket := range tickets {
		*record.slot(i) = ticketSlot{ticket, !c.rules[i].isDemoted(ticket)}
	}
	q.countDemotion()
	if len(c.shadows) > 0 {
		c.askShadows(q, opts, record)
	}
	record.longLived, record.decided, record.recordedAt = q.LongLived(), false, q.recordedAt
	return newGuard(r, q.Now, &record.guardExtras, record.word(), uint32(q.Tokens))
}

// askShadows asks the shadow rules about a call that has passed.
func (c *chain) askShadows(q *request, opts []Option, record *guardRecord) {
	asked := 0
	defer func() {
		if asked < len(c.shadows) { // one has panicked
			record.leaveShadows(q, asked)
		}
	}()
	for ; asked < len(c.shadows); asked++ {
		s := &c.shadows[asked]
		ticket, decision := s.ask(q.Call, q, opts)
		if decision == rule.Stale && ticket != 0 { // another goroutine has brought a later instant
			later := *q
			later.Now = clock.Instant(ticket)
			ticket, decision = s.ask(later.Call, &later, opts)
		}
		*record.slot(len(c.steps) + asked) = ticketSlot{ticket, decision == rule.Pass}
		switch {
		case decision == rule.Pass || decision == rule.Stale:
			continue
		case s.demotesBy(ticket, decision):
			s.refusals.tally.demoted.Add(1)
			continue
		}
		// Where the call would have to wait, nobody knows whether it would have passed:
		// it counts as refused, so that the shadow promises no more than the rule keeps.
		if would := s.refusals.wouldRefuse(s.retryAfter(q, opts)); record.refusal.Load() == nil {
			record.refusal.Store(would)
		}
	}
}

// WouldBlock returns the error with which a shadow rule would have refused the
// call, the first if there are several; nil if none would. It must not run at the
// same time as Exit.
func (g *Guard) WouldBlock() *BlockError {
	switch {
	case g == nil || g.extras == nil:
		return nil
	case g.extras.record != nil:
		return g.extras.record.wouldBlock(g.generation())
	}
	return g.extras.wouldBlock
}

// generation returns the generation that its record had when the call passed.
func (g *Guard) generation() uint32 { return atomic.LoadUint32(&g.state.word) >> generationShift }

// Fail marks the call as failed if err counts as a failure, see [Config.IsFailure]. Any
// other error, such as the caller's own cancellation, says that the end tells nothing of
// what was called: a circuit breaker does not count it. nil marks nothing. It must not
// run at the same time as Exit, and does nothing after it.
func (g *Guard) Fail(err error) {
	if g == nil || g.resource == nil || err == nil {
		return
	}
	if g.resource.env.isFailure(err) {
		g.mark(failed)
	} else {
		g.mark(ignored)
	}
}

// MarkFailed marks the call as failed, for whoever has judged it already, such as an
// adapter by what was answered: [Config.IsFailure] is not asked. It must not run at the
// same time as Exit, and does nothing after it.
func (g *Guard) MarkFailed() {
	if g != nil && g.resource != nil {
		g.mark(failed)
	}
}

// MarkIgnored marks the call as one whose end tells nothing of what was called, as when
// its caller has left: a circuit breaker does not count it. It is for whoever has judged
// the call already, such as an adapter: [Config.IsFailure] is not asked. It takes the
// place of an earlier Fail or MarkFailed. It must not run at the same time as Exit, and
// does nothing after it.
func (g *Guard) MarkIgnored() {
	if g != nil && g.resource != nil {
		g.mark(ignored)
	}
}

// ended marks the call by the error of the guarded function, in place of earlier marks.
func (g *Guard) ended(err error) {
	if g.Fail(err); err == nil {
		g.mark(underWay)
	}
}

// mark sets the state unless the call has exited, or its outcome is decided.
func (g *Guard) mark(state uint32) {
	if present := atomic.LoadUint32(&g.state.word); present&stateMask != exited && !g.isDecided() {
		atomic.CompareAndSwapUint32(&g.state.word, present, present&^stateMask|state)
	}
}

// tokens returns what the call is charged with.
func (g *Guard) tokens() int32 {
	return tokensIn(atomic.LoadUint32(&g.state.word), g.state.rest)
}

// charge sets the tokens. As there is no space for them beside a wide ticket, that goes into a
// record.
func (g *Guard) charge(tokens int32) {
	if atomic.LoadUint32(&g.state.word)&whereMask == wide {
		g.moveToRecord()
	}
	word := atomic.LoadUint32(&g.state.word)
	g.state.rest = remember(g.recordedAt(word), word, uint32(tokens))
}

// moveToRecord puts what the guard carries into a record.
func (g *Guard) moveToRecord() *guardRecord {
	passed, tokens := g.extras.passed, g.tokens()
	if passed == nil {
		passed = &g.resource.env.noRules.others.passedRules
	}
	record := g.resource.env.newRecord(passed)
	for i := range passed.asked {
		*record.slot(i) = ticketSlot{g.ticket(passed, i), true}
	}
	record.outer, record.longLived, record.decided = g.extras.outer, false, false
	record.recordedAt = g.recordedAt(atomic.LoadUint32(&g.state.word))
	g.extras, g.state.rest = &record.guardExtras, uint32(tokens)
	atomic.StoreUint32(&g.state.word, record.word()|atomic.LoadUint32(&g.state.word)&stateMask)
	return record
}

// MarkLongLived says that the call lasts as long as its caller wants, where that was not known
// when it entered, see [LongLived]: a response that turns out to be a stream of events, or a
// connection that is taken over. It must not run at the same time as Exit, and does nothing
// after it.
func (g *Guard) MarkLongLived() {
	if g == nil || g.resource == nil || atomic.LoadUint32(&g.state.word)&stateMask == exited {
		return
	}
	record := g.extras.record
	if record == nil {
		record = g.moveToRecord()
	}
	if record.generation.Load() == g.generation() { // else a copy of the guard has exited
		record.longLived = true
		record.markLongLived()
	}
}

// markLongLived tells the rules that look at calls under way.
func (r *guardRecord) markLongLived() {
	i := 0
	each(r.passed.rules, func(of passedRule) {
		slot := r.slot(i)
		i++
		if watcher, ok := of.limiter.(rule.Watcher); ok && slot.held {
			watcher.MarkLongLived(slot.ticket)
		}
	})
}

// Exit ends the call. Only the first Exit counts, whichever goroutine it comes
// from; further ones do nothing.
func (g *Guard) Exit() {
	if g == nil || g.resource == nil {
		return
	}
	e := g.resource.env
	if e.endsSlowly {
		g.exitBy(e.clock)
		return
	}
	now := e.clock.Now() // before the swap, which then costs 2 ns less
	word := atomic.SwapUint32(&g.state.word, exited)
	switch {
	case word&stateMask == exited:
	case word&whereMask == recorded:
		g.exitRecord(now, word)
	default: // what exitCarried does, whose call is 1 ns
		g.resource.node.Done(g.start, now, word&stateMask == failed)
		g.recordEnd(now, word, false, g.recordedAt(word))
		if word&whereMask != 0 && g.extras.passed.finishes {
			g.exitSteps(now, word)
		}
	}
}

// exitBy is Exit by a clock that is code of the program, or with an observer that learns of it. If the
// clock panics, the call ends nevertheless, as if it had taken no time.
func (g *Guard) exitBy(c clock.Clock) {
	now := g.start
	defer func() {
		switch word := atomic.SwapUint32(&g.state.word, exited); {
		case word&stateMask == exited:
		case word&whereMask == recorded:
			if counted, longLived := g.exitRecord(now, word); counted {
				g.reportEnd(now, word, longLived)
			}
		default:
			g.exitCarried(now, word)
			g.recordEnd(now, word, false, g.recordedAt(word))
			g.reportEnd(now, word, false)
		}
	}()
	now = c.Now()
}

// exitCarried ends a call whose tickets the guard itself carries.
func (g *Guard) exitCarried(now clock.Instant, word uint32) {
	g.resource.node.Done(g.start, now, word&stateMask == failed)
	if word&whereMask != 0 && g.extras.passed.finishes {
		g.exitSteps(now, word)
	}
}

// exitSteps tells the rules how a call ended whose tickets the guard itself carries, in the
// reverse of the order in which they let it pass.
func (g *Guard) exitSteps(now clock.Instant, word uint32) {
	exit := rule.Exit{Now: now, Start: g.start, Failed: word&stateMask == failed, Ignored: word&stateMask == ignored}
	if g.extras.outer != nil {
		g.exitOuter(word, exit)
		return
	}
	g.extras.passed.done(g.extras.passed.asked-1, word, g.state.rest, &exit)
}

// exitOuter is exitSteps for a call to which those within it are linked.
func (g *Guard) exitOuter(word uint32, exit rule.Exit) {
	defer g.extras.passed.done(g.extras.passed.asked-1, word, g.state.rest, &exit) // also if a limiter panics
	exit.Waited = g.extras.outer.end(exit.Now)
}

// ticket returns the ticket of the step with an index, of a guard that carries it.
func (g *Guard) ticket(of *passedRules, index int) rule.Ticket {
	return of.ticketIn(atomic.LoadUint32(&g.state.word), g.state.rest, index, g.start)
}

// isDecided says whether the outcome of the call is known already, whatever is marked now.
func (g *Guard) isDecided() bool {
	record := g.extras.record
	return record != nil && record.decided && record.generation.Load() == g.generation()
}

// decideIgnored is MarkIgnored for good: what the adapter marks later, by what was answered, has
// no effect.
func (g *Guard) decideIgnored() {
	if g.resource == nil || atomic.LoadUint32(&g.state.word)&stateMask == exited {
		return
	}
	g.mark(ignored)
	record := g.extras.record
	if record == nil {
		record = g.moveToRecord()
	}
	if record.generation.Load() == g.generation() { // else a copy of the guard has exited
		record.decided = true
	}
}

// Demoted says whether a rule has given the call the lowest priority, since it was over the rate of
// that rule: whoever does work for the call can do less of it, or hand the priority on. It must not run
// at the same time as Exit.
func (g *Guard) Demoted() bool {
	if g == nil || g.extras == nil || g.extras.record == nil {
		return false // a demoted call has a record
	}
	record := g.extras.record
	if record.generation.Load() != g.generation() {
		return false
	}
	for i := range record.passed.asked {
		if record.passed.rules[i].isDemoted(record.slot(i).ticket) {
			return true
		}
	}
	return false
}

// reportEnd reports a call that has ended to the observer.
func (g *Guard) reportEnd(now clock.Instant, word uint32, longLived bool) {
	if ended := g.resource.env.observer.Ended; ended != nil {
		ended(End{
			Resource: g.resource.Name, At: now, Duration: max(0, now.Sub(g.start)),
			Failed: word&stateMask == failed, Ignored: word&stateMask == ignored, LongLived: longLived,
		})
	}
}
