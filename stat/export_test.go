package stat

import "time"

// RecordMany counts so many response times at once, up to where one more is carried.
func (h *Histogram) RecordMany(d time.Duration, n uint32) {
	h.Record(d)
	o, i := place(d)
	h.octave(o)[i].Add(n - 1)
}

// CarryAt is how many of a kind a histogram has to be told to carry them.
const CarryAt = carryAt
