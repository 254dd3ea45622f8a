package simulate_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/simulate"
)

// tokensPassed runs a stream of calls of some tokens, three times what the limit allows,
// and returns how many tokens pass in each second.
func tokensPassed(t T, rule flow.Rule, tokens int, duration time.Duration) []int {
	load := streams(simulate.Stream{Rate: 3 * rule.Limit / float64(tokens), Tokens: tokens})
	passed := run(t, flowRules(rule), load, duration).Passed("r")
	for i := range passed {
		passed[i] *= tokens
	}
	return passed
}

func TestCallsOfSeveralTokensWarmAResourceUp(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		limit  float64
		tokens int
		want   []int // the first seconds
		warm   int   // from then on
	}{
		{1000, 50, []int{300, 300, 350, 350, 400, 400, 450, 500, 550, 600, 750, 950}, 1000},
		{100, 40, []int{40, 40, 40, 40, 40, 40, 40, 40, 40, 40, 40, 80}, 80},
		{100, 100, []int{0, 0, 100, 0, 100, 0, 0, 100, 0, 100}, 100},
	} {
		t.Run(fmt.Sprintf("%v, calls of %d", test.limit, test.tokens), func(t *testing.T) {
			t.Parallel()
			rule := flow.Rule{Limit: test.limit, WarmUp: flow.WarmUp{Period: 10 * time.Second}}
			got := tokensPassed(t, rule, test.tokens, 60*time.Second)
			assert.InDelta(t, sum(test.want), sum(got[:len(test.want)]), float64(test.tokens), "%v", got)
			for second, passed := range got[20:] {
				assert.Equal(t, test.warm, passed, "second %d", 20+second)
			}
			rule.Algorithm, rule.MaxWait = flow.Throttle, time.Second
			got = tokensPassed(t, rule, test.tokens, 60*time.Second)
			assert.InDelta(t, 40*test.limit, sum(got[20:]), float64(test.tokens), "spaced, %v", got)
		})
	}
}

func TestTurnsThatWaitWarmASmallLimitUp(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		limit, coldFactor float64
		maxWait           time.Duration
	}{
		{5, 10, 0},
		{5, 10, time.Second},
		{5, 10, 2 * time.Second},
		{1, 3, 10 * time.Second},
		{50, 100, 10 * time.Second},
	} {
		t.Run(fmt.Sprintf("%v, factor %v, maxWait %v", test.limit, test.coldFactor, test.maxWait), func(t *testing.T) {
			t.Parallel()
			rule := flow.Rule{
				Limit: test.limit, Algorithm: flow.Throttle, MaxWait: test.maxWait,
				WarmUp: flow.WarmUp{Period: time.Second, ColdFactor: test.coldFactor},
			}
			got := tokensPassed(t, rule, 1, 2*time.Minute)
			assert.InDelta(t, 100*test.limit, sum(got[20:]), 1, "%v", got)
		})
	}
}

func TestCallsThatAnotherRuleRefusesDoNotWarm(t *testing.T) {
	t.Parallel()
	set := flowRules(
		flow.Rule{Name: "warming", Limit: 1000, WarmUp: flow.WarmUp{Period: 10 * time.Second}},
		flow.Rule{Name: "attackers", Limit: 10, Origin: "attacker"},
	)
	for _, tokens := range []int{1, 10, 300} {
		got := run(t, set, streams(
			simulate.Stream{Rate: 2000, Tokens: tokens, Origin: "attacker", Until: 20 * time.Second},
			simulate.Stream{Rate: 2000, From: 20 * time.Second},
		), 21*time.Second).Passed("r")
		assert.InDelta(t, 333, got[20], 15, "attacked by calls of %d tokens", tokens)
	}
}
