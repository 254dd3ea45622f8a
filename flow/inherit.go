package flow

import "github.com/penstock-go/penstock/clock"

// Inherit makes a new window, which is not in use yet, start with all that a shared
// one holds at now. A resource that shared a limit with others and gets one of its own
// thus cannot pass more in the meantime. The new window is cold.
func (w *window) Inherit(shared *window, now clock.Instant) {
	r := w.compiled.Load()
	w.copyCounts(shared, now)
	w.update(r, now)
}

func (w *window) copyCounts(shared *window, now clock.Instant) {
	shared.mu.Lock()
	defer shared.mu.Unlock()
	r := shared.compiled.Load()
	shared.rollTo(r, r.bucketOf(now))
	shared.close(r)
	if shared.before != nil {
		shared.takeOver(r, now)
	}
	bucket := shared.counts.OpenBucket()
	w.counts.Copy(&shared.counts)
	w.counted, w.carry = shared.counted, shared.carry
	w.log, w.shaped = shared.log.clone(), shared.shaped
	shared.open(r, bucket)

	w.warming = newWindowWarming(r, r.bucketStart(bucket))
	fresh := newFractionCarry(w.warming.limitOf(r, bucket))
	w.carry.wanted = 0 // no call has asked for it here
	w.carry.limitTo(fresh.saved)
	w.compiled.Store(r)
	w.noteRefusals(r)
	w.open(r, bucket)
}

// Inherit makes a new queue go on from the calls that a shared one has let pass, see
// window.Inherit. Calls that wait in the shared one do not count.
func (q *queue) Inherit(shared *queue, now clock.Instant) {
	shared.mu.Lock()
	defer shared.mu.Unlock()
	if shared.before != nil {
		shared.takeOver(now)
	}
	r := q.compiled
	q.compiled, q.schedule, q.log = shared.compiled, shared.schedule.copyAt(now), shared.log.clone()
	q.adopt(r, now)
}

func (b *tokenBucket) copyAt(clock.Instant) schedule {
	c := *b
	return &c
}

func (s *leakyBucket) copyAt(now clock.Instant) schedule {
	c := *s
	c.warmUp = newWarmUpState(s.compiled, now)
	return &c
}

func (z *warmingBucket) copyAt(clock.Instant) schedule {
	c := *z
	c.stored = c.costs.Maximum()
	return &c
}
