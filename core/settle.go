package core

import (
	"math"
	"sync/atomic"

	"github.com/penstock-go/penstock/core/internal/call"
)

// Settlement says what [Guard.Settle] left of the rules that count tokens.
type Settlement struct {
	// Known says that at least one rule knows what is left. Shadow rules and throttles never do.
	Known bool

	// Left is how many tokens the rule has left that has the least; below 0 if more were taken
	// than it lets pass.
	Left int64
}

// UsedUp says that nothing is left: a call of one token would not pass now. A stream can be stopped
// then.
func (s Settlement) UsedUp() bool { return s.Known && s.Left <= 0 }

// Overdrawn says that more was taken than a rule lets pass.
func (s Settlement) Overdrawn() bool { return s.Known && s.Left < 0 }

// Settle says what the call has cost so far, in tokens, where that is known only while it lasts or
// at its end: the rules that count tokens go on as if it had taken so many, of which it took
// [Tokens] when it entered. What it cost more counts from now on, over the limit or into debt if
// need be; what it cost less is given back, as of the moment at which it was taken. A throttle
// gives nothing back, as the calls behind have waited already; rules that relate the resource to
// others stay with what was taken.
//
// It can be called as often as the call goes on, such as for each part of a stream; the last one
// counts. The result says what is left of the limits, so that a stream can be stopped when they are
// used up. A number below 0 is 0. It must not run at the same time as Exit, and does nothing after
// it.
func (g *Guard) Settle(n int) Settlement {
	if g == nil || g.resource == nil || atomic.LoadUint32(&g.state.word)&call.StateMask == call.Exited || g.extras.Passed == nil {
		return Settlement{}
	}
	if record := g.extras.Record; record != nil && record.Generation.Load() != g.generation() {
		return Settlement{} // a copy of the guard has exited
	}
	tokens := int32(min(max(n, 0), math.MaxInt32))
	added := tokens - g.tokens()
	now := g.resource.Env.clock.Now()
	if added != 0 {
		g.charge(tokens)
		g.recordSettle(now, tokens)
	}
	word := atomic.LoadUint32(&g.state.word)
	return Settlement(g.extras.Passed.Settle(g.extras.Record, word, g.state.rest, g.start, now, added))
}
