package memory_test

import (
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/penstock-go/penstock/fleet"
)

var perSecond = fleet.Terms{Key: "k", Limit: 1000, Window: time.Second, Burst: 100}

func TestLeaseBucketGrantsNowOrForLater(t *testing.T) {
	t.Parallel()
	run(t, perSecond, fleet.LeaseBucket, []step{
		{0, fleet.Request{Want: 60}, fleet.Reply{Granted: 60}},
		{0, fleet.Request{Want: 60}, fleet.Reply{Granted: 40}},
		{0, fleet.Request{Want: 60}, fleet.Reply{Retry: 1 * ms}},
		{0, fleet.Request{Want: 60, Quantum: 20}, fleet.Reply{Retry: 20 * ms}},
		{0, fleet.Request{Want: 60, Quantum: 20, Queue: 15 * ms}, fleet.Reply{Retry: 5 * ms}},
		{0, fleet.Request{Want: 60, Quantum: 20, Queue: 30 * ms}, fleet.Reply{Granted: 20, Delay: 20 * ms}},
		{0, fleet.Request{Want: 60, Quantum: 20, Queue: 30 * ms}, fleet.Reply{Retry: 10 * ms}},
		{10 * ms, fleet.Request{Want: 10, Quantum: 20, Queue: 30 * ms}, fleet.Reply{Granted: 10, Delay: 20 * ms}},
		{10 * ms, fleet.Request{Want: 0, Back: 30}, fleet.Reply{}},
		{10 * ms, fleet.Request{Want: 50}, fleet.Reply{Granted: 10}},
		{time.Second, fleet.Request{Want: 1000}, fleet.Reply{Granted: 100}},
	})
}

func TestLeaseBucketChargesWhatIsOwed(t *testing.T) {
	t.Parallel()
	run(t, perSecond, fleet.LeaseBucket, []step{
		{0, fleet.Request{Want: 10, Owed: 150}, fleet.Reply{Retry: 51 * ms}},
		{51 * ms, fleet.Request{Want: 10}, fleet.Reply{Granted: 1}},
		{51 * ms, fleet.Request{Owed: 1_000_000}, fleet.Reply{}},
		// What is owed beyond the burst and a second is not paid.
		{51 * ms, fleet.Request{Want: 1}, fleet.Reply{Retry: time.Second + 1*ms}},
	})
}

func TestLimitsThatNothingCanPassAreNeverGranted(t *testing.T) {
	t.Parallel()
	zero := fleet.Terms{Key: "zero", Window: time.Second, Burst: 1, Buckets: 10}
	half := fleet.Terms{Key: "half", Limit: 10, Window: time.Second, Burst: .5, Buckets: 10}
	small := fleet.Terms{Key: "small", Limit: .5, Window: time.Second, Buckets: 10}
	ten := fleet.Terms{Key: "ten", Limit: 10, Window: time.Second, Burst: 10, Buckets: 10}
	h := newHarness(t)
	for _, r := range []fleet.Request{
		{Operation: fleet.LeaseBucket, Terms: zero, Want: 1},
		{Operation: fleet.LeaseWindow, Terms: zero, Want: 1},
		{Operation: fleet.AskFixedWindow, Terms: zero, Want: 1},
		{Operation: fleet.AskSlidingLog, Terms: zero, Want: 1},
		{Operation: fleet.AskTokenBucket, Terms: zero, Want: 1},
		{Operation: fleet.AskThrottle, Terms: zero, Want: 1},
		{Operation: fleet.LeaseBucket, Terms: half, Want: 1},
		{Operation: fleet.AskTokenBucket, Terms: half, Want: 1},
		{Operation: fleet.LeaseWindow, Terms: small, Want: 1},
		{Operation: fleet.AskFixedWindow, Terms: small, Want: 1},
		{Operation: fleet.AskSlidingLog, Terms: small, Want: 1},
		{Operation: fleet.AskFixedWindow, Terms: ten, Want: 11},
		{Operation: fleet.AskSlidingLog, Terms: ten, Want: 11},
		{Operation: fleet.AskTokenBucket, Terms: ten, Want: 11},
		{Operation: fleet.AskThrottle, Terms: ten, Want: 11},
	} {
		got := h.do(r)
		assert.NoError(t, got.Err)
		assert.Zero(t, got.Granted, "operation %d of %v", r.Operation, r.Terms)
		assert.Equal(t, fleet.Never, got.Retry, "operation %d of %v", r.Operation, r.Terms)
	}
	assert.Zero(t, h.Len(), "nothing is used")
}

func TestBucketThatLostItsStateLearnsFromWhatWasSeen(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	last := h.do(fleet.Request{Terms: perSecond, Want: 100})
	h.Flush()
	again := h.do(fleet.Request{Terms: perSecond, Want: 100, Seen: last.State})
	assert.Zero(t, again.Granted)
	assert.Equal(t, 1*ms, again.Retry)
	assert.Equal(t, last.State, again.State)
	assert.Equal(t, int64(100), h.do(fleet.Request{
		Terms: fleet.Terms{Key: "other", Limit: 1000, Window: time.Second, Burst: 100},
		Want:  100, Seen: "100000x10:1:5",
	}).Granted, "the state of another mode tells nothing")
}

func TestClockThatJumpsBackRefusesForAMomentOnly(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	full := h.do(fleet.Request{Terms: perSecond, Want: 100})
	h.Shift(-2 * time.Hour)
	got := h.do(fleet.Request{Terms: perSecond, Want: 1})
	assert.Equal(t, time.Second+1*ms, got.Retry)
	h.clock.Advance(500 * ms)
	got = h.do(fleet.Request{Terms: perSecond, Want: 1})
	assert.Equal(t, 501*ms, got.Retry, "it was cut off once, not with every request")
	h.clock.Advance(501 * ms)
	assert.Equal(t, int64(1), h.do(fleet.Request{Terms: perSecond, Want: 1}).Granted)

	// What others have seen before is cut off too.
	got = h.do(fleet.Request{Terms: perSecond, Want: 1, Seen: full.State})
	assert.Equal(t, time.Second+1*ms, got.Retry)
}

func TestBucketStaysAtItsTimeWhenTheLimitChanges(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	h.do(fleet.Request{Terms: perSecond, Want: 100})
	slower := fleet.Terms{Key: "k", Limit: 200, Window: time.Second, Burst: 20}
	assert.Equal(t, 5*ms, h.do(fleet.Request{Terms: slower, Want: 1}).Retry)
	h.clock.Advance(50 * ms)
	assert.Equal(t, int64(10), h.do(fleet.Request{Terms: slower, Want: 20}).Granted)
}

func TestAskTokenBucketTakesAllOrNothing(t *testing.T) {
	t.Parallel()
	terms := fleet.Terms{Key: "k", Limit: 10, Window: time.Second, Burst: 5}
	run(t, terms, fleet.AskTokenBucket, []step{
		{0, fleet.Request{Want: 0}, fleet.Reply{Limit: 5, Remaining: 5}},
		{0, fleet.Request{Want: 3}, fleet.Reply{Granted: 3, Limit: 5, Remaining: 2, Reset: 300 * ms}},
		{0, fleet.Request{Want: 3}, fleet.Reply{Retry: 100 * ms, Limit: 5, Remaining: 2, Reset: 300 * ms}},
		{0, fleet.Request{Want: 2}, fleet.Reply{Granted: 2, Limit: 5, Reset: 500 * ms}},
		{0, fleet.Request{Want: -1}, fleet.Reply{Limit: 5, Remaining: 1, Reset: 400 * ms}},
		{0, fleet.Request{Want: 6}, fleet.Reply{Retry: fleet.Never, Limit: 5, Remaining: 1, Reset: 400 * ms}},
		{50 * ms, fleet.Request{Want: 2}, fleet.Reply{Retry: 50 * ms, Limit: 5, Remaining: 1, Reset: 350 * ms}},
		{100 * ms, fleet.Request{Want: 2}, fleet.Reply{Granted: 2, Limit: 5, Reset: 500 * ms}},
		{100 * ms, fleet.Request{Want: -99}, fleet.Reply{Limit: 5, Remaining: 5}},
	})
}

func TestAskThrottleSpacesCalls(t *testing.T) {
	t.Parallel()
	terms := fleet.Terms{Key: "k", Limit: 10, Window: time.Second, MaxWait: 200 * ms}
	run(t, terms, fleet.AskThrottle, []step{
		{0, fleet.Request{Want: 1}, fleet.Reply{Granted: 1, Limit: 1, Reset: 100 * ms}},
		{0, fleet.Request{Want: 1}, fleet.Reply{Granted: 1, Delay: 100 * ms, Limit: 1, Reset: 200 * ms}},
		{0, fleet.Request{Want: 2}, fleet.Reply{Retry: 100 * ms, Limit: 1, Reset: 200 * ms}},
		{0, fleet.Request{Want: 1}, fleet.Reply{Granted: 1, Delay: 200 * ms, Limit: 1, Reset: 300 * ms}},
		{0, fleet.Request{Want: 1}, fleet.Reply{Retry: 100 * ms, Limit: 1, Reset: 300 * ms}},
		{300 * ms, fleet.Request{Want: 1}, fleet.Reply{Granted: 1, Limit: 1, Reset: 100 * ms}},
	})
}

func TestFractionalRatesAreNeverExceeded(t *testing.T) {
	t.Parallel()
	for _, limit := range []float64{.3, 1, 3, 7, 333.3, 1e6, 999_983} {
		terms := fleet.Terms{Key: "k", Limit: limit, Window: time.Second, Burst: 1}
		h := newHarness(t)
		granted := int64(0)
		for range 2000 {
			granted += h.do(fleet.Request{Terms: terms, Want: 1 << 40}).Granted
			h.clock.Advance(10 * ms)
		}
		most := 1 + limit*20
		assert.LessOrEqual(t, float64(granted), most, "limit %v", limit)
		if limit < 10 { // a bucket of one token is asked 100 times a second
			assert.GreaterOrEqual(t, float64(granted), .9*limit*20-1, "limit %v", limit)
		}
	}
}

func TestStatesAreWholeNumbers(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	got := h.do(fleet.Request{Terms: fleet.Terms{Key: "k", Limit: 7, Window: time.Second, Burst: 7}, Want: 1})
	assert.Equal(t, strconv.FormatInt(start.Add(142_858*time.Microsecond).Time().UnixMicro(), 10), got.State)
}
