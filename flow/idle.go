package flow

import "github.com/penstock-go/penstock/clock"

// Idle says whether the window could be forgotten at now: it is empty, and one made
// anew would be as cold and have as much saved, so that it would let no more calls pass,
// nor fewer. Only of tokens saved beside whole ones, of a ceiling like 2.5, a new one
// has none yet.
func (w *Window) Idle(now clock.Instant) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	t := w.terms.Load()
	w.roll(t, t.bucketOf(now))
	return w.before == nil && w.counts.Held(w.counts.OpenBucket()) == 0 && w.log.isEmpty(now) &&
		w.cold.isStoneCold(t) && w.course.isLevel() && w.credit.isNew(w.ceiling) &&
		w.credit.wanted == 0 && (!t.warmsUp() || w.refused.Load() == 0)
}

// Idle says whether the queue could be forgotten at now: nobody waits, and one
// made anew would treat calls that take no more than the limit no differently.
func (q *Queue) Idle(now clock.Instant) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.before == nil && q.line.head == nil && q.log.isEmpty(now) && q.pace.isNew(now)
}
