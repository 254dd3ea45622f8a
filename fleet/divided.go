package fleet

import (
	"time"

	"github.com/penstock-go/penstock/clock"
)

// divided is a limit that instances divide among themselves, see [Share]. The member calls
// its methods with its mutex held: they neither block nor call the member.
type divided interface {
	// use tells the demand, for an announcement. It is called once for each that is sent.
	use(now clock.Instant) Use

	// divide takes the answer to an announcement: all instances, self being this one. It
	// returns after what time the member should announce itself again, at most
	// [AnnounceInterval]; the member takes the shortest of all limits.
	divide(now clock.Instant, self string, fleet Fleet) (again time.Duration)

	// lost says that the backend does not answer any more. count is the number of instances
	// last known, 0 if it never was.
	lost(now clock.Instant, count int)

	// status tells how the limit is.
	status(now clock.Instant) LimitStatus
}

// soon is after what time a member announces a change that others wait for.
const soon = 50 * time.Millisecond
