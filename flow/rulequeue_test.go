package flow_test

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/internal/optional"
	"github.com/penstock-go/penstock/rule"
)

// A ticket is all that a call has of its turn: it is enough to undo that.
func TestTicketsOfQueuesAreGivenBack(t *testing.T) {
	t.Parallel()
	warming := bucket(10, 5)
	warming.WarmUp = flow.WarmUp{Period: time.Minute, ColdFactor: 3}
	for name, r := range map[string]flow.Rule{"throttle": throttle(10, time.Second), "bucket": bucket(10, 5), "warming bucket": warming} {
		l := flow.Kind().Of(r).WithDefaults().NewLimiter(rule.Env{Version: 1, Now: epoch}).(rule.Queue)
		call := rule.Call{Now: epoch, Tokens: 1}
		before := *l.Status(epoch).Quota
		var tickets []rule.Ticket
		for {
			ticket, decision := l.Acquire(call)
			if decision != rule.Pass {
				break
			}
			tickets = append(tickets, ticket)
		}
		require.NotEmpty(t, tickets, name)
		for _, ticket := range slices.Backward(tickets) {
			l.GiveBack(epoch, ticket, 1)
		}
		assert.Equal(t, before, *l.Status(epoch).Quota, "%s: as though there had been none", name)
	}
}

// With Wait a queue says when the call would pass, and Forecast says so of one that comes later.
func TestQueueSaysWhenACallWouldPass(t *testing.T) {
	t.Parallel()
	l := flow.Kind().Of(throttle(10, 250*time.Millisecond)).WithDefaults().NewLimiter(rule.Env{Version: 1, Now: epoch}).(rule.Queue)
	call := rule.Call{Now: epoch, Tokens: 1}
	_, decision := l.Acquire(call)
	require.Equal(t, rule.Pass, decision)
	for i := range 2 {
		turn := epoch.Add(time.Duration(i+1) * 100 * time.Millisecond)
		ticket, decision := l.Acquire(call)
		assert.Equal(t, rule.Wait, decision)
		assert.Equal(t, rule.Ticket(turn), ticket)
		passes, refused := l.(optional.Forecaster).Forecast(call, epoch, 0)
		assert.False(t, refused)
		assert.Equal(t, turn, passes)
		_, _, decision = l.Join(call, rule.Patience{Since: epoch, Until: epoch.Add(time.Hour), Wake: func() {}})
		require.Equal(t, rule.Wait, decision)
	}
	_, refused := l.(optional.Forecaster).Forecast(call, epoch, 0)
	assert.True(t, refused, "300 ms are too long")
	_, refused = l.(optional.Forecaster).Forecast(call, epoch.Add(50*time.Millisecond), 0)
	assert.False(t, refused, "250 ms are not")
	ticket, decision := l.Acquire(call)
	assert.Equal(t, rule.Block, decision)
	assert.Equal(t, 50*time.Millisecond, ticket.RetryTime())
}
