package fleet

import (
	"time"

	"github.com/penstock-go/penstock/clock"
)

// passLog counts what passed on this instance in the last window of a limit, by parts of the
// window. The zero value counts nothing. It is guarded by its owner.
type passLog struct {
	length time.Duration // of a part
	begin  clock.Instant // of the present one
	counts []int64       // of the present part, and of those before it
	gone   int64         // of the part that left the window last
}

// maxParts is how many parts a passLog has at most.
const maxParts = 32

// newPassLog returns a log of a window of so many parts. They begin with those of the calendar,
// as those of the store do, until align tells it better.
func newPassLog(window time.Duration, parts int, now clock.Instant) passLog {
	parts = max(1, parts)
	bucket := (window + time.Duration(parts) - 1) / time.Duration(parts)
	perPart := (parts + maxParts - 1) / maxParts
	length := bucket * time.Duration(perPart)
	return passLog{
		length: length, begin: now.Add(-time.Duration(now.Time().UnixNano() % int64(length))),
		counts: make([]int64, (parts+perPart-1)/perPart),
	}
}

// align says that a part begins or ends at an instant.
func (l *passLog) align(at clock.Instant) {
	if l.length == 0 {
		return
	}
	off := at.Sub(l.begin) % l.length // the nearest is meant
	if off > l.length/2 {
		off -= l.length
	} else if off < -l.length/2 {
		off += l.length
	}
	l.begin = l.begin.Add(off)
}

// advance begins the parts that have begun by now.
func (l *passLog) advance(now clock.Instant) {
	if l.length == 0 || now.Sub(l.begin) < l.length {
		return
	}
	begun := now.Sub(l.begin) / l.length
	l.begin = l.begin.Add(begun * l.length)
	l.gone = 0
	kept := max(0, len(l.counts)-int(min(begun, time.Duration(len(l.counts)))))
	if begun <= time.Duration(len(l.counts)) {
		l.gone = l.counts[kept]
	}
	copy(l.counts[len(l.counts)-kept:], l.counts[:kept])
	clear(l.counts[:len(l.counts)-kept])
}

// add counts tokens in the present part; below 0, some that were given back.
func (l *passLog) add(tokens int64) {
	if len(l.counts) > 0 {
		l.counts[0] = max(0, l.counts[0]+tokens)
	}
}

// sum is what passed in the window that ends with the present part.
func (l *passLog) sum() (tokens int64) {
	for _, count := range l.counts {
		tokens += count
	}
	return tokens
}

// leaving is about how much of the part that left the window last is in the window that ends now, if
// that part passed evenly.
func (l *passLog) leaving(now clock.Instant) float64 {
	return float64(l.gone) * max(0, 1-float64(now.Sub(l.begin))/float64(l.length))
}

// isOff says whether the log counts nothing.
func (l *passLog) isOff() bool { return l.length == 0 }

// next is when the next part begins.
func (l *passLog) next() clock.Instant { return l.begin.Add(l.length) }

// empty returns a log of the same parts in which nothing has passed.
func (l *passLog) empty() passLog {
	return passLog{length: l.length, begin: l.begin, counts: make([]int64, len(l.counts))}
}

// resized returns a log of other parts, in which all that has passed counts in the present one.
func (l *passLog) resized(window time.Duration, parts int, now clock.Instant) passLog {
	other := newPassLog(window, parts, now)
	other.add(l.sum())
	return other
}
