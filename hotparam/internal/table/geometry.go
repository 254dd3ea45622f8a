package table

import (
	"math"
	"math/bits"

	"github.com/penstock-go/penstock/internal/splitmix"
)

const (
	groupSize = 8 // words of a cache line

	// A word of [Buckets] is parity, 1 bit | tag | class of the value and instant.
	stateBits = 45
	tagBits   = 18
	tagMask   = 1<<tagBits - 1
	parityBit = 1 << (stateBits + tagBits)

	golden = 0x9e3779b97f4a7c15 // 2⁶⁴ divided by the golden ratio
)

// geometry says where a table keeps a value: in one of two groups of slots, under a tag.
//
// Two values that have a tag and one group in common have the other group in common too.
// For the table they are one value: they find the same slot, lock the same stripe and have
// the same cells of the sketch. So no value ever leaves its state for that of another one.
type geometry struct {
	groups     uint64
	stripes    uint64 // a power of two
	slotBits   int    // of a Place, for the number of the slot
	tagInPlace uint64 // a mask: the bits of a tag for which a Place has space
	cellBits   int    // of a Place, for a value without a slot
}

func newGeometry(maxValues int) geometry {
	slots := max(2*groupSize, (maxValues*7+4)/5)
	g := geometry{groups: uint64(slots+groupSize-1) / groupSize, stripes: 8, cellBits: smallPlace}
	for g.stripes < 256 && g.stripes*256 < g.slots() {
		g.stripes *= 2
	}
	g.slotBits = bits.Len64(g.slots())
	width := smallPlace
	if g.slotBits > smallSlots {
		width, g.cellBits = 47, 40
	}
	g.tagInPlace = 1<<min(tagBits, width-g.slotBits) - 1
	return g
}

func (g *geometry) slots() uint64 { return g.groups * groupSize }

// key is a value as a table knows it.
type key struct{ first, second, tag uint64 }

// key returns the key of a value. The mask has as many bits as tags have.
func (g *geometry) key(hash, mask uint64) key {
	tag := max(1, hash&mask) // a word with a tag is never 0
	first, _ := bits.Mul64(hash, g.groups)
	sum, _ := bits.Mul64(tag*golden, g.groups)
	second, below := bits.Sub64(sum, first, 0)
	second += g.groups & -below // modulo the groups; a branch would be mispredicted every other time
	return key{first, second, tag}
}

// candidate is the slot of a group that a new value would get.
type candidate struct {
	slot uint64
	free int   // the slots of the group that no value has
	left int   // those, and the ones whose values may lose them
	idle int64 // how long the value of the slot has been as new; below 0: no slot is to be had
}

// consider makes a slot that no value has, or one whose value has been as new for so long,
// the candidate if it is the best one so far.
func (c *candidate) consider(slot uint64, free bool, idle int64) {
	switch {
	case free && c.free == 0:
		c.slot, c.idle = slot, math.MaxInt64
	case !free && idle > c.idle:
		c.slot, c.idle = slot, idle
	}
	if free {
		c.free++
	}
	if free || idle >= 0 {
		c.left++
	}
}

// lastSlots is how many slots of a value's two groups are its last ones. Nobody gets those who
// has had his share of them: so others find some, however many values he invents. They are an
// eighth of a table, more than two eighths of which are left when maxValues have a slot.
const lastSlots = 2

// enoughFree is how many slots of a value's first group must be free for the second one not
// to be preferred. Most calls then find their value in the first group, and yet only one
// in a hundred values finds no slot when nine of ten are taken.
const enoughFree = 4

// sketchSize is how many cells the sketch has.
func (g *geometry) sketchSize() int { return int(g.slots() / 4) }

// enoughSources is how many cells suffice for dozens of sources that have had their share, not to be
// mistaken for others.
const enoughSources = 1024

// sourceCells is how many cells the sketch of the sources has: enough that dozens of them which have
// had their share are not mistaken for others, also where the table is small.
func (g *geometry) sourceCells() int {
	return min(enoughSources, g.sketchSize()/2) + g.sketchSize()/64
}

// bytes returns the memory of a table that has so many bytes for a slot and for a cell.
func (g *geometry) bytes(slot, cell int) int { return int(g.slots())*slot + g.sketchSize()*cell }

// sourceShare is how many of the last slots one source may have. Those of its values that have no
// slot may pass together as much as one in [geometry.sketchCost] of so many: they leave at least 63 of
// 64 cells of the sketch as they are.
func (g *geometry) sourceShare() int64 { return int64(max(1, g.sketchSize()/64)) }

// sketchCost is how many times what a value without a slot uses counts for its source.
func (g *geometry) sketchCost() int64 { return min(4, g.sourceShare()) }

// choose returns the better one of the candidates of a value's two groups: the first, unless
// it has too few free slots and the second one has more, or has an older one to give. It
// returns false if there is none. The slot is one of the last if the groups have no more than
// [lastSlots].
func choose(first, second candidate) (slot uint64, isLast, ok bool) {
	isLast = first.left+second.left <= lastSlots
	better := second.free > first.free || second.free == first.free && second.idle > first.idle
	if better && first.free < enoughFree {
		first = second
	}
	return first.slot, isLast, first.idle >= 0
}

// cells returns a number from which follow the cells of the sketch for a value.
func (g *geometry) cells(k key) uint64 {
	return splitmix.Mix(min(k.first, k.second)<<32|k.tag) >> (64 - g.cellBits)
}

const (
	smallPlace = 24 // bits of a Place but for the lowest, in a table of up to 2^smallSlots-1 slots
	smallSlots = 20
)

// place returns where a value with a slot is counted: the slot, and as many bits of its tag
// as a place has space for.
func (g *geometry) place(slot, tag uint64) Place {
	return Place((tag&g.tagInPlace<<(g.slotBits&63) | (slot + 1)) << 1)
}

// slot returns the number of the slot of a place.
func (g *geometry) slot(p Place) uint64 { return uint64(p>>1)&(1<<g.slotBits-1) - 1 }

// sketchPlace returns where a value without a slot is counted.
func sketchPlace(cells uint64) Place { return Place(cells<<1 | 1) }

// IsShared says whether the sketch decided, of a call that passed or of one that was refused:
// the value may have been refused for what others used.
func (p Place) IsShared() bool { return p&1 == 1 }

// withoutSlot returns the number that [geometry.cells] gave, if the place is in the sketch.
func (p Place) withoutSlot() (cells uint64, yes bool) { return uint64(p >> 1), p&1 == 1 }
