package process

import "github.com/penstock-go/penstock/clock"

// collections is what garbage collections took. The runtime counts a collection when it has
// ended.
type collections struct {
	begun       bool
	busy, total float64 // processor seconds up to the last collection that ended
	took, of    float64 // those of the collections seen last, and all since the ones before
	seen        clock.Instant
	share       float64
}

// GC returns the share of the processor time that garbage collection took, 0 to 1, without
// processors that were idle otherwise. It is that of the time between the last collections
// that have ended, and falls the longer none ends. The first call returns 0.
func (r *Reader) GC(now clock.Instant) (float64, error) {
	if r.gcDue.Due(now) {
		r.gcErr = r.countCollections(now)
	}
	return r.gc.share, r.gcErr
}

func (r *Reader) countCollections(now clock.Instant) error {
	if err := r.fill(r.gcSamples); err != nil {
		return err
	}
	all, idle := r.gcSamples[0].Value.Float64(), r.gcSamples[1].Value.Float64()
	total, processors := r.gcSamples[2].Value.Float64(), float64(r.gcSamples[3].Value.Uint64())
	r.gc.count(now, all-idle, total, processors)
	return nil
}

// count takes the processor seconds of collections and of everything, as the runtime
// counted them when the last collection ended.
func (c *collections) count(now clock.Instant, busy, total, processors float64) {
	switch {
	case !c.begun || total < c.total || busy < c.busy:
		*c = collections{begun: true, busy: busy, total: total, seen: now}
	case total > c.total:
		c.took, c.of, c.seen = busy-c.busy, total-c.total, now
		c.busy, c.total = busy, total
	}
	c.share = 0
	if of := c.of + now.Sub(c.seen).Seconds()*processors; of > 0 {
		c.share = min(c.took/of, 1)
	}
}
