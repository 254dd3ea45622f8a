package core

import (
	"strings"
	"sync/atomic"
	"unicode/utf8"

	"github.com/penstock-go/penstock/clock"
)

const (
	// refusalLines and stateLines are how many lines a second are logged of refusals and of
	// changes of state, for all resources together.
	refusalLines = 10
	stateLines   = 100

	// loggedBytes is how much of a name is logged.
	loggedBytes = 256
)

// lineBudget bounds how many lines a second are logged: names of resources, of which each
// would have its line, may be chosen by clients. It is safe for concurrent use.
type lineBudget struct {
	logged  atomic.Int64  // the second times countedLines, plus the lines that were logged in it
	skipped atomic.Uint64 // lines that were not logged since the last that was
}

// countedLines is more than the lines of a second.
const countedLines = 1 << 10

// take reports whether a line may be logged at now, of so many a second, and how many were
// not logged before it. Instants that come out of order belong to the latest second. Where a
// clock goes back, the budget follows it.
func (b *lineBudget) take(now clock.Instant, most int64, current func() clock.Instant) (skipped uint64, ok bool) {
	for {
		logged := b.logged.Load()
		second, count := logged/countedLines, logged%countedLines
		if latest := secondOf(now); latest > second || latest < second && secondOf(current()) < second {
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

// loggable returns a name as it is logged: cut, and a copy, for a log may keep it while the
// name may be a part of something larger.
func loggable(name string) string {
	if len(name) <= loggedBytes {
		return strings.Clone(name)
	}
	end := loggedBytes
	for end > loggedBytes-utf8.UTFMax && !utf8.RuneStart(name[end]) {
		end--
	}
	return name[:end] + "…"
}
