package core_test

import (
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/rule"
)

// passed checks a call that passed against every rule in force.
func (m *model) passed(call *modelCall, account string, would *core.BlockError) {
	now := m.clock.Now()
	applied := applying(m.rules, call.name, call.origin)
	for _, r := range applied {
		if r.Shadow {
			continue
		}
		l := m.ledger(r, account)
		// Every queue keeps passes apart, but for those of calls that waited while
		// rules changed.
		inTurn := !call.queues || !call.waited || call.joined == m.loads
		if breach := l.breach(r, now, call.tokens, inTurn); breach != "" {
			m.t.Fatalf("%s (%s), %s: %+v", call.name, account, breach, r)
		}
		if r.Related == "" {
			l.add(now, call.tokens, inTurn)
			m.passedByName(r, call)
		}
	}
	for _, r := range m.rules {
		if r.Related == call.name {
			m.ledger(r, "").add(now, call.tokens, false)
		}
	}
	m.shadows(call, account, applied, would)
}

// passedByName checks that a name keeps to a rule whichever accounts it was counted in.
func (m *model) passedByName(r flow.Rule, call *modelCall) {
	if r.Match == "" || r.Shared {
		return
	}
	l := m.ledger(r, "by name: "+call.name)
	if breach := l.breach(r, m.clock.Now(), call.tokens, !call.queues); breach != "" {
		m.t.Fatalf("%s, in all accounts, %s: %+v", call.name, breach, r)
	}
	l.add(m.clock.Now(), call.tokens, !call.queues)
}

// inherit notes that a name which has become a resource begins with what the overflow
// has counted.
func (m *model) inherit(name string) {
	for _, r := range m.rules {
		if r.Match == "" || r.Shared || r.Related != "" || !targets(r, name) {
			continue
		}
		own, overflow := m.ledger(r, name), m.ledger(r, rule.OtherResources)
		own.changed = len(own.passes) + overflow.changed
		own.passes = append(own.passes, overflow.passes...)
		own.vague = max(own.vague, overflow.vague)
	}
}

func (l *ledger) add(now clock.Instant, tokens int, last bool) {
	l.passes = append(l.passes, ledgerPass{now, tokens, last})
}

// shadows checks what the guard says of shadow rules.
func (m *model) shadows(call *modelCall, account string, applied []flow.Rule, would *core.BlockError) {
	now, first, exact := m.clock.Now(), "", true
	for _, r := range applied {
		if !r.Shadow {
			continue
		}
		l := m.ledger(r, account)
		switch refuses := l.full(r, now, call.tokens); {
		case !l.exact(r, now):
			exact = exact && first != ""
			l.vague = now.Add(2 * r.Window)
		case refuses && first == "" && exact:
			first = r.Name
		case !refuses && r.Related == "":
			l.add(now, call.tokens, false)
		}
	}
	if !exact {
		return
	}
	got := ""
	if would != nil {
		got = would.Rule
	}
	require.Equal(m.t, first, got, "the first shadow rule that would have refused %s", call.name)
}

// blocked checks the reason of a refusal.
func (m *model) blocked(call *modelCall, account string, block *core.BlockError) {
	require.Equal(m.t, call.name, block.Resource)
	for _, r := range applying(m.rules, call.name, call.origin) {
		if r.Name != block.Rule {
			continue
		}
		require.False(m.t, r.Shadow, "refused by a shadow")
		if l := m.ledger(r, account); l.exact(r, m.clock.Now()) {
			require.True(m.t, l.full(r, m.clock.Now(), call.tokens+m.promised(call, r)), "%s refused though tokens remain: %+v", call.name, r)
		}
		return
	}
	if call.waited {
		return // it was in the queue of a rule that has become one for other origins
	}
	m.t.Fatalf("%s refused by %q, which does not apply", call.name, block.Rule)
}

// promised returns how many tokens of a rule the calls of the resource will take that
// wait, if a call that would have to wait, too, may not have them.
func (m *model) promised(by *modelCall, r flow.Rule) (tokens int) {
	if r.Shared || r.Related != "" || len(m.queuesOf(by)) == 0 {
		return 0
	}
	for _, call := range m.waiting {
		if call != by && call.name == by.name {
			tokens += call.tokens
		}
	}
	return tokens
}

func (m *model) ledger(r flow.Rule, account string) *ledger {
	key := ledgerKey{r.Name, m.lives[r.Name], account}
	if r.Match == "" || r.Shared || r.Related != "" {
		key.resource = ""
	}
	if m.ledgers[key] == nil {
		m.ledgers[key] = &ledger{vague: m.vague[r.Name]}
	}
	return m.ledgers[key]
}
