package usage

import (
	"time"

	"github.com/penstock-go/penstock/clock"
)

// Tally is what is used of the limits of a group, in sum. It is guarded by its owner.
type Tally struct {
	Refusing int   // of the limits those for which the store does not count
	Err      error // what it said last
	counted  clock.Instant
	Demand   Average
	Passed   Average
	Granted  Average
}

// NewTally returns a tally that begins at an instant.
func NewTally(now clock.Instant) *Tally { return &Tally{counted: now} }

// tallyMemory is the memory of the averages of a tally.
const tallyMemory = 2 * time.Second

// Add counts what was asked for, has passed and was granted since it was called last, of one
// of the limits. The mutex of the member is held. A tally may be nil: then nothing counts.
func (t *Tally) Add(now clock.Instant, asked, passed, granted int64) {
	if t == nil {
		return
	}
	elapsed := now.Sub(t.counted)
	t.Demand.Add(asked, elapsed, tallyMemory)
	t.Passed.Add(passed, elapsed, tallyMemory)
	t.Granted.Add(granted, elapsed, tallyMemory)
	t.counted = max(t.counted, now)
}

// Refused notes that the store does not count for one of the limits, and accepted that it
// counts again.
func (t *Tally) Refused(err error) {
	if t != nil {
		t.Refusing++
		t.Err = err
	}
}

func (t *Tally) Accepted() {
	if t != nil {
		t.Refusing--
	}
}
