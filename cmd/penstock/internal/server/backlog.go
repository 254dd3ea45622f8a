package server

import (
	"sync"
	"sync/atomic"
	"time"
)

const (
	// backlogTarget is how long a request may wait for a processor. Envoy waits 20 ms for an answer by default.
	backlogTarget = 10 * time.Millisecond

	// backlogWindow is for how long requests have to wait longer until fewer are let in: a burst that is
	// answered sooner needs no refusals. backlogLeast is the least number of requests by which that is judged.
	backlogWindow = 100 * time.Millisecond
	backlogLeast  = 5

	// minUnderWay is how many requests may be under way however long they wait: what a processor does in a few
	// milliseconds.
	minUnderWay = 64

	// backlogGrowth is by which part of itself the bound grows in a window without a backlog.
	backlogGrowth = 0.125
)

// backlog bounds the requests under way by how far the server is behind. Requests beyond what its
// processors can do wait for one, each as a goroutine, and so long that all are answered late, however few
// the server lets be under way. So when they have waited longer than the target for a window, on average
// (some are handled at once however many wait), as many are let in as wait about that long. Instants are
// since the server began.
type backlog struct {
	most  int64
	bound atomic.Int64

	mu       sync.Mutex // guards what follows
	begun    time.Duration
	requests int           // that were let in and handled in this window
	waited   time.Duration // all of them together
	peak     int64         // the most requests under way in it
}

// setMost sets how many requests may be under way without a backlog.
func (b *backlog) setMost(most int64) {
	b.most = most
	b.bound.Store(most)
}

// observe takes a request that was let in at an instant and is handled from now on, and how many are under way.
func (b *backlog) observe(admitted, now time.Duration, underWay int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if admitted < b.begun {
		return // by the bound of an earlier window
	}
	b.requests++
	b.waited += now - admitted
	b.peak = max(b.peak, underWay)
	if passed := now - b.begun; passed >= backlogWindow && b.requests >= backlogLeast {
		b.adjust(passed)
		b.begun, b.requests, b.waited, b.peak = now, 0, 0, 0
	}
}

// adjust sets the bound at the end of a window.
func (b *backlog) adjust(passed time.Duration) {
	bound := float64(b.bound.Load())
	if b.waited <= backlogTarget*time.Duration(b.requests) {
		bound += (backlogGrowth*bound + 1) * min(passed.Seconds()/backlogWindow.Seconds(), 100)
	} else {
		wait := b.waited.Seconds() / float64(b.requests)
		bound = min(bound, float64(b.peak)) * min(backlogTarget.Seconds()/wait, 1)
	}
	b.bound.Store(min(max(int64(min(bound, float64(b.most))), minUnderWay), b.most))
}
