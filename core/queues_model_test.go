package core_test

import (
	"math"
	"slices"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/flow"
)

func (m *model) queuesOf(call *modelCall) []flow.Rule {
	return slices.DeleteFunc(applying(m.rules, call.name, call.origin), func(r flow.Rule) bool { return rank(r) != 0 })
}

// queueOf returns the rule in whose queue a call is, and whose it is, if that can be
// told from outside: there is one queue, which does not depend on what is forgotten.
func (m *model) queueOf(call *modelCall) (rule flow.Rule, of *ledger) {
	queues := m.queuesOf(call)
	if call.queues || len(queues) != 1 || queues[0].Match != "" && !queues[0].Shared && m.max <= len(modelNames) {
		return flow.Rule{}, nil
	}
	return queues[0], m.ledger(queues[0], call.name)
}

// passTimeOf returns when a call which comes now must pass a throttle that
// nobody waits for: it keeps its distance from the last call that has passed, and
// from none that was refused or has given up.
func (m *model) passTimeOf(call *modelCall) (passAt clock.Instant, known bool) {
	rule, l := m.queueOf(call)
	if l == nil || call.waited || limiterOf(rule) != byThrottle || rule.WarmUp.Period > 0 || rule.Limit == 0 || len(l.passes) == l.changed {
		return 0, false
	}
	last := l.passes[len(l.passes)-1]
	others := slices.ContainsFunc(m.waiting, func(c *modelCall) bool { return c != call })
	gap := time.Duration(math.Ceil(float64(call.tokens) * float64(rule.Window) / rule.Limit))
	return max(m.clock.Now(), last.at.Add(gap)), last.only && !others && !forgotten(rule, last.at, m.clock.Now())
}

// tooLate checks that a call which its queue has refused would have had to wait longer
// than it can.
func (m *model) tooLate(call *modelCall, passAt clock.Instant, block *core.BlockError) {
	rule, _ := m.queueOf(call)
	if block.Rule != rule.Name {
		return
	}
	patience := rule.MaxWait
	if call.patience > 0 {
		patience = min(patience, call.patience)
	}
	require.Greater(m.t, passAt.Sub(m.clock.Now())+2, patience, "%+v is refused by %+v", call, rule)
}

// inOrder checks that a call which passes overtakes nobody who came before it and
// waits in the same queue, unless rules have changed meanwhile.
func (m *model) inOrder(call *modelCall) {
	_, queue := m.queueOf(call)
	for _, before := range m.waiting {
		if before == call {
			return
		}
		_, theirs := m.queueOf(before)
		require.False(m.t, queue != nil && theirs == queue && before.joined == m.loads, "%+v overtakes %+v", call, before)
	}
}
