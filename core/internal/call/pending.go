package call

import (
	"sync/atomic"

	"github.com/penstock-go/penstock/internal/optional"
	"github.com/penstock-go/penstock/rule"
)

// PendingCalls counts the calls that have taken of a limit which several resources share, but may
// give that back, because they have to ask other rules first. The upper half of the word counts how
// many there have been.
type PendingCalls struct{ word atomic.Uint64 }

// begin notes that a call is about to take what it may give back. end must follow. A nil
// PendingCalls notes nothing.
func (p *PendingCalls) begin() {
	if p != nil {
		p.word.Add(1<<32 + 1)
	}
}

// end notes that the call keeps what it took, or has given it back.
func (p *PendingCalls) end() {
	if p != nil {
		p.word.Add(^uint64(0))
	}
}

// any says whether a call that the limiter refuses may be refused because of one that is pending: unless
// it is refused while none is.
func (p *PendingCalls) any(limiter optional.Forecaster, call rule.Call) bool {
	before := p.word.Load()
	if uint32(before) != 0 || before == 0 { // there is one, or never was
		return before != 0
	}
	_, refused := limiter.Forecast(call, call.Now, 0)
	return !refused || p.word.Load() != before
}

// MaxTries is how often a call that would be refused looks again while others hold
// tokens that they may give back: until those have gone on, unless the scheduler keeps
// one of them from it for very long.
const MaxTries = 1000
