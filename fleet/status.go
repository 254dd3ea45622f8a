package fleet

import (
	"time"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/internal/places"
)

// Status tells how a member is.
type Status struct {
	Instance  string
	Connected bool          // the backend has answered, and no outage has begun since
	Since     clock.Instant // of the present state, connected or not; 0 before the first answer
	Err       error         // why the backend does not answer, or does not take announcements; nil if all is well
	Outages   int64         // that have begun
	Latency   time.Duration // how long answers took of late
	Instances int           // of the fleet, this one included, as last known; 0 if never known
	Batches   int64         // sent
	Requests  int64         // sent, in batches
	Lost      int64         // batches that had no answer
	Refusing  int           // limits for which the backend does not count, see [LimitStatus.Err]
	Limits    []LimitStatus // by key: the [MaxUses] with the greatest demand
}

// LimitStatus tells how a limit of the fleet is, as this instance sees it. Rates are tokens
// per second of this instance, of late.
type LimitStatus struct {
	Key      string
	Mode     Mode
	OnOutage OnOutage
	Limit    float64       // of the fleet, tokens per window
	Window   time.Duration // of the calendar, that of the window that is open
	Granted  float64       // what the backend has granted; in an outage, what [OnOutage] lets pass, infinite if all
	Demand   float64       // what calls asked for
	Passed   float64       // what passed

	Remaining int64         // tokens that calls can take now, without the network
	Retry     time.Duration // how long until the backend can grant something; 0 if it has not refused

	// Used is how many tokens of the present window all instances have used, those that they have leased
	// in [ModeWindow] among them, as the backend has told last. It is known if IsCounted; of a balance
	// that says that Remaining is known.
	Used      int64
	IsCounted bool

	Places *PlacesStatus // of a limit on calls under way, whose Window is 0; else nil

	IsBalance bool // nothing flows back, see [AskBalance]: the Window says nothing

	Outage bool          // [OnOutage] is in force
	Since  clock.Instant // of that
	Err    error         // what the backend says to requests of this limit
}

// PlacesStatus is how the places of a limit on calls under way are on this instance.
type PlacesStatus struct {
	places.Status

	InUse   int64 // calls under way
	Waiting int64 // calls that wait for a place
}
