package adaptive

import (
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/penstock-go/penstock/adaptive/internal/shed"
	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/rule"
	"github.com/penstock-go/penstock/stat"
)

const (
	qpsBuckets = 10
	qpsBucket  = time.Second / qpsBuckets
)

// secondWindow lets no more tokens pass than a limit in a second, which is ten buckets of
// 100 ms. Taking and refusing take no lock, but for the first call of a bucket. All versions
// of a rule share one.
type secondWindow struct {
	counts  *stat.Window
	limit   atomic.Int64 // tokens in a second
	reserve atomic.Int64 // tokens that are left to calls above the edge

	mu sync.Mutex // guards opening buckets
}

func newSecondWindow(qps float64, now clock.Instant) *secondWindow {
	w := &secondWindow{counts: stat.NewWindow(qpsBuckets, qpsBucketOf(now))}
	w.limit.Store(int64(math.Floor(qps)))
	w.counts.Open(qpsBucketOf(now), w.limit.Load())
	return w
}

func qpsBucketOf(now clock.Instant) int64 { return int64(now) / int64(qpsBucket) }

// take takes tokens. Stale says that a later bucket is open already.
func (w *secondWindow) take(now clock.Instant, tokens int32, standing shed.Standing) rule.Decision {
	bucket := qpsBucketOf(now)
	for {
		outcome := stat.Taken
		if reserve := w.reserve.Load(); reserve > 0 && standing != shed.Above {
			outcome = w.counts.Check(bucket, int32(min(int64(tokens)+reserve, math.MaxInt32)))
		}
		if outcome == stat.Taken {
			outcome = w.counts.Take(bucket, tokens)
		}
		switch {
		case outcome == stat.Taken:
			return rule.Pass
		case outcome == stat.Full:
			return rule.Block
		case !w.open(bucket):
			return rule.Stale
		}
	}
}

// open opens a bucket. It returns false if a later one is open.
func (w *secondWindow) open(bucket int64) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if bucket <= w.counts.OpenBucket() {
		return bucket == w.counts.OpenBucket()
	}
	w.counts.Close()
	w.counts.Open(bucket, w.limit.Load())
	return true
}

// opened returns when the latest bucket begins.
func (w *secondWindow) opened() clock.Instant {
	w.mu.Lock()
	defer w.mu.Unlock()
	return clock.Instant(w.counts.OpenBucket() * int64(qpsBucket))
}

// giveBack returns tokens that were taken at now.
func (w *secondWindow) giveBack(now clock.Instant, tokens int32) {
	bucket := qpsBucketOf(now)
	if w.counts.TryGiveBack(bucket, tokens) {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	open := w.counts.OpenBucket()
	w.counts.Close()
	w.counts.GiveBack(bucket, tokens)
	w.counts.Open(open, w.limit.Load())
}

// setLimit changes the limit, for the open bucket too.
func (w *secondWindow) setLimit(qps float64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	limit := int64(math.Floor(qps))
	if limit == w.limit.Load() {
		return
	}
	w.limit.Store(limit)
	open := w.counts.OpenBucket()
	w.counts.Close()
	w.counts.Open(open, limit)
}

// reserveFor leaves tokens to the calls above the edge, which are that share of those that
// pass: as many as their number varies by.
func (w *secondWindow) reserveFor(weightAbove float64) {
	limit := float64(w.limit.Load())
	w.reserve.Store(int64(min(limit/2, math.Ceil(2*math.Sqrt(limit*weightAbove)))))
}

// copyFrom begins with what another window holds.
func (w *secondWindow) copyFrom(other *secondWindow) {
	other.mu.Lock()
	open := other.counts.OpenBucket()
	other.counts.Close()
	var taken [qpsBuckets]int64
	for i := range taken {
		taken[i] = other.counts.TakenIn(open - int64(i))
	}
	other.counts.Open(open, other.limit.Load())
	other.mu.Unlock()

	w.mu.Lock()
	defer w.mu.Unlock()
	present := max(open, w.counts.OpenBucket())
	w.counts.Close()
	w.counts.Open(present, w.limit.Load())
	w.counts.Close()
	for i, n := range taken {
		w.counts.Put(open-int64(i), n)
	}
	w.counts.Open(present, w.limit.Load())
}
