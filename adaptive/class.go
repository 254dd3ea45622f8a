package adaptive

import (
	"sync/atomic"

	"github.com/penstock-go/penstock/adaptive/internal/limit"
	"github.com/penstock-go/penstock/rule"
)

// class is the calls of one resource under a rule, or those of all resources that have no class
// of their own. Their usual response time is known apart from that of others: a call that ends
// counts as so much work.
type class struct {
	flight
	_ [cacheLine - 48]byte

	group      atomic.Pointer[group] // by whose limit the calls are let in
	refuses    atomic.Uint32         // a bit for each level of which the class has as many waiting calls as it may
	quickBelow atomic.Int64          // the time.Duration below which a failed call is no measure of how long others take
	lateFrom   atomic.Int64          // the time.Duration from which on a failed call took longer than others that do not fail
	_          [cacheLine - 32]byte

	// overload.mu guards what follows.
	name      string
	usual     limit.Usual  // response time
	reference float64      // what was usual when the test of the group began
	weight    float64      // work of a call, relative to that of others of the group
	share     float64      // usual work, in multiples of an equal share in that of the group; 1 if it is less
	begun     counts       // when the window of the group began
	did       limit.Window // in that window
	before    limit.Window // what it did in the window before
	seen      counts       // when the classes of the group were compared
	steady    counts       // when its response time was last looked at, while nothing is known of it
	reached   counts       // when the limit of the group was, or the class came to it
	recent    recent       // of late
	tested    tested       // while the limit of the group was reached

	steadyThere float64 // calls that were there then

	waiting [levels]waiting // calls
	queued  int             // of all levels
	turn    float64         // virtual time of the group at which the next waiting call is due
	stands  standing        // how long the queue of the class has been half full
}

// referTo returns the response time in seconds that those of a test are compared with: as long as
// nothing is known of any class, that of the first call.
func (c *class) referTo(exit rule.Exit) float64 {
	if c.reference == 0 && !c.group.Load().control.Known() {
		c.reference = max(worked(exit).Seconds(), minResponse)
	}
	return c.reference
}

const minResponse = 1e-6 // seconds
