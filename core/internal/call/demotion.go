package call

import (
	"math"

	"github.com/penstock-go/penstock/rule"
)

// A rule that demotes calls, see [rule.Spec.Demotes], is a step like others, of a phase of its own.
// What its limiter refuses for now passes with the lowest priority, and with demotedTicket, which the
// limiter never sees. A call is either within all such rules, and has taken tokens of each, or over one
// of them, and has taken none: what it took of the rules before that one it gives back, and those after
// it are not asked. So the calls that one rule demotes do not use up what another grants.
//
// A call keeps what such a rule has decided when it waits, as it keeps its tickets of queues: else
// calls that wait would count for nothing, and a flood of them would wait before others. If the rule
// that has demoted it is gone meanwhile, it has the priority again with which it came.

// demotedTicket is what a call has of a rule that demotes, if it was demoted.
const demotedTicket = rule.Ticket(math.MaxUint64)
