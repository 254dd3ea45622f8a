package fleet

import (
	"time"

	"github.com/penstock-go/penstock/internal/calendar"
)

// Mode says how instances share a limit.
type Mode string

// The modes.
const (
	// ModeLease leases tokens from a bucket that all instances share, some 100 ms ahead of
	// demand. In any time T at most burst + limit·(T + the life of a lease) pass, and what
	// instances owe.
	ModeLease Mode = "lease"

	// ModeWindow leases tokens that count in the present bucket of a window, and end with
	// it: the limit holds over windows that are aligned to buckets, but for what instances
	// owe. That is for each at most one call, or what its even share or what passed of late
	// needs in 10 ms or 1.5 round trips. Buckets should be longer than 10 round trips.
	ModeWindow Mode = "window"

	// ModeAsk asks the backend for each call, which waits for the answer, at most for
	// [Config.Timeout]. It is exact, and for limits of few tokens for each instance.
	ModeAsk Mode = "ask"

	// ModeShare divides the limit by the demand of the instances, which know each other.
	// It changes slowly, and needs no counts in the backend.
	ModeShare Mode = "share"
)

// OnOutage says what a limit does while the backend does not answer. Tokens that were leased
// before are used first, until their lease ends.
type OnOutage string

// What a limit does in an outage.
const (
	OutageLast   OnOutage = "last"   // passes what was granted of late, in tokens per second
	OutageShare  OnOutage = "share"  // passes the limit divided by the number of instances last known
	OutageOpen   OnOutage = "open"   // passes all calls
	OutageClosed OnOutage = "closed" // refuses all calls
)

// Terms are what a limit promises. All instances should have the same terms of a limit: while
// they differ, as during a reload, each instance counts by its own; but of a bucket the least burst counts for
// all, as the time in which it fills, of those by which instances have asked within the last second.
type Terms struct {
	// Key names the limit in the fleet: the kind and the name of the rule, and the resource
	// if the rule has a limit for each.
	Key string

	Limit  float64       // tokens per window, at least 0
	Window time.Duration // at least 1 ms

	// Calendar has the windows of [AskFixedWindow], see rule.Calendar.Compile; nil
	// if they are Window long, from the epoch on. Window is then about as long as one of them.
	Calendar *calendar.Calendar

	// Burst is how many tokens may pass at once after a quiet time; of buckets.
	Burst float64

	// Buckets is the number of parts of a window; 1 for a fixed window. Of ModeWindow.
	Buckets int

	// MaxWait is how far ahead [AskThrottle] may grant.
	MaxWait time.Duration
}

// PerSecond returns the limit in tokens per second.
func (t *Terms) PerSecond() float64 { return t.Limit / t.Window.Seconds() }
