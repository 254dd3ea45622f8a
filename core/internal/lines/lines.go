// Package lines bounds what is logged: how many lines a second, and how much of a name.
package lines

import (
	"strings"
	"sync/atomic"
	"time"
	"unicode/utf8"

	"github.com/penstock-go/penstock/clock"
)

// MaxBytes is how much of a name is logged.
const MaxBytes = 256

// Budget bounds how many lines a second are logged: names of resources, of which each
// would have its line, may be chosen by clients. It is safe for concurrent use.
type Budget struct {
	logged  atomic.Int64  // the second times countedLines, plus the lines that were logged in it
	skipped atomic.Uint64 // lines that were not logged since the last that was
}

// countedLines is more than the lines of a second.
const countedLines = 1 << 10

// Take reports whether a line may be logged at now, of so many a second, and how many were
// not logged before it. Instants that come out of order belong to the latest second. Where a
// clock goes back, the budget follows it.
func (b *Budget) Take(now clock.Instant, most int64, current func() clock.Instant) (skipped uint64, ok bool) {
	for {
		logged := b.logged.Load()
		second, count := logged/countedLines, logged%countedLines
		if latest := SecondOf(now); latest > second || latest < second && SecondOf(current()) < second {
			second, count = latest, 0
		}
		if count >= most {
			b.skipped.Add(1)
			return 0, false
		}
		if b.logged.CompareAndSwap(logged, second*countedLines+count+1) {
			return b.skipped.Swap(0), true
		}
	}
}

// Cut returns a name as it is logged: cut, and a copy, for a log may keep it while the
// name may be a part of something larger.
func Cut(name string) string {
	if len(name) <= MaxBytes {
		return strings.Clone(name)
	}
	end := MaxBytes
	for end > MaxBytes-utf8.UTFMax && !utf8.RuneStart(name[end]) {
		end--
	}
	return name[:end] + "…"
}

// SecondOf returns the calendar second of an instant.
func SecondOf(at clock.Instant) int64 { return int64(at) / int64(time.Second) }
