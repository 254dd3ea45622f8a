package memory

import (
	"cmp"
	"math"
	"slices"

	"github.com/penstock-go/penstock/fleet"
)

// pass is one call that passed.
type pass struct {
	at int64 // in microseconds
	n  int64 // tokens
}

// passLog is what passed in the last window.
type passLog struct {
	calls   []pass // by time
	charges []pass // what passed before the store was told of it, by time: one for each part of a window
}

// chargeParts is how many parts a window has of which charges are kept apart: so a charge takes a bounded time,
// however many calls have passed since.
const chargeParts = 64

// askSlidingLog takes all tokens or none by a log of all that passed in the last window. A
// pass counts for exactly one window, a charge for up to a part of the window longer.
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
	if v.log.advance(now, window) {
		s.put(now, k, v, window, r.Keep)
	}
	used := v.log.sum()
	if owed := min(r.Owed, limit-used); owed > 0 {
		v.log.charge(now, window, r.Age.Microseconds(), owed)
		s.put(now, k, v, window, r.Keep)
		used += owed
	}

	reply := fleet.Reply{Limit: limit}
	switch {
	case r.Want < 0:
		rest := min(-r.Want, used)
		v.log.calls, rest = takeBack(v.log.calls, rest)
		v.log.charges, _ = takeBack(v.log.charges, rest)
	case r.Want == 0:
	case used+r.Want <= limit:
		v.log.calls = append(v.log.calls, pass{at: now, n: r.Want})
		s.put(now, k, v, window, r.Keep)
		reply.Granted = r.Want
	case r.Want > limit:
		reply.Retry = fleet.Never
	default:
		reply.Retry = micros(v.log.enoughLeftAt(used+r.Want-limit) + window - now)
	}
	reply.Remaining = limit - v.log.sum()
	if last := v.log.last(); last == 0 {
		delete(s.values, k)
	} else {
		reply.Reset = micros(last + window - now)
	}
	return reply
}

// advance forgets what passed before the last window. What is later than now, because the clock has
// jumped back, counts as of now; it says whether there was any.
func (l *passLog) advance(now, window int64) (jumped bool) {
	l.calls, l.charges = recent(l.calls, now-window), recent(l.charges, now-window)
	if l.last() <= now {
		return false
	}
	for i := range l.calls {
		l.calls[i].at = min(l.calls[i].at, now)
	}
	var later int64
	for n := len(l.charges); n > 0 && l.charges[n-1].at > now; n-- {
		later += l.charges[n-1].n
		l.charges = l.charges[:n-1]
	}
	if later > 0 {
		l.calls = append(l.calls, pass{at: now, n: later})
	}
	return true
}

// recent returns the passes after a time.
func recent(log []pass, gone int64) []pass {
	for len(log) > 0 && log[0].at <= gone {
		log = log[1:]
	}
	return log
}

// last is when the last tokens passed, 0 if none did.
func (l *passLog) last() (at int64) {
	for _, log := range [][]pass{l.calls, l.charges} {
		if len(log) > 0 {
			at = max(at, log[len(log)-1].at)
		}
	}
	return at
}

func (l *passLog) sum() (tokens int64) {
	for _, log := range [][]pass{l.calls, l.charges} {
		for _, p := range log {
			tokens += p.n
		}
	}
	return tokens
}

// charge adds tokens that passed some time ago: as of the end of their part of the window, so that they count
// for no less than a window.
func (l *passLog) charge(now, window, age, tokens int64) {
	at, part := now-min(age, window-1), (window+chargeParts-1)/chargeParts
	if at = (at + part - 1) / part * part; at >= now {
		l.calls = append(l.calls, pass{at: now, n: tokens})
		return
	}
	i, known := slices.BinarySearchFunc(l.charges, at, func(p pass, at int64) int { return cmp.Compare(p.at, at) })
	if known {
		l.charges[i].n += tokens
	} else {
		l.charges = slices.Insert(l.charges, i, pass{at: at, n: tokens})
	}
}

// takeBack removes n tokens from the end of a log, or all that it has. It returns how many it did not have.
func takeBack(log []pass, n int64) (kept []pass, rest int64) {
	for len(log) > 0 && n > 0 {
		last := &log[len(log)-1]
		part := min(n, last.n)
		last.n -= part
		n -= part
		if last.n == 0 {
			log = log[:len(log)-1]
		}
	}
	return log, n
}

// enoughLeftAt returns when the pass was with which at least n tokens leave the log, which has as many.
func (l *passLog) enoughLeftAt(n int64) (at int64) {
	calls, charges := l.calls, l.charges
	for n > 0 {
		from := &calls
		if len(calls) == 0 || len(charges) > 0 && charges[0].at < calls[0].at {
			from = &charges
		}
		at = (*from)[0].at
		n -= (*from)[0].n
		*from = (*from)[1:]
	}
	return at
}
