package redis

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/penstock-go/penstock/fleet"
)

// What passed before much else counts for longer than it should, and as many tokens less; the script
// and the model agree on how many.
func TestChargeOfLongAgoBehindManyCallsCountsLess(t *testing.T) {
	t.Parallel()
	p := newPair(t)
	p.reset()
	terms := fleet.Terms{Key: "flow/a", Limit: 1000, Window: time.Second}
	both := func(request fleet.Request) fleet.Reply {
		request.Operation, request.Terms = fleet.AskSlidingLog, terms
		want, got := exchange(t, p.model, request)[0], exchange(t, p.store, request)[0]
		assert.Equal(t, want, got)
		return got
	}
	for range 150 {
		p.advance(time.Millisecond, false)
		both(fleet.Request{Want: 1})
	}
	p.advance(50*time.Millisecond, false)
	owed := both(fleet.Request{Owed: 400, Age: 600 * time.Millisecond}) // the hundredth last call was 149 ms ago
	assert.EqualValues(t, 1000-150-400*400/851, owed.Remaining)
	short := both(fleet.Request{Owed: 400, Age: 120 * time.Millisecond}) // fewer calls came since
	assert.Equal(t, owed.Remaining-400, short.Remaining)
	assert.Equal(t, owed.Remaining-400, both(fleet.Request{Owed: 1, Age: time.Hour}).Remaining, "next to nothing of it counts")
}
