package simulate_test

import (
	"math"

	"github.com/penstock-go/penstock/flow"
)

// mother is the bucket of Sentinel's warm-up, in steps of a second, but that what is
// refused counts as load, and that nobody waits in an idle second.
type mother struct {
	limit, factor           float64 // per second
	warning, maximum, slope float64
	stored                  float64
	second                  int64
	passed                  float64 // in that second
	refused                 float64 // in it
	busyUntil               int64   // the first second in which nobody is known to wait, or was refused by a window
}

func newMother(rule flow.Rule) mother {
	m := mother{limit: rule.Limit / rule.Window.Seconds(), factor: rule.WarmUp.ColdFactor}
	volume := rule.WarmUp.Period.Seconds() * m.limit
	m.warning = volume / (m.factor - 1)
	m.maximum = m.warning + 2*volume/(1+m.factor)
	m.slope = (m.factor - 1) / m.limit / (m.maximum - m.warning)
	m.stored = m.maximum
	return m
}

// ceiling returns the tokens per second that may pass in the second of now.
func (m *mother) ceiling(now int64) float64 {
	if second := now / 1e9; second > m.second {
		previous, load := m.passed, m.passed+m.refused
		if second-m.second > 1 {
			previous, load = 0, 0
		}
		idle, wasWarm := max(0, second-max(m.second, m.busyUntil)), m.stored <= m.warning
		switch {
		case wasWarm:
			m.stored += float64(second-m.second) * m.limit
		case load < math.Floor(m.limit/m.factor):
			m.stored += float64(idle) * m.limit
		}
		m.stored = max(0, min(m.stored, m.maximum)-previous)
		if wasWarm && idle == 0 {
			m.stored = min(m.stored, m.warning)
		}
		m.second, m.passed, m.refused = second, 0, 0
	}
	if m.stored < m.warning {
		return m.limit
	}
	return 1 / ((m.stored-m.warning)*m.slope + 1/m.limit)
}

// busy notes that no second before the one of an instant is idle.
func (m *mother) busy(until int64) { m.busyUntil = max(m.busyUntil, until/1e9) }

// warmWindow is a sliding window of a second with that ceiling.
type warmWindow struct {
	mother mother
	window slidingWindow
}

func (w *warmWindow) hasRoom(now, tokens int64) bool {
	w.window.limit = int64(w.mother.ceiling(now))
	if w.window.hasRoom(now, tokens) {
		return true
	}
	w.mother.busy(now + 1e9)
	return false
}

func (w *warmWindow) count(now, tokens int64) {
	w.window.count(now, tokens)
	w.mother.passed += float64(tokens)
}

// warmThrottle spaces turns by the ceiling of the second in which a call becomes
// the next.
type warmThrottle struct {
	mother
	maxWait int64
	last    int64
	planned float64 // the ceiling to plan with, if that is settled
}

func (p *warmThrottle) turn(since, tokens int64) (int64, bool) {
	ceiling := p.planned
	if ceiling == 0 {
		m := p.mother // a copy, to look ahead with
		ceiling = m.ceiling(max(since, p.last, 0))
	}
	at := p.last + int64(math.Ceil(float64(tokens)/ceiling*1e9))
	if at <= since {
		return since, true
	}
	if at-since <= p.maxWait {
		p.busy(at)
	}
	return at, true
}

// plan returns a copy to find the turns of a line with: what the ceiling will be
// when it has moved up is nobody's to know.
func (p *warmThrottle) plan() pacer {
	c := *p
	c.planned = c.ceiling(c.last)
	return &c
}

func (p *warmThrottle) grant(turn, tokens int64) {
	if p.planned == 0 {
		p.ceiling(turn)
		p.passed += float64(tokens)
	}
	p.last = turn
}
func (p *warmThrottle) clone() pacer { c := *p; return &c }
