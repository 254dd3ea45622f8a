package core_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/rule"
	"github.com/penstock-go/penstock/rules"
	"github.com/penstock-go/penstock/stat"
)

// accumulating is an engine whose snapshots are accumulated.
type accumulating struct {
	*core.Engine
	t           assert.TestingT
	clock       *clock.Virtual
	accumulator *core.Accumulator
}

func newAccumulating(t testing.TB, most, maxResources int, set rules.Set) *accumulating {
	virtual := clock.NewVirtual(time.Unix(1000, 0))
	s := &accumulating{
		Engine: core.New(core.Config{Clock: virtual, Logger: quiet, MaxResources: maxResources}), t: t, clock: virtual,
		accumulator: &core.Accumulator{MaxResources: most},
	}
	t.Cleanup(s.Close)
	require.NoError(t, s.Load(set))
	return s
}

// calls makes calls that take as long as given.
func (s *accumulating) calls(resource string, n int, took time.Duration) {
	for range n {
		if guard, err := s.Entry(context.Background(), resource); err == nil {
			s.clock.Advance(took)
			guard.Exit()
		}
	}
}

// totals returns the totals by name.
func (s *accumulating) totals() map[string]*core.ResourceTotals {
	snapshot := s.Snapshot()
	totals := make(map[string]*core.ResourceTotals)
	list := s.accumulator.Add(&snapshot)
	assert.True(s.t, slices.IsSortedFunc(list, func(a, b *core.ResourceTotals) int {
		return slices.Compare([]byte(a.Name), []byte(b.Name))
	}))
	for _, of := range list {
		totals[of.Name] = of
	}
	return totals
}

func passed(totals map[string]*core.ResourceTotals) map[string]uint64 {
	counts := make(map[string]uint64)
	for name, of := range totals {
		counts[name] = of.Passed
	}
	return counts
}

func TestAccumulatorSumsUpResourcesBeyondTheBound(t *testing.T) {
	t.Parallel()
	s := newAccumulating(t, 2, 100, rules.Set{Flow: []flow.Rule{
		{Name: "named", Resource: "z", Limit: 1},
		{Name: "also", Resource: "y", Limit: 1},
		{Name: "third", Resource: "x"},
		{Name: "each", Match: "x*", Limit: 1, Shadow: true},
	}})
	for _, name := range []string{"a", "b", "x", "y", "z"} {
		s.calls(name, 3, 0)
	}
	s.calls("x1", 2, 0)
	totals := s.totals()
	assert.Equal(t, map[string]uint64{"x": 0, "y": 1, rule.OtherResources: 9}, passed(totals), "those that rules name come first")
	assert.EqualValues(t, 3, totals["x"].Blocked)
	assert.EqualValues(t, 3, totals["x"].Refusals[rule.Key{Kind: "flow", Name: "third"}].Blocked)
	other := totals[rule.OtherResources]
	assert.EqualValues(t, 2, other.Blocked)
	assert.Equal(t, []rule.Key{{Kind: "flow", Name: rule.OtherResources}, {Kind: "flow", Name: "each"}},
		slices.SortedFunc(maps.Keys(other.Refusals), func(a, b rule.Key) int { return len(b.Name) - len(a.Name) }))
	assert.EqualValues(t, 2, other.Refusals[rule.Key{Kind: "flow", Name: rule.OtherResources}].Blocked, "rules that name one resource")
	each := other.Refusals[rule.Key{Kind: "flow", Name: "each"}]
	assert.EqualValues(t, 1, each.WouldBlock)
	assert.True(t, each.Shadow)
	assert.Equal(t, rule.RateLimited, each.Reason)
	assert.Equal(t, 2, totals["x"].Index, "of a, b, x, x1, y and z")
	assert.Equal(t, 1, totals["x"].Resources)
	assert.Equal(t, -1, other.Index, "the engine has no resource of that name")
	assert.Equal(t, 4, other.Resources)

	require.NoError(t, s.Load(rules.Set{Flow: []flow.Rule{{Name: "only", Resource: "z", Limit: 1000}}}))
	s.calls("z", 1, 0)
	s.calls("x", 1, 0)
	totals = s.totals()
	assert.Equal(t, map[string]uint64{"x": 1, "z": 1, rule.OtherResources: 9}, passed(totals), "y has given way")
	assert.Empty(t, totals["x"].Refusals, "the rule is gone")
}

func TestAccumulatorCountsWhatWasForgottenUnread(t *testing.T) {
	t.Parallel()
	s := newAccumulating(t, 10, 100, rules.Set{})
	s.calls("a", 1, time.Millisecond)
	assert.Equal(t, map[string]uint64{"a": 1}, passed(s.totals()))
	s.calls("a", 2, 10*time.Millisecond)
	s.calls("b", 4, 30*time.Millisecond)
	s.clock.Advance(2 * time.Minute)
	s.calls("c", 1, 0)           // forgets both
	s.calls("a", 5, time.Second) // another one of that name
	totals := s.totals()
	assert.Equal(t, map[string]uint64{"a": 6, "c": 1, rule.OtherResources: 6}, passed(totals))
	assert.EqualValues(t, 6, totals["a"].ResponseTimes.Count)
	assert.EqualValues(t, 6, totals[rule.OtherResources].ResponseTimes.Count)
	assert.Equal(t, 140*time.Millisecond, totals[rule.OtherResources].ResponseTime)
	assert.InDelta(t, 23e6, float64(totals[rule.OtherResources].ResponseTimes.Quantile(0.5)), 1e6)
	assert.Equal(t, map[string]uint64{"a": 6, "c": 1, rule.OtherResources: 6}, passed(s.totals()))
}

// For any calls, reloads and times at which snapshots are taken: no counter goes down, there are
// never more than the bound, and of each kind they sum up to what happened.
func TestProperty_AccumulatorCountsEveryCallOnce(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(r *rapid.T) {
		const most = 3
		s := newAccumulating(t, most, 6, rules.Set{})
		s.t = r
		var want [2]uint64                      // passed, blocked
		dropped := make(map[string]stat.Totals) // of names that had totals and lost them
		last := make(map[string]stat.Totals)
		check := func() {
			now := s.totals()
			assert.LessOrEqual(r, len(now), most+1)
			var sum [2]uint64
			for name, before := range last {
				if of := now[name]; of == nil {
					d := dropped[name]
					d.Passed += before.Passed
					d.Blocked += before.Blocked
					dropped[name] = d
				} else {
					assert.GreaterOrEqual(r, of.Passed, before.Passed)
					assert.GreaterOrEqual(r, of.Blocked, before.Blocked)
				}
			}
			clear(last)
			for name, of := range now {
				assert.Equal(r, of.Completed, of.ResponseTimes.Count)
				last[name] = of.Totals
				sum[0] += of.Passed
				sum[1] += of.Blocked
			}
			for _, of := range dropped {
				sum[0] += of.Passed
				sum[1] += of.Blocked
			}
			assert.Equal(r, want, sum)
		}
		for range rapid.IntRange(1, 40).Draw(r, "steps") {
			switch rapid.IntRange(0, 5).Draw(r, "step") {
			case 0:
				s.clock.Advance(time.Minute + time.Second)
			case 1:
				check()
			case 2:
				require.NoError(r, s.Load(rules.Set{Flow: []flow.Rule{
					{Resource: fmt.Sprint("r", rapid.IntRange(0, 9).Draw(r, "named")), Limit: 1}, {Match: "r*", Limit: 2, Name: "each"},
				}}))
			default:
				name := fmt.Sprint("r", rapid.IntRange(0, 9).Draw(r, "resource"))
				for range rapid.IntRange(1, 5).Draw(r, "calls") {
					guard, err := s.Entry(t.Context(), name)
					if err != nil {
						want[1]++
						continue
					}
					want[0]++
					s.clock.Advance(time.Millisecond)
					guard.Exit()
				}
			}
		}
		check()
	})
}
