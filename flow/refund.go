package flow

import (
	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/fleet"
	"github.com/penstock-go/penstock/internal/optional"
	"github.com/penstock-go/penstock/rule"
)

var (
	_ optional.Refunder = (*ruleLimiter)(nil)
	_ optional.Refunder = (*ruleQueue)(nil)
	_ optional.Refunder = (*shareLimiter)(nil)
	_ optional.Refunder = (*askLimiter)(nil)
)

// refund gives back up to n tokens of those that the window holds at now, the oldest first, and
// returns how many.
func (w *window) refund(r *compiledRule, now clock.Instant, n int32) (given int32) {
	r = r.inForce()
	w.mu.Lock()
	defer w.mu.Unlock()
	present := w.compiled.Load()
	if present != r && !r.isBefore(present) {
		w.adopt(present, r, now)
		present = r
	}
	w.rollTo(present, present.bucketOf(now))
	w.close(present)
	last := w.counts.OpenBucket()
	for bucket := last - int64(present.span) + 1; bucket <= last && given < n; bucket++ {
		if part := int32(min(int64(n-given), w.counts.TakenIn(bucket))); part > 0 {
			w.giveBackIn(present, bucket, part)
			given += part
		}
	}
	w.open(present, last)
	return given
}

// refund gives back up to n tokens that are missing in a token bucket at now, and returns how
// many. A throttle gives nothing back, nor does a bucket that warms up: the calls behind have kept
// their distance already.
func (q *queue) refund(now clock.Instant, n int32) (given int32) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.catchUp(now)
	bucket, ok := q.schedule.(*tokenBucket)
	if !ok {
		return 0
	}
	_, missing := bucket.recent(now)
	if given = int32(min(int64(n), missing)); given <= 0 {
		return 0
	}
	bucket.takeBack(turn{tokens: given, undoAt: max(now, bucket.at)})
	if q.log != nil {
		q.log.giveBack(now, int64(given))
	}
	q.promote(now)
	return given
}

// Refund gives back tokens of calls whose tickets are not known. See [optional.Refunder].
func (l *ruleLimiter) Refund(c rule.Call) { l.refund(c) }

func (l *ruleLimiter) refund(c rule.Call) (given int32) {
	switch {
	case l.queue != nil:
		return l.queue.refund(c.Now, c.Tokens)
	case !l.related:
		return l.window.refund(l.compiled, c.Now, c.Tokens)
	}
	return 0
}

// Refund gives back tokens of the share, and counts them no more as demand.
func (l *shareLimiter) Refund(c rule.Call) { l.share.Count(c.Now, -l.refund(c), true) }

// Refund hands tokens back to the backend. It is not known how much calls took of a balance.
func (l *askLimiter) Refund(c rule.Call) {
	if o := l.version.operation(); o != fleet.AskThrottle && o != fleet.AskBalance {
		l.asker.Refund(c.Now, c.Tokens)
	}
}
