package flow

import "github.com/penstock-go/penstock/clock"

// Inherit makes a new window, which nobody else uses yet, start with all that a shared
// one holds at now. A resource that shared a limit with others and gets one of its own
// thus cannot pass more in the meantime. The new window is cold.
func (w *Window) Inherit(shared *Window, now clock.Instant) {
	t := w.terms.Load()
	w.copyCounts(shared, now)
	w.update(t, now)
}

func (w *Window) copyCounts(shared *Window, now clock.Instant) {
	shared.mu.Lock()
	defer shared.mu.Unlock()
	t := shared.terms.Load()
	shared.rollTo(t, t.bucketOf(now))
	shared.close(t)
	if shared.before != nil {
		shared.takeOver(t, now)
	}
	bucket := shared.counts.OpenBucket()
	w.counts, w.counted, w.carry = shared.counts.Clone(), shared.counted, shared.carry
	w.log, w.restored, w.restoredOpen, w.shaped = shared.log.clone(), shared.restored, shared.restoredOpen, shared.shaped
	shared.open(t, bucket)

	w.warmUp, w.history = newWarmUpState(t, t.bucketStart(bucket)), limitHistory{}
	fresh := newFractionCarry(w.limitOf(&w.warmUp, &w.history, t, bucket))
	w.carry.wanted = 0 // nobody has asked for it here
	w.carry.limitTo(fresh.saved)
	w.terms.Store(t)
	w.noteRefusals(t)
	w.open(t, bucket)
}

// Inherit makes a new queue go on from the calls that a shared one has let pass, see
// [Window.Inherit]. Calls that wait in the shared one do not count.
func (q *Queue) Inherit(shared *Queue, now clock.Instant) {
	shared.mu.Lock()
	defer shared.mu.Unlock()
	if shared.before != nil {
		shared.takeOver(now)
	}
	t := q.terms
	q.terms, q.pace, q.log = shared.terms, shared.pace.copyAt(now), shared.log.clone()
	q.adopt(t, now)
}

func (b *tokenBucket) copyAt(clock.Instant) pace {
	c := *b
	return &c
}

func (s *leakyBucket) copyAt(now clock.Instant) pace {
	c := *s
	c.warmUp = newWarmUpState(s.terms, now)
	return &c
}

func (z *warmingBucket) copyAt(clock.Instant) pace {
	c := *z
	c.stored = c.costs.Maximum()
	return &c
}
