package adaptive

import (
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/internal/leap"
	"github.com/penstock-go/penstock/rule"
)

const (
	qpsBuckets = 10
	qpsBucket  = time.Second / qpsBuckets
)

// secondWindow lets no more tokens pass than a limit in a second, which is ten buckets of
// 100 ms. Taking and refusing take no lock, but for the first call of a bucket. All versions
// of a rule share one.
//
// Of a limit with a fraction, seconds of the clock have the whole number below it or the one
// above, as many of each as make up for it.
type secondWindow struct {
	counts *leap.Window
	lesser *leap.Window  // of less important calls, while there is a quota for them
	qps    atomic.Uint64 // tokens in a second, a float64
	quota  atomic.Int64  // tokens in a second of less important calls, or noQuota

	mu sync.Mutex // guards opening buckets
}

// noQuota is the quota of less important calls where there are no others.
const noQuota = math.MaxInt64

func newSecondWindow(qps float64, now clock.Instant) *secondWindow {
	bucket := qpsBucketOf(now)
	w := &secondWindow{counts: leap.NewWindow(qpsBuckets, bucket), lesser: leap.NewWindow(qpsBuckets, bucket)}
	w.qps.Store(math.Float64bits(qps))
	w.quota.Store(noQuota)
	w.openBoth(bucket)
	return w
}

func qpsBucketOf(now clock.Instant) int64 { return int64(now) / int64(qpsBucket) }

// limit returns how many tokens may pass in a second that ends with a bucket.
func (w *secondWindow) limit(bucket int64) int64 {
	const period = 100_000 // seconds after which fractions are added up anew, so that floats hold the sum
	qps := math.Float64frombits(w.qps.Load())
	second := float64(bucket / qpsBuckets % period)
	return int64(math.Floor((second+1)*qps) - math.Floor(second*qps))
}

// take takes tokens. A less important call takes them of the quota, too. Stale says that a later
// bucket is open already.
func (w *secondWindow) take(now clock.Instant, tokens int32, important bool) (t rule.Ticket, decision rule.Decision) {
	bucket := qpsBucketOf(now)
	for {
		outcome, t := leap.Taken, counted
		if !important && w.quota.Load() != noQuota {
			outcome, t = w.lesser.Take(bucket, tokens), countedLesser
		}
		if outcome == leap.Taken {
			if outcome = w.counts.Take(bucket, tokens); outcome != leap.Taken && t == countedLesser {
				w.giveBackTo(w.lesser, bucket, tokens)
			}
		}
		switch {
		case outcome == leap.Taken:
			return t, rule.Pass
		case outcome == leap.Full:
			return t, rule.Block
		case !w.open(bucket):
			return t, rule.Stale
		}
	}
}

// isFull says whether there are not so many tokens for any call.
func (w *secondWindow) isFull(now clock.Instant, tokens int32) bool {
	return w.counts.Check(qpsBucketOf(now), tokens) == leap.Full
}

// open opens a bucket. It returns false if a later one is open.
func (w *secondWindow) open(bucket int64) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if bucket <= w.counts.OpenBucket() {
		return bucket == w.counts.OpenBucket()
	}
	w.closeBoth()
	w.openBoth(bucket)
	return true
}

func (w *secondWindow) closeBoth() {
	w.lesser.Close()
	w.counts.Close()
}

func (w *secondWindow) openBoth(bucket int64) {
	limit := w.limit(bucket)
	w.lesser.Open(bucket, min(limit, w.quota.Load()))
	w.counts.Open(bucket, limit)
}

// opened returns when the latest bucket begins.
func (w *secondWindow) opened() clock.Instant {
	w.mu.Lock()
	defer w.mu.Unlock()
	return clock.Instant(w.counts.OpenBucket() * int64(qpsBucket))
}

// giveBack returns tokens that were taken at now, with that ticket.
func (w *secondWindow) giveBack(now clock.Instant, t rule.Ticket, tokens int32) {
	bucket := qpsBucketOf(now)
	w.giveBackTo(w.counts, bucket, tokens)
	if t == countedLesser {
		w.giveBackTo(w.lesser, bucket, tokens)
	}
}

func (w *secondWindow) giveBackTo(counts *leap.Window, bucket int64, tokens int32) {
	if counts.TryGiveBack(bucket, tokens) {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	open := w.counts.OpenBucket()
	w.closeBoth()
	counts.GiveBack(bucket, tokens)
	w.openBoth(open)
}

// setLimit changes the limit, for the open bucket too.
func (w *secondWindow) setLimit(qps float64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.qps.Swap(math.Float64bits(qps)) == math.Float64bits(qps) {
		return
	}
	open := w.counts.OpenBucket()
	w.closeBoth()
	w.openBoth(open)
}

// reserveFor leaves to the important calls, from the next bucket on, what they need: so many
// calls in a second, of so many tokens each, and one more and twice as many as their number
// varies by.
func (w *secondWindow) reserveFor(calls, tokens float64) {
	quota := int64(noQuota)
	if calls > 0 {
		qps := math.Float64frombits(w.qps.Load())
		quota = int64(max(0, qps-tokens*(calls+2*math.Sqrt(calls)+1)))
	}
	w.quota.Store(quota)
}

// copyFrom begins with what another window holds, but for the quota.
func (w *secondWindow) copyFrom(other *secondWindow) {
	other.mu.Lock()
	open := other.counts.OpenBucket()
	other.closeBoth()
	var taken [qpsBuckets]int64
	for i := range taken {
		taken[i] = other.counts.TakenIn(open - int64(i))
	}
	other.openBoth(open)
	other.mu.Unlock()

	w.mu.Lock()
	defer w.mu.Unlock()
	present := max(open, w.counts.OpenBucket())
	w.closeBoth()
	w.openBoth(present)
	w.closeBoth()
	for i, n := range taken {
		w.counts.Put(open-int64(i), n)
	}
	w.openBoth(present)
}
