package flow

import "github.com/penstock-go/penstock/clock"

// Inherit has a window that is new, and that nobody else uses yet, begin with all that
// a shared one holds at now, until that has left: a resource that shared it is not to
// get a second ceiling with a window of its own. It stays as cold as a new one.
func (w *Window) Inherit(shared *Window, now clock.Instant) {
	t := w.terms.Load()
	w.copyCounts(shared, now)
	w.settle(t, now)
}

func (w *Window) copyCounts(shared *Window, now clock.Instant) {
	shared.mu.Lock()
	defer shared.mu.Unlock()
	t := shared.terms.Load()
	shared.roll(t, t.bucketOf(now))
	shared.close(t)
	if shared.before != nil {
		shared.inherit(t, now)
	}
	bucket := shared.counts.OpenBucket()
	w.counts, w.counted, w.credit = shared.counts.Clone(), shared.counted, shared.credit
	w.log, w.restored, w.restoredOpen, w.shaped = shared.log.clone(), shared.restored, shared.restoredOpen, shared.shaped
	shared.open(t, bucket)

	w.cold, w.course = newCold(t, t.bucketStart(bucket)), course{}
	fresh := newCredit(w.ceilingOf(&w.cold, &w.course, t, bucket))
	w.credit.wanted = 0 // nobody has asked for it here
	w.credit.inherit(fresh.saved)
	w.terms.Store(t)
	w.noteRefusals(t)
	w.open(t, bucket)
}

// Inherit is that of [Window], for queues: a new one goes on where the turns that the
// shared one has granted end. Those who wait there have none yet.
func (q *Queue) Inherit(shared *Queue, now clock.Instant) {
	shared.mu.Lock()
	defer shared.mu.Unlock()
	if shared.before != nil {
		shared.inherit(now)
	}
	t := q.terms
	q.terms, q.pace, q.log = shared.terms, shared.pace.copyAt(now), shared.log.clone()
	q.adopt(t, now)
}

func (b *bucket) copyAt(clock.Instant) pace {
	c := *b
	return &c
}

func (s *spacing) copyAt(now clock.Instant) pace {
	c := *s
	c.cold = newCold(s.terms, now)
	return &c
}

func (z *trapezoid) copyAt(clock.Instant) pace {
	c := *z
	c.stored = c.curve.Maximum()
	return &c
}
