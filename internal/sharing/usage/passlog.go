package usage

import (
	"time"

	"github.com/penstock-go/penstock/clock"
)

// PassLog counts what passed on this instance in the last window of a limit, by parts of the
// window. The zero value counts nothing. It is guarded by its owner.
type PassLog struct {
	Length time.Duration // of a part
	Begin  clock.Instant // of the present one
	Counts []int64       // of the present part, and of those before it
	gone   int64         // of the part that left the window last
}

// MaxParts is how many parts a PassLog has at most.
const MaxParts = 32

// NewPassLog returns a log of a window of so many parts. They begin with those of the calendar,
// as those of the store do, until align tells it better.
func NewPassLog(window time.Duration, parts int, now clock.Instant) PassLog {
	parts = max(1, parts)
	bucket := (window + time.Duration(parts) - 1) / time.Duration(parts)
	perPart := (parts + MaxParts - 1) / MaxParts
	length := bucket * time.Duration(perPart)
	return PassLog{
		Length: length, Begin: now.Add(-time.Duration(now.Time().UnixNano() % int64(length))),
		Counts: make([]int64, (parts+perPart-1)/perPart),
	}
}

// Align says that a part begins or ends at an instant.
func (l *PassLog) Align(at clock.Instant) {
	if l.Length == 0 {
		return
	}
	off := at.Sub(l.Begin) % l.Length // the nearest is meant
	if off > l.Length/2 {
		off -= l.Length
	} else if off < -l.Length/2 {
		off += l.Length
	}
	l.Begin = l.Begin.Add(off)
}

// Advance begins the parts that have begun by now.
func (l *PassLog) Advance(now clock.Instant) {
	if l.Length == 0 || now.Sub(l.Begin) < l.Length {
		return
	}
	begun := now.Sub(l.Begin) / l.Length
	l.Begin = l.Begin.Add(begun * l.Length)
	l.gone = 0
	kept := max(0, len(l.Counts)-int(min(begun, time.Duration(len(l.Counts)))))
	if begun <= time.Duration(len(l.Counts)) {
		l.gone = l.Counts[kept]
	}
	copy(l.Counts[len(l.Counts)-kept:], l.Counts[:kept])
	clear(l.Counts[:len(l.Counts)-kept])
}

// Add counts tokens in the present part; below 0, some that were given back.
func (l *PassLog) Add(tokens int64) {
	if len(l.Counts) > 0 {
		l.Counts[0] = max(0, l.Counts[0]+tokens)
	}
}

// Sum is what passed in the window that ends with the present part.
func (l *PassLog) Sum() (tokens int64) {
	for _, count := range l.Counts {
		tokens += count
	}
	return tokens
}

// Leaving is about how much of the part that left the window last is in the window that ends now, if
// that part passed evenly.
func (l *PassLog) Leaving(now clock.Instant) float64 {
	return float64(l.gone) * max(0, 1-float64(now.Sub(l.Begin))/float64(l.Length))
}

// IsOff says whether the log counts nothing.
func (l *PassLog) IsOff() bool { return l.Length == 0 }

// Next is when the next part begins.
func (l *PassLog) Next() clock.Instant { return l.Begin.Add(l.Length) }

// Empty returns a log of the same parts in which nothing has passed.
func (l *PassLog) Empty() PassLog {
	return PassLog{Length: l.Length, Begin: l.Begin, Counts: make([]int64, len(l.Counts))}
}

// Resized returns a log of other parts, in which all that has passed counts in the present one.
func (l *PassLog) Resized(window time.Duration, parts int, now clock.Instant) PassLog {
	other := NewPassLog(window, parts, now)
	other.Add(l.Sum())
	return other
}

// Sum is the sum of counts.
func Sum(counts []int64) (tokens int64) {
	for _, count := range counts {
		tokens += count
	}
	return tokens
}
