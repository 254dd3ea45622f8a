package fleet

import (
	"math"
	"sync/atomic"

	"github.com/penstock-go/penstock/clock"
)

// Share is the part of a limit that this instance may use by itself, see [ModeShare]. The
// instances announce their demand, and each computes its part. Who decides on calls has a
// limiter of its own, whose limit is Limit. All methods may be called concurrently.
type Share struct {
	limit atomic.Uint64 // the bits of a float64, see Limit
	_     [56]byte

	// What calls asked for: a call writes one of the two.
	passed  atomic.Int64
	refused atomic.Int64
}

// Share returns the part of this instance of a limit. Release ends it.
func (m *Member) Share(terms Terms, onOutage OnOutage, now clock.Instant) *Share {
	return &Share{}
}

// Limit returns the tokens per window that this instance may use now: 0 if none, infinite
// if all calls pass, as [OutageOpen] says.
func (s *Share) Limit() float64 { return math.Float64frombits(s.limit.Load()) }

// Count counts a call that asked for n tokens at now, as demand. A call that was counted and
// takes nothing after all is taken back with -n.
func (s *Share) Count(now clock.Instant, n int32, passed bool) {
	if passed {
		s.passed.Add(int64(n))
	} else {
		s.refused.Add(int64(n))
	}
}

// Change has the limit go on with other terms, of the same key.
func (s *Share) Change(terms Terms, onOutage OnOutage, now clock.Instant) {}

// Status tells how the limit is at now.
func (s *Share) Status(now clock.Instant) LimitStatus { return LimitStatus{Mode: ModeShare} }

// Idle says whether nothing was asked of late.
func (s *Share) Idle(now clock.Instant) bool { return true }

// Release says that nobody will use the share any more.
func (s *Share) Release(now clock.Instant) {}
