package memory

import (
	"math"
	"time"

	"github.com/penstock-go/penstock/fleet"
	"github.com/penstock-go/penstock/internal/calendar"
)

// fixedCount is what passed in a window of the calendar.
type fixedCount struct {
	begin, end int64 // in microseconds since the epoch
	count      int64
}

// askFixedWindow takes all tokens or none from the present window of the calendar. What
// passed in a window of another length, or in one from which the clock has jumped back,
// counts in the present one until that other window ends.
func (s *Store) askFixedWindow(now int64, r *fleet.Request) fleet.Reply {
	limit := int64(math.Floor(r.Terms.Limit))
	if limit == 0 {
		return fleet.Reply{Retry: fleet.Never, State: r.Seen}
	}
	k := key{fixedShape, r.Terms.Key}
	begin, end := calendar.WindowAt(r.Terms.Calendar, r.Terms.Window, time.UnixMicro(now))
	present := fixedCount{begin: begin, end: end}
	var stored fixedCount
	if v := s.value(now, k); v != nil {
		stored = v.fixed
		if stored.end > now {
			present.count = stored.count
		}
	}
	if r.Owed > 0 {
		present.count += min(r.Owed, max(0, limit-present.count))
	}
	left := end - now
	reply := fleet.Reply{Limit: limit, Bucket: begin}
	switch {
	case r.Want < 0:
		if r.BackTo == 0 || r.BackTo == begin {
			present.count = max(0, present.count+r.Want)
		}
	case present.count+r.Want <= limit || r.Want == 0:
		present.count += r.Want
		reply.Granted = r.Want
	case r.Want > limit:
		reply.Retry = fleet.Never
	default:
		reply.Retry = micros(left)
	}
	switch {
	case present.count == 0:
		delete(s.values, k)
	case present != stored:
		s.put(now, k, &value{fixed: present}, left, r.Keep)
	}
	reply.Remaining = limit - present.count
	if present.count > 0 {
		reply.Reset = micros(left)
	}
	return reply
}
