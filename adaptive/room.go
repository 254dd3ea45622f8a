package adaptive

import (
	"math"
	"time"
)

// room is how many calls may wait, by level. Where the queue is more than half full for
// more than half of the time more calls come than can pass: its room shrinks from a wide one,
// which takes bursts, to one that adds no delay to speak of. It widens again when the
// queue is emptier.
//
// The room of a level, and the time that it has been half full, are about the calls of this
// level and of those that are more important.
type room struct {
	most              [levels]float64       // calls
	half              [levels]time.Duration // how long it has been half full, less how long not: 0 to span
	span              time.Duration         // after which the room has shrunk to the least
	rate              float64               // calls a second that are expected to leave the queue
	longest, shortest time.Duration         // how long calls of a full queue wait
	fresh             time.Duration         // how old the numbers in most are
}

// configure sets what the room depends on: the mean response time of the service when it is
// not busy, the squared coefficient of variation, how many calls leave the queue in a
// second, and a bound on how long they may wait.
func (r *room) configure(baseline, variation, rate float64, maxDelay time.Duration) {
	base := time.Duration(baseline * float64(time.Second))
	r.longest = min(10*base, maxDelay)
	r.shortest = min(base/2, r.longest)
	r.span = max(500*time.Millisecond, time.Duration(50*baseline*max(1, (1+variation)/2)*float64(time.Second)))
	r.rate = rate
	for i := range r.half {
		r.half[i] = min(r.half[i], r.span)
	}
	r.refresh()
}

// refresh computes how many calls may wait.
func (r *room) refresh() {
	r.fresh = 0
	ratio := math.Log2(float64(max(r.shortest, 1)) / float64(max(r.longest, 1)))
	for i := range r.most {
		share := float64(r.half[i]) / float64(r.span)
		r.most[i] = max(1, r.rate*r.longest.Seconds()*math.Exp2(ratio*share))
	}
}

// advance takes the time since the last event, during which so many calls waited, by
// level.
func (r *room) advance(elapsed time.Duration, waiting *[levels]int) {
	if elapsed <= 0 {
		return
	}
	sum, moved := 0, false
	for i := range r.half {
		sum += waiting[i]
		before := r.half[i]
		if float64(sum) >= r.most[i]/2 {
			r.half[i] = min(before+elapsed, r.span)
		} else {
			r.half[i] = max(before-elapsed, 0)
		}
		moved = moved || r.half[i] != before
	}
	if !moved {
		return
	}
	if r.fresh += elapsed; r.fresh > r.span/64 {
		r.refresh()
	}
}

// over says whether more calls come than can pass: the queue has been half full for most of
// the time of late.
func (r *room) over() bool { return r.half[levels-1] >= r.span/10*9 }

// calm says whether no more calls come than can pass: the queue has been emptier than half for
// long.
func (r *room) calm() bool { return r.half[levels-1] <= r.span/4 }
