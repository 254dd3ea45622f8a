package fleet

import (
	"context"
	"time"

	"github.com/penstock-go/penstock/clock"
)

// Status tells how a member is.
type Status struct {
	Instance  string
	Connected bool          // the backend has answered, and no outage has begun since
	Since     clock.Instant // of the present state, connected or not; 0 before the first answer
	Err       error         // why the backend does not answer, or what it said last to an announcement; nil if all is well
	Outages   int64         // that have begun
	Latency   time.Duration // how long answers took of late
	Instances int           // of the fleet, this one included, as last known; 0 if never known
	Batches   int64         // sent
	Requests  int64         // sent, in batches
	Lost      int64         // batches that had no answer
	Limits    []LimitStatus // by key: the [MaxUses] with the greatest demand
}

// LimitStatus tells how a limit of the fleet is, as this instance sees it. Rates are tokens
// per second of this instance, of late.
type LimitStatus struct {
	Key      string
	Mode     Mode
	OnOutage OnOutage
	Limit    float64       // of the fleet, tokens per Window
	Window   time.Duration //
	Granted  float64       // what the backend has granted
	Demand   float64       // what calls asked for
	Passed   float64       // what passed

	Remaining int64         // tokens that calls could take now, without the network
	Retry     time.Duration // how long until the backend can grant something; 0 if it has not refused

	Outage bool          // [OnOutage] is in force
	Since  clock.Instant // of the outage
	Err    error         // what the backend says to requests of this limit
}

// Status tells how the member is at now.
func (m *Member) Status(now clock.Instant) Status { return Status{Instance: m.config.Instance} }

// Fleet asks the backend for all instances and what they use. Its error is that of the
// backend, or [ErrUnavailable] when the context ends or the timeout passes before.
func (m *Member) Fleet(ctx context.Context) (Fleet, error) {
	return m.config.Backend.Announce(ctx, Instance{ID: m.config.Instance}, true)
}
