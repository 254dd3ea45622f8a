package core

import (
	"context"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/rules"
)

// stepEngine returns an engine whose rules are swapped step by step, and a function
// that says by which of its rules the first call of a name is refused.
func stepEngine(t *testing.T, limit int, set ...flow.Rule) (e *Engine, refusedBy func(name string) string) {
	t.Helper()
	e = New(Config{Clock: clock.NewVirtual(time.Unix(1_800_000_000, 0)), Logger: slog.New(slog.DiscardHandler), MaxResources: limit})
	t.Cleanup(e.Close)
	require.NoError(t, e.Load(rules.Set{Flow: set}))
	return e, func(name string) string {
		guard, err := e.Entry(context.Background(), name)
		guard.Exit()
		if err == nil {
			return ""
		}
		var block *BlockError
		require.ErrorAs(t, err, &block)
		return block.Rule
	}
}

// stagedLoad prepares to put a set in force and returns the steps of that.
func stagedLoad(t *testing.T, e *Engine, set ...flow.Rule) (s *swap, steps []swapStep) {
	t.Helper()
	outcome, err := e.rules.book.Load("", rules.Set{Flow: set})
	require.NoError(t, err)
	s = &swap{ruleChange: e.resolve(outcome.Changes, e.clock.Now()), registry: &e.resources, maker: &e.limiters, matching: e.rules.patterns}
	return s, []swapStep{
		{"begun", s.begin},
		{"rules changed", s.changeRules},
		{"resources found", s.findAffected},
		{"plans made", s.makePlans},
	}
}

type swapStep struct {
	name string
	do   func()
}

// New names come between any two steps of a swap: none has to wait, each is held
// against the set before until the swap is finished, and against the new one from
// then on, whether its own rules come from patterns, from rules that name it, or both.
func TestANewNameBetweenTheStepsOfASwapHasAWholeSet(t *testing.T) {
	before := []flow.Rule{
		{Name: "old", Match: "n*", Limit: 0}, {Name: "both", Match: "*", Limit: 1e6}, {Name: "other", Match: "m*", Limit: 1e6},
	}
	after := []flow.Rule{
		{Name: "both", Match: "*", Limit: 1e6, Buckets: 2},
		{Name: "other", Match: "m*", Limit: 0},
		{Name: "new", Match: "~^n", Limit: 0},
		{Name: "exact", Resource: "x3", Limit: 0},
	}
	for _, limit := range []int{10, 100} { // with names beyond the bound, and without
		e, refusedBy := stepEngine(t, limit, before...)
		for i := range 7 {
			refusedBy(fmt.Sprint("known", i))
		}
		s, steps := stagedLoad(t, e, after...)
		var names []string
		check := func(step string, n, m, x string) {
			for _, name := range names {
				want := map[byte]string{'n': n, 'm': m, 'x': x}[name[0]]
				if name[0] == 'x' && name != "x3" {
					want = ""
				}
				require.Equal(t, want, refusedBy(name), "%s %s, %d names", name, step, limit)
			}
		}
		for i, step := range steps {
			step.do()
			names = append(names, fmt.Sprint("n", i), fmt.Sprint("m", i), fmt.Sprint("x", i))
			check(step.name, "old", "", "")
		}
		patterns := s.nextPatterns()
		for i := 0; !s.finish(patterns); i++ {
			require.Less(t, i, 2)
			check("not finished", "old", "", "")
			s.makePlans()
		}
		check("finished", "new", "other", "exact")
		names = append(names, "n9", "m9", "x9")
		check("after it", "new", "other", "exact")
	}
}

// What a swap does while a new name would have to wait is the same however many
// names and patterns there are: nothing is looked at under the lock.
func TestNoStepOfASwapHoldsTheLockThatNewNamesTake(t *testing.T) {
	var set []flow.Rule
	for i := range 40 {
		set = append(set, flow.Rule{Name: fmt.Sprint("r", i), Match: fmt.Sprintf("*:%d*", i), Limit: 5})
	}
	e, refusedBy := stepEngine(t, 1000, set[:20]...)
	for i := range 500 {
		refusedBy(fmt.Sprint("n:", i))
	}
	s, steps := stagedLoad(t, e, set[20:]...)
	steps[0].do()
	e.resources.FinishSwap(e.resources.Patterns(), func() { // holds the lock: a step that took it would never end
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			for _, step := range steps[1:] {
				step.do()
			}
			s.nextPatterns()
		}()
		<-ended
	})
	assert.True(t, s.finish(s.nextPatterns()))
	assert.Greater(t, len(s.affected), 100)
}
