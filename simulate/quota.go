package simulate

import "time"

func (q Quota) present() bool { return q != Quota{} }

// quota is a [Quota] at work.
type quota struct {
	of     Quota
	period int64         // the first that may have time left, or a later one
	used   time.Duration // of it
}

// take takes the time for work that is to begin at now, and returns how long the work takes
// with the times in which the quota is used up.
func (q *quota) take(now, work time.Duration) time.Duration {
	if !q.of.present() {
		return work
	}
	if current := int64(now / q.of.Period); current > q.period {
		q.period, q.used = current, 0
	}
	end := now
	for {
		end = max(end, time.Duration(q.period)*q.of.Period)
		part := min(work, q.of.Time-q.used)
		q.used += part
		end += part
		if work -= part; work == 0 {
			return end - now
		}
		q.period++
		q.used = 0
	}
}
