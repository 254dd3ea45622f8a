package outgoing_test

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/adapters/outgoing"
	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/rule"
)

// client makes calls of one target on a virtual clock.
type client struct {
	t        testing.TB
	clock    *clock.Virtual
	throttle *outgoing.Throttle
	priority rule.Priority
}

func newClient(t testing.TB, options outgoing.ThrottleOptions) *client {
	t.Helper()
	c := &client{t: t, clock: clock.NewVirtual(time.Unix(1_700_000_000, 0))}
	options.Clock = c.clock
	if options.Seed == 0 {
		options.Seed = 7
	}
	var err error
	c.throttle, err = outgoing.NewThrottle(options)
	require.NoError(t, err)
	return c
}

const host = "payments:443"

// call makes a call that is answered so, and returns why it was not sent.
func (c *client) call(a outgoing.Answer) error {
	call, err := outgoing.Begin(c.t.Context(), c.throttle, nil, host, c.priority)
	if err == nil {
		call.End(a)
	}
	return err
}

func (c *client) stats() outgoing.TargetStats {
	c.t.Helper()
	targets := c.throttle.Stats().Targets
	require.Len(c.t, targets, 1)
	return targets[0]
}

// second is what happened in a second.
type second struct{ asked, sent, accepted int }

// load makes calls evenly, so many a second, of a server that accepts capacity of them, and
// tells what happened in each second.
func (c *client) load(seconds, rate int, capacity float64) []second {
	c.t.Helper()
	interval := time.Second / time.Duration(rate)
	tokens, most := 0.0, max(1, capacity/100)
	result := make([]second, seconds)
	for i := range seconds * rate {
		s := &result[i/rate]
		s.asked++
		tokens = min(tokens+capacity/float64(rate), most)
		answer := outgoing.Answer{Result: outgoing.Rejected}
		if tokens >= 1 {
			answer.Result = outgoing.Accepted
		}
		switch err := c.call(answer); {
		case err != nil && !errors.Is(err, outgoing.ErrThrottled) && !errors.Is(err, outgoing.ErrPaused):
			require.NoError(c.t, err)
		case err == nil && answer.Result == outgoing.Accepted:
			tokens--
			s.accepted++
			s.sent++
		case err == nil:
			s.sent++
		}
		c.clock.Advance(interval)
	}
	return result
}

func sum(of []second) (all second) {
	for _, s := range of {
		all.asked += s.asked
		all.sent += s.sent
		all.accepted += s.accepted
	}
	return all
}
