package outage

import (
	"math"
	"slices"
	"time"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/internal/sharing/usage"
)

// window is the part of a window that this instance may use while the backend does not
// answer, anew in each window.
//
// Of the window in which an outage begins, the instances have used more or less than their parts. All go over to
// their parts as what they have used leaves the window: one that raised its own before the others have
// lowered theirs would pass beyond the limit, and fleets in overload use a window at about the same time.
type window struct {
	part    float64       // tokens per window
	first   float64       // tokens of the window in which the outage began
	before  usage.PassLog // what had passed then, as far as it is in the present window
	passed  float64       // how much that was at first
	carry   float64       // what was no whole token of the parts so far
	renewAt clock.Instant // when the next window begins
}

// newWindow returns a part of the window that a log is of. first is how many tokens are for
// the present window, in which the other instances may have used more or less than their parts.
// Parts of which some are no whole tokens are rounded up in some windows: carry, below 1, says in
// which.
func newWindow(part, first, carry float64, log *usage.PassLog) *window {
	w := &window{part: part, first: first, carry: carry, before: *log}
	w.before.Counts = slices.Clone(log.Counts)
	if w.before.Sum() == 0 {
		w.before.Add(1) // then the part is its own when the present window is over
	}
	w.passed = float64(w.before.Sum())
	w.renewAt = w.end(log)
	return w
}

// advance brings the part up to now.
func (w *window) advance(now clock.Instant, log *usage.PassLog) {
	w.before.Advance(now)
	if log.Begin >= w.renewAt {
		_, w.carry = math.Modf(w.part + w.carry)
		w.renewAt = w.end(log)
	}
}

func (w *window) end(log *usage.PassLog) clock.Instant {
	return log.Begin.Add(log.Length * time.Duration(len(log.Counts)))
}

// limit is how many tokens are for the window that ends now.
func (w *window) limit() int64 {
	return int64(w.part + (w.first-w.part)*float64(w.before.Sum())/w.passed + w.carry)
}

// remaining is how many tokens may pass now.
func (w *window) remaining(log *usage.PassLog) int64 { return max(0, w.limit()-log.Sum()) }
