package outgoing_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/penstock-go/penstock/adapters/outgoing"
	"github.com/penstock-go/penstock/rule"
)

func TestCallsAllocateNothing(t *testing.T) { //nolint:paralleltest // AllocsPerRun counts those of others, too
	c := newClient(t, outgoing.ThrottleOptions{})
	budgets, _ := newBudgets(t, outgoing.RetryOptions{})
	ctx := t.Context()
	answer := outgoing.Answer{Result: outgoing.Accepted}
	call := func() {
		if call, err := outgoing.Begin(ctx, c.throttle, budgets, host, rule.PriorityNormal); err == nil {
			call.End(answer)
		}
	}
	assert.Zero(t, testing.AllocsPerRun(1000, call), "a call that passes")
	answer.Result = outgoing.Rejected
	for range 5000 {
		call()
	}
	assert.Zero(t, testing.AllocsPerRun(1000, call), "a call that is throttled")
	assert.Positive(t, c.stats().Throttled)

	for c.stats().PausedFor == 0 {
		answer = comeBackAfter(1 << 50)
		call()
	}
	call()
	assert.Zero(t, testing.AllocsPerRun(1000, call), "a call of a paused target")
	assert.Positive(t, c.stats().Paused)
}
