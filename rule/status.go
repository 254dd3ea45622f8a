package rule

import (
	"time"

	"github.com/penstock-go/penstock/clock"
)

// Status is the state of a limiter.
type Status struct {
	// State is one of [Spec.States]; "" for kinds without states, and for those rules of other
	// kinds that have none.
	State string

	// Quota is how much may pass in a time, for kinds that limit that; else nil. Adapters
	// write it to the RateLimit fields of answers; metrics and simulations show it as the
	// effective limit.
	Quota *Quota

	// Fleet is how the instance shares the limit with the others of its service, for rules
	// that [Spec.Fleet] says are for all of them; else nil.
	Fleet *FleetStatus

	// Gauges are the present values of [Spec.Gauges], in the same order. NaN stands for
	// one that the rule does not have, which is not shown; so do those that are left out
	// at the end.
	Gauges []float64

	// Notes say in plain words what people should know of the state, such as why calls are
	// refused; at most ten.
	Notes []Note

	// Values are the values of attributes that were called most of late, the most frequent
	// first, at most ten; nil for kinds that do not tell values apart.
	Values []ValueStatus
}

// Note is a sentence about a state, and since when it is true.
type Note struct {
	Since clock.Instant
	Text  string
}

// ValueStatus is the calls with one value of an attribute.
type ValueStatus struct {
	Value   string // for people, perhaps cut or masked
	Passed  uint64 // calls that the rule let pass of late; an estimate
	Refused uint64
}

// Quota is the state of a limit on how much passes in a time.
type Quota struct {
	Limit     float64       // of the rule, tokens per window
	Effective float64       // now, tokens per window: lower than Limit while the rule warms up or follows a signal; infinite if all may pass
	Window    time.Duration // 0 if Prepaid

	// Prepaid says that the limit is a balance, which is only recharged: Limit is what it has at first,
	// and Remaining what is left. It has no window and no rate.
	Prepaid bool

	// Used is how many tokens are taken: of a window those that it has counted, of a bucket those that
	// it lacks of being full, of a balance those that are missing of Limit. Of a limit of the whole fleet
	// it is what all instances have used, as this one was told last; NaN if it was told nothing.
	Used float64

	// Capacity is what Used is a part of: the limit of a window or a balance, the burst of a bucket. It
	// is 0 where nobody knows what is used, as of leases, and of queues that space calls.
	Capacity float64

	// Remaining is how many calls of one token would pass if they came now, one after
	// the other, by waiting as long as the rule lets them. One call more would be
	// refused.
	Remaining int64

	// Reset is how long it takes, if no other call comes, until Remaining grows; 0 if it
	// never does: it is at its highest, or nothing may pass at all.
	Reset time.Duration

	// Unknown says that nobody knows Remaining and Reset here, which are 0: the server of the fleet decides
	// on each call, and has not said what is left.
	Unknown bool
}

// FleetStatus is the recent share of this instance in a limit of the fleet.
type FleetStatus struct {
	Granted float64 // tokens per second that it may use; in an outage, what [Fleet.OnOutage] lets pass, infinite if all
	Demand  float64 // tokens per second that calls ask for
	Outage  bool    // the backend does not answer: the limit goes on as [Fleet.OnOutage] says
}

// Gauge describes a number that limiters of a kind show in status and metrics.
type Gauge struct {
	Name string // in snake case, as in "in_flight"; the metric is penstock_<kind>_<name>
	Help string // what it is, a sentence

	// Counter says that the number only grows while the limiter lives. The name of the
	// metric then ends in _total.
	Counter bool

	// Label and LabelValue tell gauges of one name apart, such as "priority" and "low".
	// Those of one name stand next to each other and have the same Label; they are
	// empty for a gauge that is the only one of its name.
	Label, LabelValue string
}
