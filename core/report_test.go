package core_test

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/rules"
)

func TestRefusalsAreLoggedOnceASecondAndObservedEachTime(t *testing.T) {
	var log bytes.Buffer
	var refused []*core.BlockError
	c := clock.NewVirtual(begin)
	e := core.New(core.Config{
		Clock:    c,
		Logger:   slog.New(slog.NewTextHandler(&log, nil)),
		Observer: core.Observer{Refused: func(_ context.Context, err *core.BlockError) { refused = append(refused, err) }},
	})
	defer e.Close()
	load(t, e, flow.Rule{Resource: "r", Limit: 0}, flow.Rule{Resource: "s", Limit: 0})
	for range 30 {
		enter(e, "r", 10)
		enter(e, "s", 1)
		c.Advance(100 * time.Millisecond)
	}
	assert.Equal(t, 3, strings.Count(log.String(), "resource=r"), log.String())
	assert.Equal(t, 3, strings.Count(log.String(), "resource=s"))
	assert.Len(t, refused, 330)
	assert.Equal(t, 1, strings.Count(log.String(), "rules swapped"))
	assert.Less(t, log.Len(), 2000, "a reload does not log its rules")
}

func TestASwapTellsWhatChanged(t *testing.T) {
	var swaps []core.Swap
	e := core.New(core.Config{
		Clock: clock.NewVirtual(begin), Logger: quiet,
		Observer: core.Observer{Swapped: func(s core.Swap) { swaps = append(swaps, s) }},
	})
	defer e.Close()
	load(t, e, flow.Rule{Resource: "stays", Limit: 1}, flow.Rule{Resource: "changes", Limit: 1}, flow.Rule{Resource: "goes", Limit: 1})
	load(t, e, flow.Rule{Resource: "stays", Limit: 1}, flow.Rule{Resource: "changes", Limit: 2}, flow.Rule{Resource: "comes", Limit: 1})
	require.Len(t, swaps, 2)
	assert.Equal(t, core.Swap{Revision: 1, At: swaps[0].At, Rules: 3, Added: 3}, swaps[0])
	assert.Equal(t, core.Swap{Revision: 2, At: swaps[1].At, Rules: 3, Added: 1, Changed: 1, Removed: 1}, swaps[1])
	assert.Equal(t, begin, swaps[1].At.Time())
}

func TestASnapshotHasWhatIsKnown(t *testing.T) {
	e, c := newEngine(t,
		flow.Rule{Name: "window", Resource: "b", Limit: 3},
		flow.Rule{Name: "queue", Resource: "b", Limit: 10, Algorithm: flow.Throttle, MaxWait: time.Second})
	enter(e, "a", 2)
	for range 5 {
		enter(e, "b", 1)
		c.Advance(100 * time.Millisecond)
	}
	s := e.Snapshot()
	require.Len(t, s.Resources, 2)
	assert.Equal(t, "a", s.Resources[0].Name)
	assert.EqualValues(t, 2, s.Resources[0].Passed)
	assert.Empty(t, s.Resources[0].Rules)

	b := s.Resources[1]
	assert.EqualValues(t, 3, b.Passed)
	assert.EqualValues(t, 2, b.Blocked)
	require.Len(t, b.Rules, 2)
	quotas := e.Quotas("b")
	for i := range quotas { // NaN is not equal to itself
		assert.Len(t, quotas[i].Gauges, len(b.Rules[i].Gauges))
		quotas[i].Gauges = b.Rules[i].Gauges
	}
	assert.Equal(t, b.Rules, quotas)
	blocked := map[string]uint64{}
	for _, of := range b.Rules {
		assert.Equal(t, rules.KindFlow, of.Kind)
		blocked[of.Name] = of.Blocked
	}
	assert.Equal(t, map[string]uint64{"queue": 0, "window": 2}, blocked)
	for _, state := range b.Rules {
		switch state.Name {
		case "window":
			assert.InDelta(t, 3, state.Quota.Effective, 1e-9)
			assert.Zero(t, state.Quota.Remaining)
			assert.Equal(t, 500*time.Millisecond, state.Quota.Reset)
		case "queue":
			assert.InDelta(t, 10, state.Quota.Effective, 1e-9)
			assert.EqualValues(t, 11, state.Quota.Remaining, "one now and ten by waiting")
		}
	}
	assert.Equal(t, 2, s.Status.Rules)
	assert.Empty(t, e.Quotas("unknown"))
}
