package adaptertest

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/rule"
	"github.com/penstock-go/penstock/rules"
)

// countedCalls is calls of a resource that end as the test says.
type countedCalls struct {
	fails  atomic.Bool  // the next call
	served atomic.Int64 // calls that were let in
}

// serve is what happens in a call: it says whether it fails.
func (c *countedCalls) serve() (fails bool) {
	c.served.Add(1)
	return c.fails.Load()
}

// callsAreCountedByTheirEnd checks that a rule which counts failures counts no other calls, and that one which
// counts successes counts no failures. open connects calls, and returns their resource.
func callsAreCountedByTheirEnd(
	t *testing.T, timeout time.Duration, open func(*testing.T, *core.Engine, *countedCalls) (call func(), resource string),
) {
	for counts, failures := range map[rule.Counts]bool{rule.CountsFailures: true, rule.CountsSuccesses: false} {
		t.Run(string(counts), func(t *testing.T) {
			engine, _ := NewEngine(t, rules.Set{Flow: []flow.Rule{{Match: "*", Limit: 2, Window: time.Hour, Counts: counts}}})
			calls := new(countedCalls)
			call, resource := open(t, engine, calls)
			for i, fails := range []bool{!failures, !failures, failures, !failures, failures} {
				calls.fails.Store(fails)
				call()
				requireEnded(t, timeout, engine, resource, i+1)
			}
			for _, fails := range []bool{true, false} {
				calls.fails.Store(fails)
				call()
			}
			assert.EqualValues(t, 5, calls.served.Load(), "two of those that count are let in, and the others before")
		})
	}
}
