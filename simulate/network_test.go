package simulate

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/fleet"
	"github.com/penstock-go/penstock/fleet/memory"
	"github.com/penstock-go/penstock/internal/sharing/exchange"
)

func newTestNetwork(f Fleet) (*network, *clock.Virtual) {
	c := clock.NewVirtual(time.Unix(0, 0))
	return newNetwork(Load{Fleet: f, Seed: 1}, memory.New(c)), c
}

func TestARequestTakesHalfTheLatencyAndTheReplyTheRest(t *testing.T) {
	t.Parallel()
	n, _ := newTestNetwork(Fleet{Latency: Service{Mean: 20 * time.Millisecond}})
	assert.Equal(t, roundTrip{
		asked: 1010 * time.Millisecond, made: true, replied: 1020 * time.Millisecond, answered: true,
	}, n.send(time.Second, exchange.DefaultTimeout))
	n, _ = newTestNetwork(Fleet{})
	assert.Equal(t, time.Second+defaultLatency, n.send(time.Second, exchange.DefaultTimeout).replied)
}

func TestLostRepliesAreOfRequestsThatWereMade(t *testing.T) {
	t.Parallel()
	n, _ := newTestNetwork(Fleet{Loss: 0.1, Latency: Service{Mean: time.Millisecond, Shape: Exponential}})
	const trips = 10_000
	lost, latency := 0, time.Duration(0)
	for range trips {
		trip := n.send(0, exchange.DefaultTimeout)
		assert.True(t, trip.made)
		if !trip.answered {
			lost++
			assert.Equal(t, exchange.DefaultTimeout, trip.replied)
		} else {
			latency += trip.replied
		}
	}
	assert.InDelta(t, trips/10, lost, 100)
	assert.InDelta(t, float64(time.Millisecond), float64(latency)/float64(trips-lost), float64(40*time.Microsecond))
}

func TestNothingIsAnsweredInAnOutage(t *testing.T) {
	t.Parallel()
	ms := time.Millisecond
	n, _ := newTestNetwork(Fleet{
		Latency: Service{Mean: 10 * ms},
		Outages: []Outage{{From: 100 * ms, Until: 200 * ms}, {From: 300 * ms, Until: 310 * ms}},
	})
	for _, test := range []struct {
		sent           time.Duration
		made, answered bool
	}{
		{89 * ms, true, true},
		{90 * ms, true, false}, // the reply would come when the outage begins
		{94 * ms, true, false},
		{95 * ms, false, false}, // the request does
		{194 * ms, false, false},
		{195 * ms, true, true},
		{292 * ms, true, false},
		{295 * ms, false, false},
		{304 * ms, false, false},
		{305 * ms, true, true},
		{time.Hour, true, true},
	} {
		trip := n.send(test.sent, 50*ms)
		assert.Equal(t, test.made, trip.made, test.sent)
		assert.Equal(t, test.answered, trip.answered, test.sent)
		if !test.answered {
			assert.Equal(t, test.sent+50*ms, trip.replied, test.sent)
		}
	}
}

func TestABackendThatIsBackEmptyHasLostItsCounts(t *testing.T) {
	t.Parallel()
	ms := time.Millisecond
	n, c := newTestNetwork(Fleet{Outages: []Outage{{From: 100 * ms, Until: 200 * ms}, {From: 300 * ms, Until: 400 * ms, Empty: true}}})
	granted := func(now time.Duration) int64 {
		c.Advance(now - time.Duration(c.Now()))
		replies := make([]fleet.Reply, 1)
		n.backend(now).Exchange(context.Background(), []fleet.Request{{
			Operation: fleet.AskFixedWindow, Want: 1, Keep: time.Second,
			Terms: fleet.Terms{Key: "k", Limit: 1, Window: time.Hour, Buckets: 1},
		}}, replies)
		assert.NoError(t, replies[0].Err)
		return replies[0].Granted
	}
	assert.EqualValues(t, 1, granted(50*ms))
	assert.EqualValues(t, 0, granted(90*ms))
	assert.EqualValues(t, 0, granted(250*ms), "it still knows")
	assert.EqualValues(t, 1, granted(450*ms), "it has forgotten")
	assert.EqualValues(t, 0, granted(460*ms))
}
