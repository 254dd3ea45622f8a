package flow_test

import (
	"time"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/rule"
)

// bucketModel is a token bucket in whole numbers: of a token there are as many
// units as a second has nanoseconds, so that limit units flow in in each of them.
// It lives from one event to the next.
type bucketModel struct {
	limit, burst int64 // tokens per second, tokens
	overdraft    bool
	maxWait      time.Duration

	at      clock.Instant
	units   int64
	full    clock.Instant // when a call last found it full
	waiting []*modelCall
	granted []*modelCall
	refused []*modelCall
}

const unitsPerToken = int64(time.Second)

func (m *bucketModel) rule() flow.Rule {
	return flow.Rule{
		Resource: "r", Limit: float64(m.limit), Burst: float64(m.burst), Overdraft: m.overdraft,
		MaxWait: m.maxWait, Algorithm: flow.TokenBucket,
	}
}

func (m *bucketModel) flowTo(now clock.Instant) {
	if now > m.at {
		m.units += int64(now.Sub(m.at)) * m.limit
		m.at = now
	}
	m.units = min(m.units, m.burst*unitsPerToken)
}

// passTime returns when n tokens may go: when what is lacking takes less than a
// nanosecond to flow in.
func (m *bucketModel) passTime(n int64) (clock.Instant, bool) {
	lacking := -m.units
	if !m.overdraft {
		lacking += n * unitsPerToken
	}
	if m.limit == 0 || !m.overdraft && n > m.burst {
		return 0, false
	}
	if lacking < m.limit {
		return m.at, true
	}
	return m.at.Add(time.Duration(lacking / m.limit)), true
}

func (m *bucketModel) take(c *modelCall) {
	if m.units >= m.burst*unitsPerToken {
		m.full = m.at
	}
	m.units -= c.n * unitsPerToken
}

// advance lets every call pass whose time has come by now.
func (m *bucketModel) advance(now clock.Instant) {
	for len(m.waiting) > 0 {
		c := m.waiting[0]
		passAt, ok := m.passTime(c.n)
		switch {
		case !ok || passAt.Sub(c.arrived) > m.maxWait:
			m.refused = append(m.refused, c)
		case passAt > now:
			m.flowTo(now)
			return
		default:
			m.flowTo(passAt)
			m.take(c)
			c.passAt = passAt
			m.granted = append(m.granted, c)
		}
		m.waiting = m.waiting[1:]
	}
	m.flowTo(now)
}

// planned returns when one more call passes: everything before it goes first.
func (m *bucketModel) planned(c *modelCall) (clock.Instant, bool) {
	ahead := *m
	for _, w := range m.waiting {
		passAt, _ := ahead.passTime(w.n)
		ahead.flowTo(passAt)
		ahead.take(w)
	}
	return ahead.passTime(c.n)
}

// arrive decides on a call.
func (m *bucketModel) arrive(c *modelCall, patience time.Duration) rule.Decision {
	m.advance(c.arrived)
	passAt, ok := m.planned(c)
	switch {
	case !ok:
		return rule.Block
	case len(m.waiting) == 0 && passAt == c.arrived:
		m.take(c)
		c.passAt = passAt
		m.granted = append(m.granted, c)
		return rule.Pass
	case passAt.Sub(c.arrived) > min(patience, m.maxWait):
		return rule.Block
	}
	m.waiting = append(m.waiting, c)
	return rule.Wait
}

// giveBack returns the tokens of a call that has gone.
func (m *bucketModel) giveBack(i int) {
	c := m.granted[i]
	m.granted = append(m.granted[:i:i], m.granted[i+1:]...)
	if c.passAt >= m.full {
		m.units += c.n * unitsPerToken
	}
	m.flowTo(m.at)
}
