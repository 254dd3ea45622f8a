package flow

import (
	"math"
	"time"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/rule"
)

// Forecast says what becomes of a call that comes at a later instant, see [optional.Forecaster].
func (l *ruleLimiter) Forecast(c rule.Call, at clock.Instant, promised int64) (passes clock.Instant, refused bool) {
	if l.queue != nil {
		var who caller
		l.suppose(&who, &c)
		return l.queue.forecast(l.compiled, c, at, &who)
	}
	if at <= c.Now {
		return c.Now, l.window.Check(l.compiled, c.Now, c.Tokens) == rule.Block
	}
	wanted := c.Tokens
	if !l.compiled.leaves(c.Now, at) { // else what is promised may have come and gone by then
		wanted = int32(min(int64(wanted)+max(0, promised), math.MaxInt32))
	}
	return at, l.window.Check(l.compiled, c.Now, wanted) == rule.Block && l.window.fullUntil(l.compiled, c.Now, wanted) > at
}

// forecast is that of a queue: the call comes behind those that wait already.
func (q *queue) forecast(r *compiledRule, c rule.Call, at clock.Instant, who *caller) (passes clock.Instant, refused bool) {
	at = max(at, c.Now)
	q.mu.Lock()
	defer q.mu.Unlock()
	passAt, decision := q.plan(r, c.Now, c.Tokens, who, endless)
	return max(at, passAt), decision == rule.Block || passAt.Sub(at) > r.rule.MaxWait
}

// leaves says whether what is taken at now may have left the window at a later
// instant.
func (r *compiledRule) leaves(now, later clock.Instant) bool {
	return later >= r.bucketStart(r.bucketOf(now)+int64(r.span))
}

// fullUntil returns when n tokens can pass that exceed what remains at now, if no other
// call comes. A call that has to wait anyway need not wait if it is refused in the end.
// The instant is never too late, but may be too early: it is now if the rule warms up or
// follows a signal.
func (w *window) fullUntil(r *compiledRule, now clock.Instant, n int32) clock.Instant {
	if r.warmsUp() || r.follower != nil || w.compiled.Load() != r {
		return now
	}
	var wait time.Duration
	if n == 1 && w.counts.Remaining() >= 0 {
		wait = time.Duration(w.wait.Load())
	} else {
		w.mu.Lock()
		wait = w.retryAfter(w.compiled.Load(), n, w.counts.Remaining())
		w.mu.Unlock()
	}
	if wait == rule.Never {
		return noDeadline
	}
	if r.rule.Limit != math.Trunc(r.rule.Limit) && r.rule.Limit > 1 {
		wait = min(wait, r.bucket) // a saved token may come before others leave
	}
	return r.bucketStart(r.bucketOf(now)).Add(wait)
}

// noDeadline is an instant after all others.
const noDeadline = clock.Instant(2 * forever)
