package memory_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/penstock-go/penstock/fleet"
)

var tenBuckets = fleet.Terms{Key: "k", Limit: 100, Window: time.Second, Buckets: 10}

// bucketAt is the [fleet.Reply.Bucket] of the bucket that begins at an instant after start.
func bucketAt(at time.Duration) int64 { return start.Add(at).Time().UnixMicro() }

func TestLeaseWindowCountsInBuckets(t *testing.T) {
	t.Parallel()
	run(t, tenBuckets, fleet.LeaseWindow, []step{
		{0, fleet.Request{Want: 60}, fleet.Reply{Granted: 60, Valid: 100 * ms, Bucket: bucketAt(0)}},
		{150 * ms, fleet.Request{Want: 60}, fleet.Reply{Granted: 40, Valid: 50 * ms, Bucket: bucketAt(100 * ms)}},
		{150 * ms, fleet.Request{Want: 60}, fleet.Reply{Retry: 850 * ms}},
		{150 * ms, fleet.Request{Want: 80, Quantum: 70}, fleet.Reply{Retry: 950 * ms}},
		{200 * ms, fleet.Request{Back: 30, BackTo: bucketAt(0)}, fleet.Reply{}},
		{200 * ms, fleet.Request{Want: 60}, fleet.Reply{Granted: 30, Valid: 100 * ms, Bucket: bucketAt(200 * ms)}},
		{1000 * ms, fleet.Request{Want: 60}, fleet.Reply{Granted: 30, Valid: 100 * ms, Bucket: bucketAt(1000 * ms)}},
		{1000 * ms, fleet.Request{Owed: 50}, fleet.Reply{}},
		{1100 * ms, fleet.Request{Want: 1}, fleet.Reply{Retry: 100 * ms}},
		{1200 * ms, fleet.Request{Want: 100}, fleet.Reply{Granted: 20, Valid: 100 * ms, Bucket: bucketAt(1200 * ms)}},
	})
}

func TestLeaseWindowGrantsOfTheNextBucket(t *testing.T) {
	t.Parallel()
	run(t, tenBuckets, fleet.LeaseWindow, []step{
		{80 * ms, fleet.Request{Want: 30, Ahead: 10 * ms}, fleet.Reply{Granted: 30, Valid: 20 * ms, Bucket: bucketAt(0)}},
		{90 * ms, fleet.Request{Want: 60, Ahead: 10 * ms}, fleet.Reply{Granted: 60, Delay: 10 * ms, Valid: 110 * ms, Bucket: bucketAt(100 * ms)}},
		// The next bucket counts for those who take from the present one.
		{91 * ms, fleet.Request{Want: 60}, fleet.Reply{Granted: 10, Valid: 9 * ms, Bucket: bucketAt(0)}},
		{91 * ms, fleet.Request{Want: 60, Ahead: 10 * ms}, fleet.Reply{Retry: 899 * ms}},
		{990 * ms, fleet.Request{Want: 60, Ahead: 10 * ms}, fleet.Reply{Granted: 40, Delay: 10 * ms, Valid: 110 * ms, Bucket: bucketAt(time.Second)}},
	})
}

func TestFixedWindowOfLeasesBeginsAnew(t *testing.T) {
	t.Parallel()
	minute := fleet.Terms{Key: "k", Limit: 100, Window: time.Minute, Buckets: 1}
	run(t, minute, fleet.LeaseWindow, []step{
		{30 * time.Second, fleet.Request{Want: 150}, fleet.Reply{Granted: 100, Valid: 30 * time.Second, Bucket: bucketAt(0)}},
		{59 * time.Second, fleet.Request{Want: 1}, fleet.Reply{Retry: time.Second}},
		{time.Minute, fleet.Request{Want: 1}, fleet.Reply{Granted: 1, Valid: time.Minute, Bucket: bucketAt(time.Minute)}},
	})
}

func TestWindowThatLostItsStateLearnsFromWhatWasSeen(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	lease := func(want int64, seen string) fleet.Reply {
		return h.do(fleet.Request{Operation: fleet.LeaseWindow, Terms: tenBuckets, Want: want, Seen: seen})
	}
	one := lease(30, "")
	h.clock.Advance(100 * ms)
	two := lease(20, one.State)
	h.Flush()
	assert.Equal(t, int64(25), lease(25, one.State).Granted, "knows of 30 in the first bucket")
	assert.Equal(t, int64(45), lease(100, two.State).Granted, "the greater count holds: 30, and 25 of 20 and 25")
}

func TestClockThatJumpsBackRefusesForAWindowOnly(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	full := h.do(fleet.Request{Operation: fleet.LeaseWindow, Terms: tenBuckets, Want: 100})
	h.Shift(-2 * time.Hour)
	for range 12 {
		h.do(fleet.Request{Operation: fleet.LeaseWindow, Terms: tenBuckets, Want: 1})
		h.clock.Advance(100 * ms)
	}
	assert.Equal(t, int64(88), h.do(fleet.Request{Operation: fleet.LeaseWindow, Terms: tenBuckets, Want: 88}).Granted)
	assert.Zero(t, h.do(fleet.Request{Operation: fleet.LeaseWindow, Terms: tenBuckets, Want: 88, Seen: full.State}).Granted)
}

// While instances differ in their terms, as during a reload, nothing is forgotten and
// nothing counts for longer than in its own window.
func TestWindowsOfTwoShapesCountTogether(t *testing.T) {
	t.Parallel()
	short := fleet.Terms{Key: "k", Limit: 100, Window: 700 * ms, Buckets: 7}
	long := fleet.Terms{Key: "k", Limit: 100, Window: 3 * time.Second, Buckets: 10}
	h := newHarness(t)
	total := int64(0)
	for at := time.Duration(0); at < 20*time.Second; at += 50 * ms {
		for _, terms := range []fleet.Terms{short, long} {
			total += h.do(fleet.Request{Operation: fleet.LeaseWindow, Terms: terms, Want: 7}).Granted
		}
		h.clock.Advance(50 * ms)
	}
	assert.GreaterOrEqual(t, total, int64(600), "at least what the lower limit allows")
	assert.LessOrEqual(t, total, int64(2957), "at most what the higher limit allows")
}

func TestAskFixedWindowCountsWhatPassed(t *testing.T) {
	t.Parallel()
	terms := fleet.Terms{Key: "k", Limit: 10, Window: time.Second}
	bucket := bucketAt(0)
	run(t, terms, fleet.AskFixedWindow, []step{
		{0, fleet.Request{Want: 0}, fleet.Reply{Limit: 10, Remaining: 10, Bucket: bucket}},
		{0, fleet.Request{Want: 8}, fleet.Reply{Granted: 8, Limit: 10, Remaining: 2, Reset: time.Second, Bucket: bucket}},
		{100 * ms, fleet.Request{Want: 3}, fleet.Reply{Retry: 900 * ms, Limit: 10, Remaining: 2, Reset: 900 * ms, Bucket: bucket}},
		{100 * ms, fleet.Request{Want: 2}, fleet.Reply{Granted: 2, Limit: 10, Reset: 900 * ms, Bucket: bucket}},
		{100 * ms, fleet.Request{Want: -1}, fleet.Reply{Limit: 10, Remaining: 1, Reset: 900 * ms, Bucket: bucket}},
		// Refused calls do not count: with a higher limit more pass.
		{
			200 * ms,
			fleet.Request{Want: 6, Terms: fleet.Terms{Key: "k", Limit: 15, Window: time.Second}},
			fleet.Reply{Granted: 6, Limit: 15, Reset: 800 * ms, Bucket: bucket},
		},
		{time.Second, fleet.Request{Want: 5}, fleet.Reply{Granted: 5, Limit: 10, Remaining: 5, Reset: time.Second, Bucket: bucketAt(time.Second)}},
		// What comes back of an earlier window does not help this one.
		{time.Second, fleet.Request{Want: -5, BackTo: bucket}, fleet.Reply{Limit: 10, Remaining: 5, Reset: time.Second, Bucket: bucketAt(time.Second)}},
	})
}

func TestAskSlidingLogCountsEveryPassForOneWindow(t *testing.T) {
	t.Parallel()
	terms := fleet.Terms{Key: "k", Limit: 10, Window: time.Second}
	run(t, terms, fleet.AskSlidingLog, []step{
		{0, fleet.Request{Want: 4}, fleet.Reply{Granted: 4, Limit: 10, Remaining: 6, Reset: time.Second}},
		{500 * ms, fleet.Request{Want: 6}, fleet.Reply{Granted: 6, Limit: 10, Reset: time.Second}},
		{600 * ms, fleet.Request{Want: 4}, fleet.Reply{Retry: 400 * ms, Limit: 10, Reset: 900 * ms}},
		{600 * ms, fleet.Request{Want: 5}, fleet.Reply{Retry: 900 * ms, Limit: 10, Reset: 900 * ms}},
		{600 * ms, fleet.Request{Want: -2}, fleet.Reply{Limit: 10, Remaining: 2, Reset: 900 * ms}},
		{999 * ms, fleet.Request{Want: 3}, fleet.Reply{Retry: 1 * ms, Limit: 10, Remaining: 2, Reset: 501 * ms}},
		{1000 * ms, fleet.Request{Want: 6}, fleet.Reply{Granted: 6, Limit: 10, Reset: time.Second}},
		{3 * time.Second, fleet.Request{Want: 0}, fleet.Reply{Limit: 10, Remaining: 10}},
	})
}

func TestLogAndFixedWindowOutliveAClockThatJumpsBack(t *testing.T) {
	t.Parallel()
	for _, operation := range []fleet.Operation{fleet.AskFixedWindow, fleet.AskSlidingLog} {
		h := newHarness(t)
		r := fleet.Request{Operation: operation, Terms: fleet.Terms{Key: "k", Limit: 10, Window: time.Second}, Want: 10}
		assert.Equal(t, int64(10), h.do(r).Granted)
		h.Shift(-2 * time.Hour)
		got := h.do(r)
		assert.Equal(t, time.Second, got.Retry, "operation %d", operation)
		h.clock.Advance(got.Retry)
		assert.Equal(t, int64(10), h.do(r).Granted, "operation %d", operation)
	}
}
