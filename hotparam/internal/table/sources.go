package table

import (
	"math"
	"sync/atomic"
	"time"

	"github.com/penstock-go/penstock/clock"
)

// Source is where a call comes from, such as the network of its client, as a hash. From each
// source, [geometry.sourceShare] values may have one of the last slots: so who invents values, from
// a few networks, leaves slots to values from elsewhere. Those that find no slot may together pass
// as much as a part of so many values may: so he fills the sketch with little, too.
type Source uint64

const (
	// NoSource is that of calls of which it is not known, nor will be: only what their value
	// has used counts.
	NoSource Source = 0

	// UnknownSource is that of calls of which it can be found out.
	UnknownSource Source = 1
)

// SourceOf returns the source that has a hash.
func SourceOf(hash uint64) Source { return Source(hash | 1<<63) }

// lastSlots returns what the last slots are counted for that a source has, apart from what its values
// without a slot use.
func (s Source) lastSlots() Source { return s ^ golden>>1 }

// mayLast says whether a value of a source may have one of the last slots; room says whether a known
// source has not had its share of them.
func (s Source) mayLast(room func(lastSlots Source) bool) bool {
	return s == NoSource || s != UnknownSource && room(s.lastSlots())
}

// used counts what sources have of a table that forgets in time what its values have used: of its last
// slots, and of its sketch. A cost is the time that it takes to be forgotten; a value has one of most.
// What a source has is forgotten at the same pace. Its methods are safe for concurrent use.
type used struct {
	instants
	share, sketchCost int64
}

func newUsed(g *geometry) used {
	return used{instants{cells: make([]atomic.Int64, g.sourceCells())}, g.sourceShare(), g.sketchCost()}
}

// mayLast says whether a value of a source may have one of the last slots.
func (u *used) mayLast(from Source, now clock.Instant, most int64) bool {
	return from.mayLast(func(of Source) bool { return u.over(of, now, most, most) == 0 })
}

// takeLast counts one of the last slots for a source.
func (u *used) takeLast(from Source, now clock.Instant, most int64) {
	if from != NoSource {
		u.charge(from.lastSlots(), now, most)
	}
}

// overSketch returns for how long a source may not have a cost in the sketch, because its values
// have had as much as they may; takeSketch counts a cost.
func (u *used) overSketch(from Source, now clock.Instant, cost, most int64) time.Duration {
	if from == NoSource {
		return 0
	}
	return u.over(from, now, u.inSketch(cost), most)
}

func (u *used) takeSketch(from Source, now clock.Instant, cost int64) {
	if from != NoSource {
		u.charge(from, now, u.inSketch(cost))
	}
}

func (u *used) inSketch(cost int64) int64 { return min(cost, math.MaxInt64/u.sketchCost) * u.sketchCost }

func (u *used) over(of Source, now clock.Instant, cost, most int64) time.Duration {
	return time.Duration(max(0, u.ahead(uint64(of), now)+u.part(cost)-most))
}

// charge counts a cost. Two calls of other values may do so at once, and one of them be forgotten:
// the values are counted exactly.
func (u *used) charge(of Source, now clock.Instant, cost int64) {
	u.raise(uint64(of), now.Add(time.Duration(u.ahead(uint64(of), now)+u.part(cost))))
}

// part returns for how long a cost counts for a source, which may have it so many times.
func (u *used) part(cost int64) int64 { return max(1, cost/u.share) }
