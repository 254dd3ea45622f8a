package flow

import "github.com/penstock-go/penstock/clock"

// Idle says whether the window could be removed at now: it is empty, and a new one would
// be as cold and have as much carried over, so that it would let no more calls pass, nor
// fewer. Only the fraction beside whole tokens, of a limit like 2.5, would be lost.
func (w *window) Idle(now clock.Instant) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	r := w.catchUp(now)
	w.rollTo(r, r.bucketOf(now))
	return w.before == nil && w.counts.Held(w.counts.OpenBucket()) == 0 && w.log.isEmpty(now) &&
		w.warming.isCold(r) && w.carry.isInitial(w.limit) &&
		w.carry.wanted == 0 && (!r.warmsUp() || w.refused.Load() == 0)
}

// Idle says whether the queue could be removed at now: no call waits, and a new one would
// decide alike on calls that take no more than the limit.
func (q *queue) Idle(now clock.Instant) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.catchUp(now)
	return q.before == nil && q.waiters.head == nil && q.log.isEmpty(now) && q.schedule.isNew(now)
}
