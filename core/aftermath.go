package core

import (
	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/flow"
)

// aftermath is what is done about a call once it has passed.
type aftermath struct {
	counted []countedRule // rules on other resources that count its passing
	shadows []planned     // rules that say what they would have done
}

// countedRule is a rule that counts the passes of a resource which is not the
// one it guards.
type countedRule struct {
	terms  *flow.Terms
	window *flow.Window
}

// settle tells every rule concerned of a call of n tokens that passed at now,
// and returns what its guard is to say: the error with which the first of the
// shadow rules would have refused it, nil if none would. Each shadow rule is
// asked as if it were the only one.
func (a *aftermath) settle(now clock.Instant, n int32) *besides {
	if a == nil {
		return nil
	}
	return a.settleAll(now, n)
}

func (a *aftermath) settleAll(now clock.Instant, n int32) *besides {
	for i := range a.counted {
		a.counted[i].window.Count(a.counted[i].terms, now, n)
	}
	var first *besides
	for i := range a.shadows {
		shadow := &a.shadows[i]
		if refused := shadow.hold.judge(shadow.terms, now, n); refused != nil && first == nil {
			first = &refused.besides
		}
	}
	return first
}

// judge takes n tokens as a shadow rule would and returns the refusal that it
// would have been. A rule that has changed in this very moment does not judge.
func (h *hold) judge(t *flow.Terms, now clock.Instant, n int32) *refusal {
	if h.queue != nil {
		if h.queue.Reserve(t, now, n) != flow.Refused {
			return nil
		}
		return h.refusals.wouldRefuse(h.queue.RetryAfter(now, n, endless))
	}
	decision := h.takeShadow(t, now, n)
	if decision == flow.Outdated { // another goroutine has brought a later instant
		decision = h.takeShadow(t, max(now, h.window.Opened()), n)
	}
	if decision != flow.Refused {
		return nil
	}
	return h.refusals.wouldRefuse(h.window.RetryAfter(now, n))
}

func (h *hold) takeShadow(t *flow.Terms, now clock.Instant, n int32) flow.Decision {
	rule := windowRule{terms: t, window: h.window, related: h.rule.related != ""}
	return rule.take(now, n)
}
