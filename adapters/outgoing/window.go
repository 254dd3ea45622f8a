package outgoing

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/penstock-go/penstock/clock"
)

// parts is how many buckets a window has.
const parts = 120

// window counts what became of calls. Events are added to totals that only grow, so none
// is lost or counted twice, and taking part costs an atomic addition. What is in the window
// is the difference from the totals at its beginning, which is looked for once a bucket.
//
// The window in use is the shortest that has minEnded ends: at least the open bucket and
// the one before, at most parts buckets. So it is short where there are many calls, and
// what was long ago does not keep a target that has recovered from being called.
type window struct {
	bucket   time.Duration
	minEnded uint64

	refused  atomic.Uint64 // not sent
	accepted atomic.Uint64 // of ended
	ended    atomic.Uint64 // were sent

	// Totals at the beginning of the window in use. They are read one after the other,
	// in an order that makes too few calls refused, not too many, while they change.
	baseRequests atomic.Uint64
	baseEnded    atomic.Uint64
	baseAccepted atomic.Uint64

	open   atomic.Int64 // number of the open bucket
	mu     sync.Mutex
	starts [parts]totals // guarded by mu: totals at the beginning of each bucket, a ring
}

type totals struct{ refused, ended, accepted uint64 }

func (w *window) init(length time.Duration, minEnded int, now clock.Instant) {
	w.bucket, w.minEnded = length/parts, uint64(minEnded)
	w.open.Store(w.number(now))
}

// number returns the number of the bucket of an instant, at least parts.
func (w *window) number(at clock.Instant) int64 { return int64(at)/int64(w.bucket) + parts }

// advance opens the bucket of now. Of several callers one does it; the others go on with
// the window as it was.
func (w *window) advance(now clock.Instant) {
	bucket := w.number(now)
	if bucket <= w.open.Load() || !w.mu.TryLock() {
		return
	}
	defer w.mu.Unlock()
	present := w.totals()
	for b := max(w.open.Load()+1, bucket-parts+1); b <= bucket; b++ {
		w.starts[b%parts] = present
	}
	first := bucket - 1
	for first > bucket-parts+1 && present.ended-w.starts[first%parts].ended < w.minEnded {
		first--
	}
	w.setBase(w.starts[first%parts])
	w.open.Store(max(bucket, w.open.Load()))
}

// totals must be called with mu held, or the totals may be of different instants.
func (w *window) totals() totals {
	ended := w.ended.Load() // before accepted: too many of these do no harm
	return totals{w.refused.Load(), ended, w.accepted.Load()}
}

func (w *window) setBase(base totals) {
	w.baseRequests.Store(base.refused + base.ended)
	w.baseEnded.Store(base.ended)
	w.baseAccepted.Store(base.accepted)
}

// forget empties the window.
func (w *window) forget() {
	w.mu.Lock()
	defer w.mu.Unlock()
	present := w.totals()
	for i := range w.starts {
		w.starts[i] = present
	}
	w.setBase(present)
}

// end counts a call that was sent.
func (w *window) end(accepted bool) {
	if accepted {
		w.accepted.Add(1) // first, see totals
	}
	w.ended.Add(1)
}

// refusal returns the share of calls that are to be refused with the multiplier k. It is
// 0 while the window has fewer than minEnded ends.
func (w *window) refusal(k float64) float64 {
	ended := w.ended.Load()
	requests := ended + w.refused.Load()
	accepted := w.accepted.Load()
	accepted -= min(accepted, w.baseAccepted.Load())
	ended -= min(ended, w.baseEnded.Load())
	requests -= min(requests, w.baseRequests.Load())
	over := float64(requests) - k*float64(accepted)
	if over <= 0 || ended < w.minEnded {
		return 0
	}
	return over / float64(requests+1)
}
