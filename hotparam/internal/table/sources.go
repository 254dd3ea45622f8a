package table

import (
	"math"
	"sync/atomic"
	"time"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/internal/splitmix"
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

const (
	shortBits = 14
	shortMask = 1<<shortBits - 1
)

// short returns a source of few bits.
func (s Source) short() Source {
	if s <= UnknownSource {
		return s
	}
	return max(UnknownSource+1, Source(splitmix.Mix(uint64(s))&shortMask))
}

// lastSlots returns what the last slots are counted for that a source has, apart from what its values
// without a slot use.
func (s Source) lastSlots() Source { return s ^ golden>>1 }

// mayLast says whether a value of a source may have one of the last slots; room says whether a known
// source has not had its share of them.
func (s Source) mayLast(room func(lastSlots Source) bool) bool {
	return s == NoSource || s != UnknownSource && room(s.lastSlots())
}

// Used counts what sources have of a table that forgets in time what its values have used: of its last
// slots, and of its sketch. A cost is the time that it takes to be forgotten; a value has one of most.
// What a source has is forgotten at the same pace. Its methods are safe for concurrent use.
type Used struct {
	instants
	share, sketchCost int64
}

func newUsed(g *geometry) Used {
	return Used{instants{cells: make([]atomic.Int64, g.sourceCells())}, g.sourceShare(), g.sketchCost()}
}

// NewUsed returns what counts what sources have of so many counters that values without a slot share.
func NewUsed(counters int) *Used {
	g := geometry{groups: uint64(counters) * 4 / groupSize} // a quarter of the slots are counters
	u := newUsed(&g)
	u.cells = make([]atomic.Int64, enoughSources)
	return &u
}

// TakeShared counts a cost of a call that such a counter decides on, if the values of its source have not
// had as much as they may.
func (u *Used) TakeShared(from Source, now clock.Instant, cost, most time.Duration) bool {
	if u.overSketch(from, now, int64(cost), int64(most)) > 0 {
		return false
	}
	u.takeSketch(from, now, int64(cost))
	return true
}

// mayLast says whether a value of a source may have one of the last slots.
func (u *Used) mayLast(from Source, now clock.Instant, most int64) bool {
	return from.mayLast(func(of Source) bool { return u.over(of, now, most, most) == 0 })
}

// takeLast counts one of the last slots for a source.
func (u *Used) takeLast(from Source, now clock.Instant, most int64) {
	if from != NoSource {
		u.charge(from.lastSlots(), now, most)
	}
}

// overSketch returns for how long a source may not have a cost in the sketch, because its values
// have had as much as they may; takeSketch counts a cost.
func (u *Used) overSketch(from Source, now clock.Instant, cost, most int64) time.Duration {
	if from == NoSource {
		return 0
	}
	return u.over(from, now, u.inSketch(cost), most)
}

func (u *Used) takeSketch(from Source, now clock.Instant, cost int64) {
	if from != NoSource {
		u.charge(from, now, u.inSketch(cost))
	}
}

func (u *Used) inSketch(cost int64) int64 {
	return min(cost, math.MaxInt64/u.sketchCost) * u.sketchCost
}

func (u *Used) over(of Source, now clock.Instant, cost, most int64) time.Duration {
	return time.Duration(max(0, u.ahead(uint64(of), now)+u.part(cost)-most))
}

// charge counts a cost. Two calls of other values may do so at once, and one of them be forgotten:
// the values are counted exactly.
func (u *Used) charge(of Source, now clock.Instant, cost int64) {
	u.raise(uint64(of), now.Add(time.Duration(u.ahead(uint64(of), now)+u.part(cost))))
}

// part returns for how long a cost counts for a source, which may have it so many times.
func (u *Used) part(cost int64) int64 { return max(1, cost/u.share) }

// Holders counts what sources hold until they give it back: the last places of a table, such as those
// of calls under way. Its methods are safe for concurrent use.
type Holders struct {
	cells []atomic.Int64
	share atomic.Int64
}

// NewHolders returns what counts the last places of a table for so many values.
func NewHolders(maxValues int) *Holders {
	g := newGeometry(maxValues)
	return newHolders(&g)
}

// Resize makes the share of a source that of a table for so many values.
func (h *Holders) Resize(maxValues int) {
	g := newGeometry(maxValues)
	h.share.Store(g.sourceShare())
}

func newHolders(g *geometry) *Holders {
	h := &Holders{cells: make([]atomic.Int64, g.sourceCells())}
	h.share.Store(g.sourceShare())
	return h
}

// MayLast says whether a value of a source may have one of the last places.
func (h *Holders) MayLast(from Source) bool {
	return from.mayLast(func(of Source) bool { return h.of(of) < h.share.Load() })
}

// AddLast counts so many of the last places more for a source, or fewer.
func (h *Holders) AddLast(from Source, places int64) {
	if from != NoSource {
		addTo(h.cells, uint64(from.lastSlots()), places)
	}
}

// addCalls counts so many calls without a place more for a source, or fewer.
func (h *Holders) addCalls(from Source, calls int64) {
	if from != NoSource {
		addTo(h.cells, uint64(from), calls)
	}
}

// of returns what is counted for a source, at least: several sources have the same cells.
func (h *Holders) of(s Source) int64 { return leastOf(h.cells, uint64(s)) }

// leastOf returns what the cells of a key count: at least what was added for it.
func leastOf(cells []atomic.Int64, key uint64) int64 {
	least := cells[cellOf(key, 0, len(cells))].Load()
	for i := 1; i < sketchRows; i++ {
		least = min(least, cells[cellOf(key, i, len(cells))].Load())
	}
	return least
}

func addTo(cells []atomic.Int64, key uint64, n int64) {
	for i := range sketchRows {
		cells[cellOf(key, i, len(cells))].Add(n)
	}
}
