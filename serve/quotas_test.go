package serve

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

// eachEnvoy runs a test for both versions of Envoy's bucket, and for reports every second and every
// five.
func eachEnvoy(t *testing.T, f func(t *testing.T, every time.Duration, newer bool)) {
	for _, every := range []time.Duration{time.Second, 5 * time.Second} {
		for _, newer := range []bool{false, true} {
			t.Run(fmt.Sprintf("%v,newer=%v", every, newer), func(t *testing.T) { f(t, every, newer) })
		}
	}
}

func TestQuotasPassTheLimitInOverload(t *testing.T) {
	eachEnvoy(t, func(t *testing.T, every time.Duration, newer bool) {
		w := newQuotaWorld(50, every, newer, 500_000, 1_000_000)
		w.run(20)
		before := w.messages
		w.run(60)
		all, least, worst := w.parts(20, 500_000)
		perSecond := float64(w.messages-before) / 60
		t.Logf("passed %.4f, %.3f to %.3f, %.1f messages/s", all, least, worst, perSecond)
		assert.InDelta(t, 1.0025, all, 0.0075)
		assert.LessOrEqual(t, worst, 1.03)
		assert.LessOrEqual(t, perSecond, map[time.Duration]float64{time.Second: 70, 5 * time.Second: 20}[every])
	})
}

func TestQuotasRefuseNothingBelowTheLimit(t *testing.T) {
	eachEnvoy(t, func(t *testing.T, every time.Duration, newer bool) {
		w := newQuotaWorld(50, every, newer, 500_000, 450_000)
		w.run(20 + 40)
		all, least, _ := w.parts(20, 450_000)
		t.Logf("passed %.4f, least %.4f", all, least)
		assert.InDelta(t, 1, all, 0.002)
	})
}

func TestQuotasFollowDemandThatMoves(t *testing.T) {
	eachEnvoy(t, func(t *testing.T, every time.Duration, newer bool) {
		w := newQuotaWorld(50, every, newer, 500_000, 1_000_000)
		w.run(20)
		before := w.messages
		for move := range 3 {
			w.skew(1_000_000, 7*move)
			w.run(60)
		}
		all, least, worst := w.parts(20, 500_000)
		perSecond := float64(w.messages-before) / 180
		t.Logf("passed %.4f, %.3f to %.3f, %.1f messages/s", all, least, worst, perSecond)
		assert.Greater(t, all, map[time.Duration]float64{time.Second: 0.985, 5 * time.Second: 0.95}[every])
		assert.LessOrEqual(t, worst, 1.03)
		assert.LessOrEqual(t, perSecond, map[time.Duration]float64{time.Second: 70, 5 * time.Second: 20}[every])
	})
}

func TestQuotasHoldWhileAServerIsKilledAndStartedAgain(t *testing.T) {
	eachEnvoy(t, func(t *testing.T, every time.Duration, newer bool) {
		w := newQuotaWorld(50, every, newer, 500_000, 1_000_000)
		w.run(20)
		w.kill()
		w.run(2)
		w.start()
		w.run(30)
		all, least, worst := w.parts(20, 500_000)
		t.Logf("passed %.4f, %.3f to %.3f", all, least, worst)
		assert.GreaterOrEqual(t, least, 0.97)
		assert.LessOrEqual(t, worst, 1.03)
	})
}

func TestQuotasOfSmallerLimits(t *testing.T) {
	for _, test := range []struct{ limit, least, most, worst float64 }{
		{50_000, 0.99, 1.01, 1.03},
		{5_000, 0.985, 1.01, 1.05},
		{500, 0.96, 1.02, 1.15},
	} {
		for _, newer := range []bool{false, true} {
			w := newQuotaWorld(50, 5*time.Second, newer, test.limit, 2*test.limit)
			w.run(20 + 60)
			all, _, worst := w.parts(20, test.limit)
			t.Logf("limit %.0f, newer=%v: %.4f, worst %.3f", test.limit, newer, all, worst)
			assert.GreaterOrEqual(t, all, test.least, test.limit)
			assert.LessOrEqual(t, all, test.most, test.limit)
			assert.LessOrEqual(t, worst, test.worst, test.limit)
		}
	}
}

func TestReportThatWasReadWhileItsStreamEndedCountsNothing(t *testing.T) {
	w := newQuotaWorld(1, time.Second, false, 1000, 100)
	stream := newQuotaStream("shop", "a", make(chan struct{}, 1))
	usages := []quotaUsage{{map[string]string{"resource": "orders"}, 1, 0}}
	w.server.report(stream, w.now, usages, 0)
	assert.Equal(t, 1, w.server.shares)
	w.server.close(stream, true)
	w.server.report(stream, w.now, usages, 0)
	assert.Zero(t, w.server.shares)
	assert.False(t, w.server.step(w.now), "something is left")
}

func TestBucketIsDividedAtAnInstantBeforeItsFirstReport(t *testing.T) {
	w := newQuotaWorld(1, time.Second, false, 1000, 100)
	stream := newQuotaStream("shop", "a", make(chan struct{}, 1))
	w.server.report(stream, w.now.Add(time.Millisecond), []quotaUsage{{map[string]string{"resource": "orders"}, 1, 0}}, 0)
	w.server.step(w.now) // it read the clock before
	actions := w.server.take(stream, nil)
	assert.Len(t, actions, 1)
	assert.InDelta(t, 1000, actions[0].assignment.rate, 50)
}

func TestDataPlaneThatIsStartedAnewAtTheSameAddressIsToldItsAssignment(t *testing.T) {
	w := newQuotaWorld(1, time.Second, false, 1000, 100)
	usages := []quotaUsage{{map[string]string{"resource": "orders"}, 1, 0}}
	for range 2 {
		stream := newQuotaStream("shop", "a", make(chan struct{}, 1))
		w.server.report(stream, w.now, usages, 0)
		w.server.step(w.now)
		assert.Len(t, w.server.take(stream, nil), 1)
		w.server.close(stream, false)
		assert.Equal(t, 1, w.server.shares, "it takes the place of the other")
		w.now = w.now.Add(time.Second)
	}
}
