package core

import (
	"sync/atomic"

	"github.com/penstock-go/penstock/clock"
)

// Guard stands for one call that was let through. Exit it when the call has
// ended, as a rule with defer.
//
// A Guard is a value and must not be copied once it is in use; hand on a
// pointer to it. The zero Guard, which comes with an error, stands for nothing:
// its methods do nothing.
type Guard struct {
	resource *resource
	checks   *checkedCall // of an engine that has checks
	start    clock.Instant
	failure  error
	exited   atomic.Bool

	wouldBlock *BlockError // by a shadow rule
}

// WouldBlock returns the error with which a shadow rule would have refused the
// call, the first if there are several; nil if none would.
func (g *Guard) WouldBlock() *BlockError { return g.wouldBlock }

// Fail marks the call as failed with err; nil marks nothing. It must not run at
// the same time as Exit, and does nothing after it.
func (g *Guard) Fail(err error) {
	if err != nil {
		g.failure = err
	}
}

// Exit ends the call. Only the first Exit counts, whichever goroutine it comes
// from; further ones do nothing.
func (g *Guard) Exit() {
	if g.resource == nil || g.exited.Swap(true) {
		return
	}
	now := g.resource.engine.clock.Now()
	g.resource.node.Done(g.start, now, g.failure != nil)
	if g.checks != nil {
		g.checks.exit(Outcome{Passed: true, Took: now.Sub(g.start), Err: g.failure})
	}
}
