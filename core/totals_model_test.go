package core_test

import (
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/rule"
	"github.com/penstock-go/penstock/stat"
)

// account compares the statistics with what happened and returns the resource on
// which a call was decided since it was called last.
func (m *model) account() (decided string) {
	sum, all := m.forgotten, map[string]stat.Totals{}
	ruled := map[string]bool{}
	for _, r := range m.rules {
		ruled[r.Resource], ruled[r.Related] = true, true
	}
	free := 0
	for _, r := range m.engine.Snapshot().Resources {
		require.GreaterOrEqual(m.t, r.InFlight, int64(0), r.Name)
		require.GreaterOrEqual(m.t, r.Waiting, int64(0), r.Name)
		all[r.Name] = r.Totals
		addTotals(&sum, r.Totals)
		if before := m.seen[r.Name]; r.Passed+r.Blocked > before.Passed+before.Blocked {
			require.Empty(m.t, decided, "one call at a time")
			decided = r.Name
		}
		if !ruled[r.Name] && r.Name != rule.OtherResources {
			free++
		}
	}
	for name, before := range m.seen {
		if _, there := all[name]; !there {
			require.Zero(m.t, before.InFlight+before.Waiting, "%s is forgotten", name)
			addTotals(&m.forgotten, before)
			addTotals(&sum, before)
		}
	}
	for name := range all {
		if _, known := m.seen[name]; !known && name != rule.OtherResources {
			m.inherit(name)
		}
	}
	m.seen = all
	_, overflowed := all[rule.OtherResources]
	want := [...]any{m.want.Passed, m.want.Blocked, m.want.Completed, m.want.Failed, m.want.InFlight}
	require.Equal(m.t, want, [...]any{sum.Passed, sum.Blocked, sum.Completed, sum.Failed, sum.InFlight})
	if overflowed || m.max > len(modelNames) { // else those who wait there are not shown
		require.Equal(m.t, m.want.Waiting, sum.Waiting)
	}
	return decided
}

func addTotals(to *stat.Totals, t stat.Totals) {
	to.Passed += t.Passed
	to.Blocked += t.Blocked
	to.Completed += t.Completed
	to.Failed += t.Failed
	to.InFlight += t.InFlight
	to.Waiting += t.Waiting
}
