package core

import (
	"sync/atomic"

	"github.com/penstock-go/penstock/core/internal/call"
)

// Place returns the fencing number of the place that the call has of a limit on calls under way in
// the whole fleet, the first one if there are several; false if it has none, or has ended. A store that remembers
// the highest number it was given, and refuses lower ones, refuses what a call sends whose instance
// was paused for so long that another one has got its place meanwhile. It must not run at the same
// time as Exit.
//
// Each value of a rule of kind hotParam has numbers of its own.
func (g *Guard) Place() (number uint64, ok bool) {
	if g == nil || g.resource == nil || atomic.LoadUint32(&g.state.word)&call.StateMask == call.Exited || g.extras.Passed == nil {
		return 0, false
	}
	record := g.extras.Record
	if record != nil && record.Generation.Load() != g.generation() {
		return 0, false // a copy of the guard has exited
	}
	return g.extras.Passed.Place(record, atomic.LoadUint32(&g.state.word), g.state.rest, g.start)
}
