package simulate_test

import (
	"math"

	"github.com/penstock-go/penstock/flow"
)

// sentinelBucket is the bucket of Sentinel's warm-up in steps of a second, with two
// differences: refused tokens count as load, and a second in which a call waits is
// not idle.
type sentinelBucket struct {
	limit, factor           float64 // per second
	warning, maximum, slope float64
	stored                  float64
	second                  int64
	passed                  float64 // in that second
	refused                 float64 // in it
	busyUntil               int64   // the first second that may be idle
}

func newSentinelBucket(rule flow.Rule) sentinelBucket {
	m := sentinelBucket{limit: rule.Limit / rule.Window.Seconds(), factor: rule.WarmUp.ColdFactor}
	volume := rule.WarmUp.Period.Seconds() * m.limit
	m.warning = volume / (m.factor - 1)
	m.maximum = m.warning + 2*volume/(1+m.factor)
	m.slope = (m.factor - 1) / m.limit / (m.maximum - m.warning)
	m.stored = m.maximum
	return m
}

// ceiling returns the tokens per second that may pass in the second of now.
func (m *sentinelBucket) ceiling(now int64) float64 {
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
func (m *sentinelBucket) busy(until int64) { m.busyUntil = max(m.busyUntil, until/1e9) }

// warmWindow is a sliding window of a second with that ceiling.
type warmWindow struct {
	sentinelBucket sentinelBucket
	window         slidingWindow
}

func (w *warmWindow) fits(now, tokens int64) bool {
	w.window.limit = int64(w.sentinelBucket.ceiling(now))
	if w.window.fits(now, tokens) {
		return true
	}
	w.sentinelBucket.busy(now + 1e9)
	return false
}

func (w *warmWindow) count(now, tokens int64) {
	w.window.count(now, tokens)
	w.sentinelBucket.passed += float64(tokens)
}

// warmThrottle spaces slots by the ceiling of the second in which a call becomes
// the next.
type warmThrottle struct {
	sentinelBucket
	maxWait int64
	last    int64
	planned float64 // the ceiling to plan with; 0 for the present one
}

func (p *warmThrottle) slot(since, tokens int64) (int64, bool) {
	ceiling := p.planned
	if ceiling == 0 {
		m := p.sentinelBucket // a copy, to look ahead with
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

// plan returns a copy to find the slots of waiting calls with. It keeps the present
// ceiling: that of a later second is not known yet.
func (p *warmThrottle) plan() schedule {
	c := *p
	c.planned = c.ceiling(c.last)
	return &c
}

func (p *warmThrottle) grant(slot, tokens int64) {
	if p.planned == 0 {
		p.ceiling(slot)
		p.passed += float64(tokens)
	}
	p.last = slot
}
func (p *warmThrottle) clone() schedule { c := *p; return &c }
