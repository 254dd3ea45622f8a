package leap

import "time"

// RecordMany counts so many response times at once.
func (h *Histogram) RecordMany(d time.Duration, n uint64) {
	h.Record(d)
	o, i := place(d)
	h.load(o)[i].Add(n - 1)
}
