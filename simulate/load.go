package simulate

import (
	"time"

	"github.com/penstock-go/penstock/rule"
)

// Shape says how something varies from call to call: when the calls of a [Stream] come, which value of an [Attr]
// they have, what they cost, how long a [Service] takes. Each of these says which shapes it can have.
type Shape string

// The shapes.
const (
	// Even spaces the calls of a stream evenly: the k-th comes at From + k/Rate.
	Even Shape = "even"
	// Poisson makes the calls of a stream independent of one another, as those of many users
	// are: the gaps between them are random, 1/Rate on average.
	Poisson Shape = "poisson"

	Cycle Shape = "cycle" // the values of an attribute in turn, beginning with the first
	Zipf  Shape = "zipf"  // the values of an attribute at random, the n-th 1/n times as often as the first

	Fixed    Shape = "fixed"    // all costs are the mean
	Constant Shape = "constant" // all service times are the mean
	Bimodal  Shape = "bimodal"  // service times are one of two at random: as of a cache that misses now and then

	Uniform     Shape = "uniform"     // at random: all values equally often; costs from 0 to twice the mean
	Exponential Shape = "exponential" // at random: service times without memory; many small costs
	Lognormal   Shape = "lognormal"   // at random, with a few that are very long, or costly
)

// Load is the calls of a simulation, and what serves them.
type Load struct {
	// Streams are where calls come from. Of calls that arrive at the same
	// instant, those of an earlier stream come first.
	Streams []Stream

	// Servers serve the calls of their resources. The calls of a resource
	// without a server take the ServiceTime of their stream. Each instance of the service
	// has servers of its own, with all their workers.
	Servers []Server

	// Signals are what the signals of the system show, by time, for rules that read
	// signals; on all instances the same. They do so at the start and then every 250 ms.
	Signals []Signal

	// Recharges add tokens to balances, those of rules with algorithm prepaid.
	Recharges []Recharge

	// Fleet is how instances share the calls, and the limits of rules with the scope of the
	// fleet.
	Fleet Fleet

	// Start is the time of day and date at which the simulation begins, for rules that go by the
	// calendar: a whole second, from 1970 to 2199. The zero value is the beginning of 1970, in UTC.
	Start time.Time

	// Seed sets everything that is random: the gaps of [Poisson] streams, the
	// values of attributes, the service times of servers, which instance gets a call, what
	// happens in the network, and what limiters choose at random. The same load with the same seed always gives the same result.
	Seed uint64
}

// start returns when the simulation begins.
func (l *Load) start() time.Time {
	if l.Start.IsZero() {
		return time.Unix(0, 0)
	}
	return l.Start
}

// Stream is calls of one kind. It has either a Rate or Times.
type Stream struct {
	// Resource is the name of the called resource, at most
	// [rule.MaxNameLength] bytes.
	Resource string

	// Rate is how many calls come in a second, on average where the Shape is
	// random. More than 0, at most a billion.
	Rate float64

	// Times are when the calls come, in any order; a time given twice is two
	// calls. Each from 0 to [MaxDuration].
	Times []time.Duration

	// Shape says how the calls of a Rate are spread over time: [Even], the default, or
	// [Poisson].
	Shape Shape

	// From and Until bound the calls of a Rate: they come at From, or after it,
	// and before Until. From defaults to 0; without Until they come until the
	// simulation ends, which then must be given a duration.
	From, Until time.Duration

	// Tokens is how many tokens each call takes. Defaults to 1.
	Tokens int

	// Cost is what calls cost where that is known only at their end, in place of Tokens. Defaults
	// to nothing that is settled.
	Cost *Cost

	// Origin is who calls. Defaults to nobody in particular.
	Origin string

	// Inbound marks the calls as coming from outside, rather than going out to
	// another service.
	Inbound bool

	// Priority says how important the calls are. Defaults to [rule.PriorityNormal].
	Priority rule.Priority

	// Attrs are the attributes of each call, with different names.
	Attrs []Attr

	// ServiceTime is how long a call takes once it has passed. Defaults to 0;
	// at most [MaxDuration]. Calls that a [Server] serves have none.
	ServiceTime time.Duration

	// Fails is the share of calls that fail when they end, from 0 to 1. They are
	// spread evenly: the k-th call of the stream, counted from 0 and whether or
	// not it passes, fails when ⌊(k+1)·Fails⌋ > ⌊k·Fails⌋. That is computed with
	// the decimal digits of the number: 0.3 of 10 calls are exactly 3.
	Fails float64

	// Timeout is how long a call may take once it has passed. A call that has not
	// ended by then fails at that instant, also when it still waits for a worker
	// of its server; the server does its work nevertheless. A call that ends
	// after exactly this time is in time. Defaults to 0: no timeout.
	Timeout time.Duration

	// Retries is how often a call is tried again when it is refused or fails, at most
	// 10. A retry is a call of its own that arrives RetryDelay after the call
	// before it was refused or ended. It has the same attributes, and the n-th of the
	// k-th call fails if the (k+n)-th call would. Defaults to 0.
	Retries    int
	RetryDelay time.Duration

	// Phases change ServiceTime and Fails over time.
	Phases []Phase
}

// Phase is a part of a stream in which calls take another time or fail more or
// less often. A call belongs to the phase in which it arrives.
type Phase struct {
	// Until is when the phase ends: calls that arrive then belong to the next
	// one. Phases follow each other in time. The last may have 0 and then has no
	// end; calls after an end of the last phase have what the stream says.
	Until time.Duration

	// ServiceTime and Fails are as in [Stream]. Those that are nil default to
	// what the stream says.
	ServiceTime *time.Duration
	Fails       *float64
}
