package redis

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/penstock-go/penstock/fleet"
)

// What passed before the store was told counts as of when it passed, up to the end of that 64th of the window,
// however many calls have passed since; the script and the model agree on when it leaves.
func TestLateChargeBehindManyCallsCountsAsOfWhenItPassed(t *testing.T) {
	t.Parallel()
	p := newPair(t)
	p.reset()
	both := askLogOfBoth(t, p, fleet.Terms{Key: "flow/a", Limit: 1000, Window: time.Second})
	for range 400 {
		p.advance(time.Millisecond, false)
		both(fleet.Request{Want: 1})
	}
	assert.EqualValues(t, 300, both(fleet.Request{Owed: 300, Age: 600 * time.Millisecond}).Remaining)
	assert.EqualValues(t, 280, both(fleet.Request{Owed: 20, Age: 595 * time.Millisecond}).Remaining, "in the same part")
	assert.EqualValues(t, 180, both(fleet.Request{Owed: 100, Age: 200 * time.Millisecond}).Remaining)
	refused := both(fleet.Request{Want: 500})
	assert.Greater(t, refused.Retry, 400*time.Millisecond, "they count for a window")
	assert.LessOrEqual(t, refused.Retry, 416*time.Millisecond, "and no more than a part longer")
	assert.Equal(t, time.Second, refused.Reset)

	p.advance(400*time.Millisecond-1, false)
	assert.EqualValues(t, 180, both(fleet.Request{}).Remaining)
	p.advance(refused.Retry-400*time.Millisecond+1, false)
	assert.EqualValues(t, 500, both(fleet.Request{}).Remaining)
	assert.EqualValues(t, 500, both(fleet.Request{Want: 500}).Granted)
	p.advance(2*time.Second, false)
	assert.Zero(t, p.model.Len())
	assert.Empty(t, p.server.Keys())
}

// What is taken back is of the calls first, and then of the latest charges.
func TestTokensOfChargesAreTakenBackAfterThoseOfCalls(t *testing.T) {
	t.Parallel()
	p := newPair(t)
	p.reset()
	both := askLogOfBoth(t, p, fleet.Terms{Key: "flow/a", Limit: 100, Window: time.Second})
	both(fleet.Request{Want: 10})
	both(fleet.Request{Owed: 20, Age: 700 * time.Millisecond})
	both(fleet.Request{Owed: 30, Age: 300 * time.Millisecond})
	assert.EqualValues(t, 55, both(fleet.Request{Want: -15}).Remaining)
	p.advance(400*time.Millisecond, false) // the twenty have left
	assert.EqualValues(t, 75, both(fleet.Request{}).Remaining)
	assert.EqualValues(t, 100, both(fleet.Request{Want: -30}).Remaining)
	assert.Empty(t, p.server.Keys())
}

// askLogOfBoth returns a function that asks the script and the model, which have to answer the same.
func askLogOfBoth(t *testing.T, p *pair, terms fleet.Terms) func(fleet.Request) fleet.Reply {
	return func(request fleet.Request) fleet.Reply {
		t.Helper()
		request.Operation, request.Terms = fleet.AskSlidingLog, terms
		want, got := exchange(t, p.model, request)[0], exchange(t, p.store, request)[0]
		assert.Equal(t, want, got)
		return got
	}
}
