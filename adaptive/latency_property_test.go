package adaptive_test

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/penstock-go/penstock/adaptive"
	"github.com/penstock-go/penstock/rule"
)

// gateModel makes random calls, and knows which of them are under way and which wait.
type gateModel struct {
	*gateScene
	t        *rapid.T
	underWay []*gateCall
	waiting  []*gateCall // in the order in which they came
}

// Whatever calls do, no more are let in than the limit allows, none is lost, and those of a
// level pass in the order in which they came.
func TestCallsKeepTheLimitAndTheirOrder(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		m := &gateModel{t: t, gateScene: newGateScene(t, adaptive.Rule{
			InitialLimit: rapid.IntRange(1, 8).Draw(t, "initial limit"), MinLimit: 1,
			MaxDelay: time.Duration(rapid.IntRange(1, 200).Draw(t, "maxDelay")) * time.Millisecond,
		})}
		for range rapid.IntRange(1, 400).Draw(t, "steps") {
			m.step()
			m.check()
		}
		m.finish()
	})
}

func (m *gateModel) step() {
	switch m.now = m.now.Add(time.Duration(rapid.IntRange(0, 5000).Draw(m.t, "pass")) * time.Microsecond); rapid.IntRange(0, 9).Draw(m.t, "step") {
	case 0, 1, 2, 3:
		m.arrive()
	case 4, 5, 6:
		m.remove(func(c *gateCall) {
			c.endAs(rapid.Bool().Draw(m.t, "failed"), rapid.Bool().Draw(m.t, "ignored"))
		})
	case 7:
		m.remove(func(c *gateCall) { c.by.GiveBack(m.now, c.ticket, 1) })
	case 8:
		if len(m.waiting) > 0 {
			i := rapid.IntRange(0, len(m.waiting)-1).Draw(m.t, "who gives up")
			m.waiting[i].waiter.Leave(m.now)
			m.waiting = slices.Delete(m.waiting, i, i+1)
		}
	case 9:
		if rapid.IntRange(0, 9).Draw(m.t, "reload") == 0 {
			m.reload(func(r *adaptive.Rule) {
				r.MaxLimit = rapid.IntRange(r.InitialLimit, 20).Draw(m.t, "maxLimit")
				r.MaxDelay = time.Duration(rapid.IntRange(1, 200).Draw(m.t, "maxDelay")) * time.Millisecond
			})
		} else {
			m.now = m.now.Add(time.Duration(rapid.IntRange(0, 400).Draw(m.t, "pause")) * time.Millisecond)
		}
	}
	m.pollAll()
}

// arrive makes a call.
func (m *gateModel) arrive() {
	p := rule.Priority(rapid.IntRange(-2, 2).Draw(m.t, "priority"))
	switch c := m.call(p); c.decision {
	case rule.Pass:
		after := m.gauges()
		require.LessOrEqual(m.t, after.inFlight, after.limit)
		for _, w := range m.waiting {
			require.True(m.t, w.woken, "it has overtaken")
		}
		m.underWay = append(m.underWay, c)
	case rule.Wait:
		m.waiting = append(m.waiting, c)
	}
}

// remove takes a call from those under way.
func (m *gateModel) remove(end func(*gateCall)) {
	if len(m.underWay) == 0 {
		return
	}
	i := rapid.IntRange(0, len(m.underWay)-1).Draw(m.t, "which")
	c := m.underWay[i]
	m.underWay = slices.Delete(m.underWay, i, i+1)
	end(c)
}

// pollAll asks all waiting calls how they stand. Those that pass are, at each level, those
// that came first.
func (m *gateModel) pollAll() {
	m.gauges() // what time alone brings about
	stays := map[rule.Priority]bool{}
	m.waiting = slices.DeleteFunc(m.waiting, func(c *gateCall) bool {
		woken := c.woken
		after := c.poll()
		switch c.decision {
		case rule.Wait:
			require.Positive(m.t, after)
			stays[c.priority] = true
			return false
		case rule.Pass:
			require.True(m.t, woken || c.woken, "a wake-up is lost")
			require.False(m.t, stays[c.priority], "it has overtaken another call of its level")
			m.underWay = append(m.underWay, c)
		}
		return true
	})
}

func (m *gateModel) check() {
	g := m.gauges()
	require.Equal(m.t, len(m.underWay), g.inFlight)
	require.Equal(m.t, len(m.waiting), g.queued)
	if len(m.waiting) > 0 {
		require.GreaterOrEqual(m.t, g.inFlight, g.limit, "a call waits although it could pass")
	}
}

// finish ends all calls.
func (m *gateModel) finish() {
	for len(m.underWay)+len(m.waiting) > 0 {
		for _, c := range m.underWay {
			c.end()
		}
		m.underWay = nil
		m.now = m.now.Add(time.Millisecond)
		m.pollAll()
		m.check()
	}
	require.Equal(m.t, 0, m.gauges().inFlight+m.gauges().queued)
}
