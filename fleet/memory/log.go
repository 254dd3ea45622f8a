package memory

import (
	"math"
	"slices"

	"github.com/penstock-go/penstock/fleet"
)

// pass is one call that passed.
type pass struct {
	at int64 // in microseconds
	n  int64 // tokens
}

// askSlidingLog takes all tokens or none by a log of all that passed in the last window. A
// pass counts for exactly one window.
func (s *Store) askSlidingLog(now int64, r *fleet.Request) fleet.Reply {
	limit := int64(math.Floor(r.Terms.Limit))
	if limit == 0 {
		return fleet.Reply{Retry: fleet.Never, State: r.Seen}
	}
	k := key{logShape, r.Terms.Key}
	window := r.Terms.Window.Microseconds()
	v := s.value(now, k)
	if v == nil {
		v = &value{}
	}
	if n := len(v.log); n > 0 && v.log[n-1].at > now { // the clock has jumped back
		s.put(now, k, v, window, r.Keep)
	}
	v.log = recent(v.log, now, window)
	used := sum(v.log)
	if owed := min(r.Owed, limit-used); owed > 0 {
		if v.log = insert(v.log, pass{at: now - min(r.Age.Microseconds(), window-1), n: owed}, now-window); sum(v.log) > used {
			s.put(now, k, v, window, r.Keep)
		}
		used = sum(v.log)
	}

	reply := fleet.Reply{Limit: limit}
	switch {
	case r.Want < 0:
		v.log = takeBack(v.log, -r.Want)
	case r.Want == 0:
	case used+r.Want <= limit:
		v.log = append(v.log, pass{at: now, n: r.Want})
		s.put(now, k, v, window, r.Keep)
		reply.Granted = r.Want
	case r.Want > limit:
		reply.Retry = fleet.Never
	default:
		reply.Retry = micros(enoughLeftAt(v.log, used+r.Want-limit) + window - now)
	}
	reply.Remaining = limit - sum(v.log)
	if len(v.log) == 0 {
		delete(s.values, k)
	} else {
		reply.Reset = micros(v.log[len(v.log)-1].at + window - now)
	}
	return reply
}

// recent returns the passes of the last window. Those that are later than now, because the
// clock has jumped back, count as of now.
func recent(log []pass, now, window int64) []pass {
	for len(log) > 0 && log[0].at <= now-window {
		log = log[1:]
	}
	for i := range log {
		log[i].at = min(log[i].at, now)
	}
	return log
}

func sum(log []pass) (tokens int64) {
	for _, p := range log {
		tokens += p.n
	}
	return tokens
}

// maxMoved is how many passes a pass may be put before that is older.
const maxMoved = 100

// insert adds a pass by its time, but not before more than maxMoved others: then it counts for
// longer, and as many tokens less. What was at gone does not count any more.
func insert(log []pass, p pass, gone int64) []pass {
	at := len(log)
	for at > 0 && log[at-1].at > p.at {
		if len(log)-at == maxMoved {
			later := log[at-1].at
			p.n = int64(math.Floor(float64(p.n) * float64(p.at-gone) / float64(later-gone)))
			p.at = later
			break
		}
		at--
	}
	if p.n == 0 {
		return log
	}
	return slices.Insert(log, at, p)
}

// takeBack removes n tokens from the end of a log.
func takeBack(log []pass, n int64) []pass {
	for len(log) > 0 && n > 0 {
		last := &log[len(log)-1]
		part := min(n, last.n)
		last.n -= part
		n -= part
		if last.n == 0 {
			log = log[:len(log)-1]
		}
	}
	return log
}

// enoughLeftAt returns when the pass was with which at least n tokens leave the log.
func enoughLeftAt(log []pass, n int64) int64 {
	for _, p := range log {
		if n -= p.n; n <= 0 {
			return p.at
		}
	}
	return log[len(log)-1].at
}
