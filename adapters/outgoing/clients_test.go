package outgoing_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/adapters/outgoing"
	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/rule"
)

// share has so many clients ask together for three times what a server can serve, which
// answers every call that it refuses with Retry-After: 1. It returns how many calls were
// sent and served, in multiples of what the server can serve.
func share(t *testing.T, clients int, maxPause time.Duration) (sent, served float64) {
	t.Helper()
	const rate, capacity, seconds = 300, 100, 60
	virtual := clock.NewVirtual(time.Unix(1_700_000_000, 0))
	throttles := make([]*outgoing.Throttle, clients)
	for i := range throttles {
		var err error
		options := outgoing.ThrottleOptions{Clock: virtual, Seed: uint64(i) + 1, MaxPause: maxPause}
		throttles[i], err = outgoing.NewThrottle(options)
		require.NoError(t, err)
	}
	tokens := 0.0
	for i := range rate * seconds {
		tokens = min(tokens+capacity/float64(rate), 20)
		call, err := outgoing.Begin(t.Context(), throttles[i%clients], nil, host, rule.PriorityNormal)
		if err == nil {
			sent++
			answer := comeBackAfter(time.Second)
			if tokens >= 1 {
				tokens--
				served++
				answer = accepted()
			}
			call.End(answer)
		}
		virtual.Advance(time.Second / rate)
	}
	return sent / seconds / capacity, served / seconds / capacity
}

func TestClientsThatObeyAServerKeepItBusyAndSpareIt(t *testing.T) {
	t.Parallel()
	for _, clients := range []int{3, 10, 100} {
		sent, served := share(t, clients, 0)
		assert.GreaterOrEqual(t, served, 0.98, "%d clients", clients)
		assert.LessOrEqual(t, sent, 1.7, "%d clients", clients)
	}
}

// TestOneClientThatObeysLeavesAServerIdle shows what a pause costs where one client makes
// all the calls, and that it costs nothing if it is ignored.
func TestOneClientThatObeysLeavesAServerIdle(t *testing.T) {
	t.Parallel()
	_, served := share(t, 1, 0)
	assert.InDelta(t, 0.3, served, 0.1)
	sent, served := share(t, 1, -1)
	assert.GreaterOrEqual(t, served, 0.98)
	assert.LessOrEqual(t, sent, 2.1)
}
