package flow

import (
	"math"

	"github.com/penstock-go/penstock/clock"
)

// follow makes the window count what another limiter has let pass. It is called before
// the window is used. The other limiter goes on until the first call comes to the
// window, or until Adopt; from then on its calls get Stale.
func (w *window) follow(before predecessor) {
	w.before = before
	w.compiled.Store(w.compiled.Load().unfollowed()) // the first call adopts its own
}

// takeOver counts what the predecessor has let pass. The window is closed.
func (w *window) takeOver(r *compiledRule, now clock.Instant) {
	log := w.before.handOver(now)
	w.before = nil
	log.reach = max(log.reach, r.reach())
	w.log = log
	opened := max(w.counts.OpenBucket(), r.bucketOf(now))
	w.restore(r, opened)
	if _, ok := log.last(); ok {
		_, fraction := split(r.rule.Limit)
		w.carry.limitTo(log.balance(1, fraction/float64(r.window()), now))
	}
}

// reshape goes over to buckets of another length or number at now. The window is
// closed.
func (w *window) reshape(from, to *compiledRule, now clock.Instant) {
	w.logHeld(from, now)
	w.log.reach = max(w.log.reach, from.reach(), to.reach())
	w.carry.reshape(from, to, w.log.since, now)
	w.restore(to, to.bucketOf(now))
	w.log.trim(now)
}

// restore fills the window with the entries of the log that still count in it.
func (w *window) restore(r *compiledRule, opened int64) {
	w.counts.Resize(int(r.span), opened)
	for _, entry := range w.log.entries {
		w.counts.Put(r.bucketOf(entry.at), entry.tokens)
	}
	w.log.restored, w.log.restoredOpen, w.shaped = opened, w.counts.TakenIn(opened), r.version
	w.counted = w.counts.Close()
}

// logHeld logs what the closed window has counted since it was last restored.
func (w *window) logHeld(r *compiledRule, now clock.Instant) {
	w.beginLog(r)
	open := w.counts.OpenBucket()
	w.logBuckets(r, open-int64(r.span)+1, open, now)
}

// beginLog starts a log of what leaves the window from now on.
func (w *window) beginLog(r *compiledRule) {
	if w.log == nil {
		since := r.bucketStart(w.counts.OpenBucket() - int64(r.span) + 1)
		w.log = &passLog{reach: r.reach(), since: since, restored: never}
	}
}

// logBuckets logs what was counted from the first to the last bucket, up to an instant.
// What was restored is in the log already.
func (w *window) logBuckets(r *compiledRule, first, last int64, until clock.Instant) {
	for bucket := max(first, w.log.restored); bucket <= last; bucket++ {
		tokens := w.counts.TakenIn(bucket)
		if bucket == w.log.restored {
			tokens -= w.log.restoredOpen
		}
		if tokens > 0 {
			w.log.add(min(r.bucketEnd(bucket), until), tokens)
		}
	}
}

// logLeaving logs what leaves the closed window when it moves on to a bucket: a longer
// window of the rule may still count it.
func (w *window) logLeaving(r *compiledRule, bucket int64) {
	open, span, now := w.counts.OpenBucket(), int64(r.span), r.bucketStart(bucket)
	w.logBuckets(r, open-span+1, min(open, bucket-span), now)
	w.log.trim(now)
}

// giveBackLogged returns tokens that passed before the window was last restored, or
// have left it since. The window is closed.
func (w *window) giveBackLogged(r *compiledRule, passed clock.Instant, n int64) {
	if w.log == nil {
		return
	}
	at, returned := w.log.giveBack(passed, n)
	if returned == 0 {
		return
	}
	in, ok := w.counts.Put(r.bucketOf(at), -returned)
	if !ok {
		return
	}
	if in == w.log.restored {
		w.log.restoredOpen -= returned
	}
	if in < w.counts.OpenBucket() { // close does it for the open one
		w.carry.refund(in, r.span, returned)
	}
}

// handOver implements [predecessor].
func (w *window) handOver(now clock.Instant) *passLog {
	w.mu.Lock()
	defer w.mu.Unlock()
	r := w.compiled.Load()
	w.close(r)
	if w.before != nil {
		w.takeOver(r, now)
	}
	w.logHeld(r, now)
	log := w.log
	w.log = nil // the other limiter has it now
	log.reach = max(log.reach, r.reach())
	log.trim(now)
	last := r.unfollowed()
	last.version = math.MaxUint64 // no call brings a newer one
	w.compiled.Store(last)
	w.open(last, w.counts.OpenBucket())
	return log
}

// follow makes the queue count what another limiter has let pass, see window.follow.
func (q *queue) follow(before predecessor) { q.before = before }

// takeOver goes on from what the predecessor has let pass.
func (q *queue) takeOver(now clock.Instant) {
	q.log = q.before.handOver(now)
	q.before = nil
	q.log.reach = max(q.log.reach, q.compiled.reach())
	q.schedule.resume(q.log, now)
}

// handOver implements [predecessor]. Calls that still wait get Stale.
func (q *queue) handOver(now clock.Instant) *passLog {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.before != nil {
		q.takeOver(now)
	}
	q.advance(now)
	q.retired = true
	q.releaseAll()
	log := q.log
	q.log = nil // the other limiter has it now
	if log == nil {
		log = &passLog{since: now}
		if at, tokens := q.schedule.recent(now); tokens > 0 {
			log.add(at, tokens)
		}
	}
	log.reach = max(log.reach, q.compiled.reach())
	log.trim(now)
	return log
}
