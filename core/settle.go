package core

import (
	"math"
	"sync/atomic"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/rule"
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

// add takes what a rule has left into account.
func (s *Settlement) add(left int64) {
	if !s.Known || left < s.Left {
		s.Known, s.Left = true, left
	}
}

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
	if g == nil || g.resource == nil || atomic.LoadUint32(&g.state.word)&stateMask == exited || g.extras.passed == nil {
		return Settlement{}
	}
	if record := g.extras.record; record != nil && record.generation.Load() != g.generation() {
		return Settlement{} // a copy of the guard has exited
	}
	tokens := int32(min(max(n, 0), math.MaxInt32))
	added := tokens - g.tokens()
	now := g.resource.env.clock.Now()
	if added != 0 {
		g.charge(tokens)
		g.recordSettle(now, tokens)
	}
	return g.extras.passed.settle(g, now, added)
}

// settle adds tokens to those that a call took of every rule that counts them, and returns what
// is left. If one panics, those behind it get theirs nevertheless.
func (p *passedRules) settle(g *Guard, now clock.Instant, tokens int32) (s Settlement) {
	if record := g.extras.record; record != nil {
		record.settle(&s, 0, now, g.start, tokens)
	} else {
		p.settleFrom(&s, 0, g, now, tokens)
	}
	return s
}

func (p *passedRules) settleFrom(s *Settlement, i int, g *Guard, now clock.Instant, tokens int32) {
	defer func() {
		if i < p.asked { // one has panicked
			p.settleFrom(s, i+1, g, now, tokens)
		}
	}()
	for ; i < p.asked; i++ {
		if of := &p.rules[i]; of.settler != nil {
			of.settle(s, now, g.start, g.ticket(p, i), tokens)
		}
	}
}

// settle is the function of that name of the rules, from one on.
func (r *guardRecord) settle(s *Settlement, i int, now, start clock.Instant, tokens int32) {
	defer func() {
		if i < len(r.passed.rules) { // one has panicked
			r.settle(s, i+1, now, start, tokens)
		}
	}()
	for ; i < len(r.passed.rules); i++ {
		of, slot := &r.passed.rules[i], r.slot(i)
		switch {
		case of.settler == nil || !slot.held:
		case i < r.passed.asked:
			of.settle(s, now, start, slot.ticket, tokens)
		case tokens != 0: // of a shadow rule nothing is used up
			of.settler.Settle(now, start, slot.ticket, tokens)
		}
	}
}

// settle adds tokens to what a call took of one rule, and notes what is left.
func (of *passedRule) settle(s *Settlement, now, start clock.Instant, t rule.Ticket, tokens int32) {
	if tokens != 0 {
		of.settler.Settle(now, start, t, tokens)
	}
	if balancer, ok := of.limiter.(rule.Balancer); ok && !of.demotes {
		if left, known := balancer.Balance(now, start, t); known {
			s.add(left)
		}
	}
}
