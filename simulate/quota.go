package simulate

import (
	"slices"
	"time"
)

func (q Quota) present() bool { return q != Quota{} }

// quota is a [Quota] at work.
type quota struct {
	of     Quota
	period int64         // the first that may have time left, or a later one
	used   time.Duration // of it

	stops    []quotaStop // in which work stood still, by period, that were not over when they were read last
	measures bool        // somebody reads them
}

// quotaStop is the rest of a period in which work stood still because the quota was used up.
type quotaStop struct{ from, to time.Duration }

// take takes the time for work that is to begin at now, and returns how long the work takes
// with the times in which the quota is used up.
func (q *quota) take(now, work time.Duration) time.Duration {
	if !q.of.present() {
		return work
	}
	current := int64(now / q.of.Period)
	if current > q.period {
		q.period, q.used = current, 0
	}
	end := now
	for period := current; period < q.period; period++ { // calls before have used these up
		q.stop(max(now, q.begin(period)), q.begin(period+1))
	}
	for {
		end = max(end, q.begin(q.period))
		part := min(work, q.of.Time-q.used)
		q.used += part
		end += part
		if work -= part; work == 0 {
			return end - now
		}
		q.stop(end, q.begin(q.period+1))
		q.period++
		q.used = 0
	}
}

// begin returns when a period begins.
func (q *quota) begin(period int64) time.Duration { return time.Duration(period) * q.of.Period }

// stop notes that work stands still from a time to the end of its period.
func (q *quota) stop(from, to time.Duration) {
	if !q.measures {
		return
	}
	for i := range slices.Backward(q.stops) {
		if q.stops[i].to == to {
			q.stops[i].from = min(q.stops[i].from, from)
			return
		}
	}
	q.stops = append(q.stops, quotaStop{from, to})
}

// stoodStill returns how long work stood still from a time to another one, the present. It
// is measured from the first call on.
func (q *quota) stoodStill(from, now time.Duration) time.Duration {
	q.measures = true
	var sum time.Duration
	for _, stop := range q.stops {
		sum += max(0, min(stop.to, now)-max(stop.from, from))
	}
	q.stops = slices.DeleteFunc(q.stops, func(s quotaStop) bool { return s.to <= now })
	return sum
}
