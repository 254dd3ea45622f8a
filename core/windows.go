package core

import (
	"math"
	"runtime"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/flow"
)

// takeWindows takes n tokens of every window at now. If one of them has none to
// give, that rule is returned and nothing is taken.
func (s *steps) takeWindows(now clock.Instant, n int32) (*windowRule, flow.Decision) {
	rule, decision := s.tryWindows(now, n)
	if decision != flow.Refused || !rule.wide {
		return rule, decision
	}
	return s.tryAgain(rule, now, n)
}

func (s *steps) tryWindows(now clock.Instant, n int32) (*windowRule, flow.Decision) {
	switch len(s.windows) {
	case 0:
		return nil, flow.Passed
	case 1:
		rule := &s.windows[0]
		return rule, rule.take(now, n)
	}
	return s.takeInOrder(now, n)
}

// tryAgain tries to take from the windows, of which that rule's was full, until it
// is sure that there was no room but for tokens that somebody else gives back.
func (s *steps) tryAgain(rule *windowRule, now clock.Instant, n int32) (*windowRule, flow.Decision) {
	decision := flow.Refused
	for range patienceWithHolders {
		if decision != flow.Refused || !rule.wide || rule.window.ReallyFull(rule.terms, now, n) {
			break
		}
		runtime.Gosched()
		rule, decision = s.tryWindows(now, n)
	}
	return rule, decision
}

// patienceWithHolders is how often a call that would be refused looks again while
// others hold tokens that they may give back: until those have gone on, unless the
// scheduler keeps one of them from it for very long.
const patienceWithHolders = 1000

// takeInOrder takes from the windows one after the other, after a look at the one
// that was full last: what a call takes and has to give back, others may miss
// meanwhile.
func (s *steps) takeInOrder(now clock.Instant, n int32) (*windowRule, flow.Decision) {
	if last := s.fullLast.Load(); last > 0 {
		rule := &s.windows[last-1]
		if rule.window.Check(rule.terms, now, n) == flow.Refused {
			if first := s.fullWindow(now, n); first != nil {
				rule = first
			}
			return rule, flow.Refused
		}
	}
	for i := range s.windows {
		rule := &s.windows[i]
		if rule.holds {
			rule.window.Begin()
		}
		if decision := rule.take(now, n); decision != flow.Passed {
			s.giveBack(i, now, n)
			s.endHolding(i + 1)
			if decision == flow.Refused {
				s.fullLast.Store(int32(i + 1))
			}
			return rule, decision
		}
	}
	s.endHolding(len(s.windows))
	return nil, flow.Passed
}

// endHolding says to the first count windows that the call keeps nothing that it
// may give back.
func (s *steps) endHolding(count int) {
	if !s.anyHolds {
		return
	}
	for i := range s.windows[:count] {
		if rule := &s.windows[i]; rule.holds {
			rule.window.End()
		}
	}
}

// fullWindow returns the first window that has no room for n tokens at now, and
// nil if all have.
func (s *steps) fullWindow(now clock.Instant, n int32) *windowRule {
	for i := range s.windows {
		if rule := &s.windows[i]; rule.window.Check(rule.terms, now, n) == flow.Refused {
			return rule
		}
	}
	return nil
}

// fullAt returns the first window that has no room for n tokens at now, beside those
// promised to calls that wait, and will have none at a later instant either, whoever
// comes or does not come until then.
func (s *steps) fullAt(now, later clock.Instant, n int32) *windowRule {
	for i := range s.windows {
		rule := &s.windows[i]
		wanted := rule.wanted(n)
		if rule.window.Check(rule.terms, now, wanted) == flow.Refused &&
			rule.window.FullUntil(rule.terms, now, wanted) > later &&
			(wanted == n || !rule.terms.Leaves(now, later)) &&
			(!rule.wide || rule.window.ReallyFull(rule.terms, now, n)) {
			return rule
		}
	}
	return nil
}

// wanted is n tokens and those promised to calls that wait.
func (r *windowRule) wanted(n int32) int32 {
	if r.promised == nil {
		return n
	}
	return int32(min(int64(n)+max(0, r.promised.Load()), math.MaxInt32))
}

// promise notes that a call that waits will take n tokens of the windows, or, if n is
// negative, that it does not wait any longer.
func (s *steps) promise(n int32) {
	for i := range s.windows {
		if promised := s.windows[i].promised; promised != nil {
			promised.Add(int64(n))
		}
	}
}
