package adaptive

import (
	"math"
	"time"
)

// queueLimit is how many calls may wait, by level. Where the queue is more than half full for
// more than half of the time more calls come than can pass: its limit falls from a high one,
// which takes bursts, to one that adds no delay to speak of. It rises again when the queue is
// emptier.
//
// The limit of a level, and the time that the queue has been half full for it, are about the
// calls of this level and of those that are more important.
type queueLimit struct {
	most              [levels]float64       // calls
	half              [levels]time.Duration // how long it has been half full, less how long not: 0 to span
	span              time.Duration         // after which the limit has fallen to the least
	rate              float64               // calls a second that are expected to leave the queue
	longest, shortest time.Duration         // how long calls of a full queue wait
	fresh             time.Duration         // how old the numbers in most are
}

// configure sets what the limit depends on: the mean response time of the service when it is
// not busy, the squared coefficient of variation, how many calls leave the queue in a
// second, how many seconds pass until the next call under way ends, which the shortest
// queue lasts, and a bound on how long they may wait.
func (q *queueLimit) configure(baseline, variation, rate, betweenEnds float64, maxDelay time.Duration) {
	base := time.Duration(max(baseline, 2*betweenEnds) * float64(time.Second))
	q.longest = min(10*base, maxDelay)
	q.shortest = min(base/2, q.longest)
	before := q.span
	q.span = max(500*time.Millisecond, time.Duration(50*baseline*max(1, (1+variation)/2)*float64(time.Second)))
	q.rate = rate
	for i := range q.half { // a queue that has been full for most of the time has been so, however long that is now
		q.half[i] = time.Duration(float64(q.half[i]) * float64(q.span) / float64(max(before, 1)))
	}
	q.refresh()
}

// refresh computes how many calls may wait.
func (q *queueLimit) refresh() {
	q.fresh = 0
	ratio := math.Log2(float64(max(q.shortest, 1)) / float64(max(q.longest, 1)))
	for i := range q.most {
		share := float64(q.half[i]) / float64(q.span)
		q.most[i] = max(1, q.rate*q.longest.Seconds()*math.Exp2(ratio*share))
	}
}

// share returns how much work of a class may wait whose queue has been half full for so long,
// if those of so many classes wait: at least one call.
func (q *queueLimit) share(half time.Duration, classes int, weight float64) float64 {
	ratio := float64(max(q.shortest, 1)) / float64(max(q.longest, 1))
	delay := q.longest.Seconds() * math.Pow(ratio, float64(half)/float64(q.span))
	return max(weight, q.rate/float64(max(classes, 1))*delay)
}

// advance takes the time since the last event, during which so many calls waited, by
// level.
func (q *queueLimit) advance(elapsed time.Duration, waiting *[levels]int) {
	if elapsed <= 0 {
		return
	}
	sum, moved := 0, false
	for i := range q.half {
		sum += waiting[i]
		before := q.half[i]
		if float64(sum) >= q.most[i]/2 {
			q.half[i] = min(before+elapsed, q.span)
		} else {
			q.half[i] = max(before-elapsed, 0)
		}
		moved = moved || q.half[i] != before
	}
	if !moved {
		return
	}
	if q.fresh += elapsed; q.fresh > q.span/64 {
		q.refresh()
	}
}

// over says whether more calls come than can pass: the queue has been half full for most of
// the time of late.
func (q *queueLimit) over() bool { return q.half[levels-1] >= q.span/10*9 }

// calm says whether no more calls come than can pass: the queue has been emptier than half for
// long.
func (q *queueLimit) calm() bool { return q.half[levels-1] <= q.span/4 }
