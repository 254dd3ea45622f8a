package server

import (
	"context"
	"sync/atomic"
	"time"
)

const (
	// backlogTarget is how long goroutines may wait for a processor, on average. A request waits several times:
	// to be read, handled and written. Envoy waits 20 ms for an answer by default.
	backlogTarget = 4 * time.Millisecond

	// backlogWindow is how often that is judged, and backlogPatience in how many windows on end they have to
	// wait longer until fewer requests are let in: what a stall of the machine has left is soon answered.
	backlogWindow   = 100 * time.Millisecond
	backlogPatience = 10

	// minUnderWay is how many requests may be under way however long they wait: what a processor does in a few
	// milliseconds.
	minUnderWay = 64

	// backlogGrowth is by which part of itself the bound grows in a window without a backlog.
	backlogGrowth = 0.125

	// backlogCut is the least part of itself to which the bound falls in a window: the next shows what that does.
	backlogCut = 0.5
)

// backlog bounds the requests under way by how far the server is behind. Requests beyond what its
// processors can do wait for one, in the sockets and as goroutines, and so long that all are answered late,
// however few the server lets be under way. So when goroutines wait longer than the target, as many requests
// are let in as wait about that long: to refuse one takes a part of what it takes to handle it.
type backlog struct {
	most  int64
	bound atomic.Int64
	peak  atomic.Int64 // the most requests under way in this window

	// What follows is of the goroutine that calls adjust.
	late   int           // windows on end in which they waited too long
	waited time.Duration // in the window before
}

// setMost sets how many requests may be under way without a backlog.
func (b *backlog) setMost(most int64) {
	b.most = most
	b.bound.Store(most)
}

// admits says whether a request may be let in that is one of so many under way.
func (b *backlog) admits(underWay int64) bool {
	if underWay > b.peak.Load() {
		b.peak.Store(underWay) // one of several at the same time is as good
	}
	return underWay <= b.bound.Load()
}

// follow judges the backlog until the context ends.
func (b *backlog) follow(ctx context.Context, underWay *atomic.Int64) {
	delays := newDelays()
	ticker := time.NewTicker(backlogWindow)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			b.adjust(delays.mean())
			b.peak.Store(underWay.Load())
		}
	}
}

// adjust sets the bound at the end of a window in which goroutines waited for a processor, on average. The
// bound stays while they wait less and less.
func (b *backlog) adjust(waited time.Duration) {
	bound := float64(b.bound.Load())
	falls := waited < b.waited
	b.waited = waited
	if waited <= backlogTarget {
		b.late = 0
		bound += backlogGrowth*bound + 1
	} else {
		b.late++
		limited := b.bound.Load() < b.most
		if (b.late >= backlogPatience || limited) && !falls {
			bound = min(bound, float64(b.peak.Load())) * max(backlogTarget.Seconds()/waited.Seconds(), backlogCut)
		}
	}
	b.bound.Store(min(max(int64(min(bound, float64(b.most))), minUnderWay), b.most))
}
