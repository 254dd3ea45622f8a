package outage

import (
	"math"
	"time"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/internal/sharing/usage"
)

// window is the part of a window that this instance may use while the backend does not
// answer, anew in each window.
type window struct {
	part    float64       // tokens per window
	carry   float64       // what was no whole token of the parts so far
	limit   int64         // tokens of the present window
	renewAt clock.Instant // when the next one begins
}

// newWindow returns a part of the window that a log is of. first is how many tokens are for
// the present window, in which the other instances may have used more or less than their parts.
// Parts of which some are no whole tokens are rounded up in some windows: carry, below 1, says in
// which.
func newWindow(part, first, carry float64, log *usage.PassLog) *window {
	w := &window{part: first, carry: carry}
	w.renew(log)
	w.part = part
	return w
}

// renew begins another window, if it has begun.
func (w *window) renew(log *usage.PassLog) {
	if log.Begin < w.renewAt {
		return
	}
	whole, carry := math.Modf(w.part + w.carry)
	w.limit, w.carry = int64(whole), carry
	w.renewAt = log.Begin.Add(log.Length * time.Duration(len(log.Counts)))
}

// remaining is how many tokens may pass now.
func (w *window) remaining(log *usage.PassLog) int64 { return max(0, w.limit-log.Sum()) }
