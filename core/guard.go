package core

import (
	"context"
	"sync/atomic"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/core/internal/call"
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
	extras   *call.Extras // nil for the zero Guard
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

// newGuard returns the guard of a call that has passed.
func newGuard(r *resource, start clock.Instant, extras *call.Extras, word, rest uint32) Guard {
	return Guard{resource: r, start: start, extras: extras, state: guardState{word: word, rest: rest}}
}

// guard records that a call has passed that did not wait, and returns its guard, with the tickets of the steps.
func (r *resource) guard(ctx context.Context, c *call.Chain, q *call.Request, opts []Option, tickets []rule.Ticket) Guard {
	if r.Env.recorder.Load() != nil {
		q.RecordedAt = r.recordAtOnce(ctx, c, q.Now, q.Tokens, opts, nil)
	}
	return r.guardOf(c, q, opts, tickets)
}

// guardOf is guard for a call that is recorded already. It also asks the shadow rules, and counts the call for rules
// with related. If one of these panics, it keeps nothing of the shadow rules; what else the call has taken is the
// caller's to give back.
func (r *resource) guardOf(c *call.Chain, q *call.Request, opts []Option, tickets []rule.Ticket) (g Guard) {
	word, rest, ok := uint32(0), uint32(q.Tokens), true
	if c.Tickets {
		word, rest, ok = c.Carry(tickets, q.Now, q.Tokens)
	}
	if !ok || c.HasShadows() || q.LongLived() {
		g = r.guardWithRecord(c, q, opts, tickets)
	} else {
		g = newGuard(r, q.Now, &c.Extras, word, call.Remember(q.RecordedAt, word, rest))
	}
	if c.HasCounters() {
		c.Count(q, g.extras.Record)
	}
	return
}

// stepGuard is guard for a call that is not recorded nor long-lived, and a chain that IsOneStep or IsEmpty.
func (r *resource) stepGuard(c *call.Chain, asked rule.Call, ticket rule.Ticket) Guard {
	word, rest, ok := uint32(0), uint32(asked.Tokens), true
	if c.Tickets {
		if c.IsStart(0, ticket, asked.Now) {
			ticket = 0 // it need not be carried
		}
		word, rest, ok = call.CarryOne(0, ticket, asked.Tokens)
	}
	if !ok {
		q := call.Request{Call: asked}
		return r.guardWithRecord(c, &q, nil, []rule.Ticket{ticket})
	}
	return newGuard(r, asked.Now, &c.Extras, word, rest)
}

// guardWithRecord returns a guard whose tickets are in a record. It asks the shadow rules,
// each as if it were the only one, and notes the first that would have refused the call.
func (r *resource) guardWithRecord(c *call.Chain, q *call.Request, opts []Option, tickets []rule.Ticket) Guard {
	record := r.Env.pools.NewRecord(&c.PassedRules)
	for i, ticket := range tickets {
		record.Hold(i, ticket, !c.Rules[i].IsDemoted(ticket))
	}
	q.CountDemotion()
	if c.HasShadows() {
		c.AskShadows(q, opts, record)
	}
	record.LongLived, record.Decided, record.RecordedAt = q.LongLived(), false, q.RecordedAt
	return newGuard(r, q.Now, &record.Extras, record.Word(), uint32(q.Tokens))
}

// WouldBlock returns the error with which a shadow rule would have refused the
// call, the first if there are several; nil if none would. It must not run at the
// same time as Exit.
func (g *Guard) WouldBlock() *BlockError {
	switch {
	case g == nil || g.extras == nil:
		return nil
	case g.extras.Record != nil:
		return (*BlockError)(g.extras.Record.WouldBlock(g.generation()))
	}
	return (*BlockError)(g.extras.WouldBlock)
}

// generation returns the generation that its record had when the call passed.
func (g *Guard) generation() uint32 { return atomic.LoadUint32(&g.state.word) >> call.GenerationShift }

// Fail marks the call as failed if err counts as a failure, see [Config.IsFailure]. Any
// other error, such as the caller's own cancellation, says that the end tells nothing of
// what was called: a circuit breaker does not count it. nil marks nothing. It must not
// run at the same time as Exit, and does nothing after it.
func (g *Guard) Fail(err error) {
	if g == nil || g.resource == nil || err == nil {
		return
	}
	if g.resource.Env.isFailure(err) {
		g.mark(call.Failed)
	} else {
		g.mark(call.Ignored)
	}
}

// MarkFailed marks the call as failed, for whoever has judged it already, such as an
// adapter by what was answered: [Config.IsFailure] is not asked. It must not run at the
// same time as Exit, and does nothing after it.
func (g *Guard) MarkFailed() {
	if g != nil && g.resource != nil {
		g.mark(call.Failed)
	}
}

// MarkIgnored marks the call as one whose end tells nothing of what was called, as when
// its caller has left: a circuit breaker does not count it. It is for whoever has judged
// the call already, such as an adapter: [Config.IsFailure] is not asked. It takes the
// place of an earlier Fail or MarkFailed. It must not run at the same time as Exit, and
// does nothing after it.
func (g *Guard) MarkIgnored() {
	if g != nil && g.resource != nil {
		g.mark(call.Ignored)
	}
}

// ended marks the call by the error of the guarded function, in place of earlier marks.
func (g *Guard) ended(err error) {
	if g.Fail(err); err == nil {
		g.mark(call.UnderWay)
	}
}

// mark sets the state unless the call has exited, or its outcome is decided.
func (g *Guard) mark(state uint32) {
	if present := atomic.LoadUint32(&g.state.word); present&call.StateMask != call.Exited && !g.isDecided() {
		atomic.CompareAndSwapUint32(&g.state.word, present, present&^call.StateMask|state)
	}
}

// tokens returns what the call is charged with.
func (g *Guard) tokens() int32 {
	return call.TokensIn(atomic.LoadUint32(&g.state.word), g.state.rest)
}

// charge sets the tokens. As there is no space for them beside a wide ticket, that goes into a
// record.
func (g *Guard) charge(tokens int32) {
	if atomic.LoadUint32(&g.state.word)&call.WhereMask == call.Wide {
		g.moveToRecord()
	}
	word := atomic.LoadUint32(&g.state.word)
	g.state.rest = call.Remember(g.recordedAt(word), word, uint32(tokens))
}

// moveToRecord puts what the guard carries into a record.
func (g *Guard) moveToRecord() *call.Record {
	passed, tokens := g.extras.Passed, g.tokens()
	if passed == nil {
		passed = &g.resource.Env.noRules.Others.PassedRules
	}
	record := g.resource.Env.pools.NewRecord(passed)
	for i := range passed.Asked() {
		record.Hold(i, g.ticket(passed, i), true)
	}
	record.Outer, record.LongLived, record.Decided = g.extras.Outer, false, false
	record.RecordedAt = g.recordedAt(atomic.LoadUint32(&g.state.word))
	g.extras, g.state.rest = &record.Extras, uint32(tokens)
	atomic.StoreUint32(&g.state.word, record.Word()|atomic.LoadUint32(&g.state.word)&call.StateMask)
	return record
}

// MarkLongLived says that the call lasts as long as its caller wants, where that was not known
// when it entered, see [LongLived]: a response that turns out to be a stream of events, or a
// connection that is taken over. It must not run at the same time as Exit, and does nothing
// after it.
func (g *Guard) MarkLongLived() {
	if g == nil || g.resource == nil || atomic.LoadUint32(&g.state.word)&call.StateMask == call.Exited {
		return
	}
	record := g.extras.Record
	if record == nil {
		record = g.moveToRecord()
	}
	if record.Generation.Load() == g.generation() { // else a copy of the guard has exited
		record.LongLived = true
		record.MarkLongLived()
	}
}

// Exit ends the call. Only the first Exit counts, whichever goroutine it comes
// from; further ones do nothing.
func (g *Guard) Exit() {
	if g == nil || g.resource == nil {
		return
	}
	e := g.resource.Env
	if e.endsSlowly {
		g.exitBy(e.clock)
		return
	}
	now := e.clock.Now() // before the swap, which then costs 2 ns less
	word := atomic.SwapUint32(&g.state.word, call.Exited)
	switch {
	case word&call.StateMask == call.Exited:
	case word&call.WhereMask == call.InRecord:
		g.exitRecord(now, word)
	default: // what exitCarried does, whose call is 1 ns
		g.resource.Node.Done(g.start, now, word&call.StateMask == call.Failed)
		g.recordEnd(now, word, false, g.recordedAt(word))
		if word&call.WhereMask != 0 && g.extras.Passed.Finishes {
			g.exitSteps(now, word)
		}
	}
}

// exitBy is Exit by a clock that is code of the program, or with an observer that learns of it. If the
// clock panics, the call ends nevertheless, as if it had taken no time.
func (g *Guard) exitBy(c clock.Clock) {
	now := g.start
	defer func() {
		switch word := atomic.SwapUint32(&g.state.word, call.Exited); {
		case word&call.StateMask == call.Exited:
		case word&call.WhereMask == call.InRecord:
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
	g.resource.Node.Done(g.start, now, word&call.StateMask == call.Failed)
	if word&call.WhereMask != 0 && g.extras.Passed.Finishes {
		g.exitSteps(now, word)
	}
}

// exitSteps tells the rules how a call ended whose tickets the guard itself carries, in the
// reverse of the order in which they let it pass.
func (g *Guard) exitSteps(now clock.Instant, word uint32) {
	exit := rule.Exit{Now: now, Start: g.start, Failed: word&call.StateMask == call.Failed, Ignored: word&call.StateMask == call.Ignored}
	if g.extras.Outer != nil {
		g.exitOuter(word, exit)
		return
	}
	g.extras.Passed.Done(word, g.state.rest, &exit)
}

// exitOuter is exitSteps for a call to which those within it are linked.
func (g *Guard) exitOuter(word uint32, exit rule.Exit) {
	defer g.extras.Passed.Done(word, g.state.rest, &exit) // also if a limiter panics
	exit.Waited = g.extras.Outer.End(exit.Now)
}

// ticket returns the ticket of the step with an index, of a guard that carries it.
func (g *Guard) ticket(of *call.PassedRules, index int) rule.Ticket {
	return of.TicketIn(atomic.LoadUint32(&g.state.word), g.state.rest, index, g.start)
}

// isDecided says whether the outcome of the call is known already, whatever is marked now.
func (g *Guard) isDecided() bool {
	record := g.extras.Record
	return record != nil && record.Decided && record.Generation.Load() == g.generation()
}

// decideIgnored is MarkIgnored for good: what the adapter marks later, by what was answered, has
// no effect.
func (g *Guard) decideIgnored() {
	if g.resource == nil || atomic.LoadUint32(&g.state.word)&call.StateMask == call.Exited {
		return
	}
	g.mark(call.Ignored)
	record := g.extras.Record
	if record == nil {
		record = g.moveToRecord()
	}
	if record.Generation.Load() == g.generation() { // else a copy of the guard has exited
		record.Decided = true
	}
}

// Demoted says whether a rule has given the call the lowest priority, since it was over the rate of
// that rule: whoever does work for the call can do less of it, or hand the priority on. It must not run
// at the same time as Exit.
func (g *Guard) Demoted() bool {
	if g == nil || g.extras == nil || g.extras.Record == nil {
		return false // a demoted call has a record
	}
	record := g.extras.Record
	if record.Generation.Load() != g.generation() {
		return false
	}
	for i := range record.Passed.Asked() {
		if record.Passed.Rules[i].IsDemoted(record.Ticket(i)) {
			return true
		}
	}
	return false
}

// reportEnd reports a call that has ended to the observer.
func (g *Guard) reportEnd(now clock.Instant, word uint32, longLived bool) {
	if ended := g.resource.Env.observer.Ended; ended != nil {
		ended(End{
			Resource: g.resource.Name, At: now, Duration: max(0, now.Sub(g.start)),
			Failed: word&call.StateMask == call.Failed, Ignored: word&call.StateMask == call.Ignored, LongLived: longLived,
		})
	}
}

// exitRecord ends a call whose tickets are in a record, and returns the record to the pool. It counts no
// call that a copy of the guard has ended.
func (g *Guard) exitRecord(now clock.Instant, word uint32) (counted, longLived bool) {
	record := g.extras.Record
	if !record.Claim(word >> call.GenerationShift) {
		return false, false // a copy of the guard has exited
	}
	exit := rule.Exit{
		Now: now, Start: g.start, LongLived: record.LongLived,
		Failed: word&call.StateMask == call.Failed, Ignored: word&call.StateMask == call.Ignored,
	}
	if exit.LongLived {
		g.resource.Node.DoneLongLived(now, exit.Failed)
	} else {
		g.resource.Node.Done(g.start, now, exit.Failed)
	}
	g.recordEnd(now, word, exit.LongLived, record.RecordedAt)
	record.Exit(exit, int32(g.state.rest))
	g.dropRecord(record)
	return true, exit.LongLived
}

// dropRecord returns the record of a call that has ended to the pool.
func (g *Guard) dropRecord(record *call.Record) {
	g.extras = &record.Passed.Extras
	if would := record.Refusal.Load(); would != nil {
		g.extras = &would.Extras
		record.Refusal.Store(nil)
	}
	g.resource.Env.pools.DropRecord(record)
}
