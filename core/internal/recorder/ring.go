package recorder

import (
	"math"
	"runtime"
	"sync/atomic"
	"unsafe"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/internal/splitmix"
)

// The memory of a recorder is blocks, in a ring. A shard is where some goroutines write: it has one block
// at a time, and takes the oldest one of all when that is full. So all blocks are used whichever shards
// are, and calls do not write to the same cache lines, as a rule.
//
// A call claims pairs of words in a block by one atomic addition, and writes them with plain stores: a
// second atomic operation, which says that they are there, would double the cost. So a reader, and who
// renews a block, may come before a call that was interrupted has written its words. That is no harm, as
//   - a block is zeroed when it is renewed, and a claimed pair whose first word is 0 is awaited;
//   - words have a tag, of the use of the block in which they were claimed. Those of an earlier use, which
//     were written late and over others, are found by it, and the recording then begins after them.
//
// A word is read and written as a whole, see store and load in words.go.
const (
	pairsOfBlock = 256 // 4 KiB
	pairShift    = 8   // of the index of a block in that of a pair
	bytesOfBlock = 16 * pairsOfBlock

	minShards, maxShards = 8, 256
	minBlocksOfShard     = 4

	// A word has an instant as the time since that of its block, which begins a little earlier for calls
	// that were interrupted after they had read the clock.
	instantBits  = 35
	blockLag     = 1 << 33 // nanoseconds
	maxSinceBase = 1<<instantBits - 1

	claimShift  = 32 // of the number of pairs, in the state of a block
	useMask     = 1<<claimShift - 1
	noPairs     = (pairsOfBlock + 1) << claimShift
	fullUseBits = 64 - instantBits
	fullUseMask = 1<<fullUseBits - 1
)

// block is a cache line, which says what a part of the ring is used for.
type block struct {
	// The lower half counts the uses of the block, the upper one the pairs that were claimed, and those
	// for which there was no space.
	state atomic.Uint64
	base  atomic.Int64
	full  atomic.Uint64 // the time since the base at which it was full, and the use of the block
	lock  atomic.Uint32 // of who reads or renews the block; nobody waits for it who renews one
	first uint32        // the index of its first pair
	_     [32]byte
}

// shard is a cache line, which has the block that is written to.
type shard struct {
	block atomic.Pointer[block]
	_     [56]byte
}

// ring is the ring.
type ring struct {
	clock  clock.Clock
	shards []shard // a power of two
	blocks []block
	words  []uint64
	next   atomic.Uint64 // the block that is taken next, counted on
	lost   atomic.Int64  // the latest instant of a record that was overwritten, or an instant after that
}

// claimedPairs are for one record.
type claimedPairs struct {
	index uint32 // of the first one
	tag   uint64
	base  clock.Instant
}

func (r *ring) init(bytes int, c clock.Clock) {
	shards := minShards
	for shards < 4*runtime.GOMAXPROCS(0) && shards < maxShards {
		shards *= 2
	}
	r.clock = c
	r.shards = make([]shard, shards)
	r.blocks = make([]block, min(max(bytes/bytesOfBlock, shards*minBlocksOfShard), math.MaxUint32/pairsOfBlock))
	r.words = make([]uint64, 2*pairsOfBlock*len(r.blocks))
	clear(r.words) // so that the system provides the memory now: calls would wait for each page the first time
	for i := range r.blocks {
		r.blocks[i].first = uint32(i * pairsOfBlock)
		r.blocks[i].state.Store(noPairs)
	}
	for i := range r.shards {
		r.shards[i].block.Store(&r.blocks[i]) // which is renewed by the first record
	}
	r.next.Store(uint64(shards) - 1)
	r.lost.Store(math.MinInt64)
}

// claim returns so many pairs for a record of an instant. The caller has to write them, and must not panic
// before it has.
func (r *ring) claim(now clock.Instant, pairs uint64) claimedPairs {
	// Goroutines have stacks of their own: an address there is as good as a number of theirs.
	var onStack byte
	at := uint64(uintptr(unsafe.Pointer(&onStack))>>11) * splitmix.Increment >> 32 //nolint:gosec // nothing is read there
	b := r.shards[at&uint64(len(r.shards)-1)].block.Load()
	state := b.state.Add(pairs << claimShift)
	base := clock.Instant(b.base.Load()) // if it is that of a later use already, nobody reads the words
	if state>>claimShift > pairsOfBlock || uint64(now-base) > maxSinceBase {
		return r.claimNew(at, now, pairs, b, state)
	}
	return claimedPairs{b.first + uint32(state>>claimShift-pairs), tagOf(state), base}
}

// tagOf returns the tag of the words of a use of a block: never 0.
func tagOf(state uint64) uint64 { return state & tagMask }

// claimNew is claim where the block of the shard is full, or is too old for the instant.
func (r *ring) claimNew(at uint64, now clock.Instant, pairs uint64, b *block, state uint64) claimedPairs {
	for {
		r.fill(b, state, pairs)
		s := &r.shards[at&uint64(len(r.shards)-1)]
		if s.block.Load() == b {
			r.renew(s, b, now)
		}
		b = s.block.Load()
		state = b.state.Add(pairs << claimShift)
		base := clock.Instant(b.base.Load())
		if state>>claimShift <= pairsOfBlock && uint64(now-base) <= maxSinceBase {
			return claimedPairs{b.first + uint32(state>>claimShift-pairs), tagOf(state), base}
		}
	}
}

// fill writes to pairs that were claimed, as far as they are in the block, that they are no record.
func (r *ring) fill(b *block, state, pairs uint64) {
	for i := state>>claimShift - pairs; i < min(state>>claimShift, pairsOfBlock); i++ {
		storeWord(&r.words[2*(uint64(b.first)+i)], recordNothing|1<<lengthShift|tagOf(state)<<tagShift)
	}
}

// renew gives the shard the oldest block in place of one.
func (r *ring) renew(s *shard, old *block, now clock.Instant) {
	if state := old.state.Load(); state>>claimShift >= pairsOfBlock {
		since := uint64(r.latest(old) - clock.Instant(old.base.Load()))
		old.full.Store(since<<fullUseBits | state&fullUseMask) // means nothing to a later use
	}
	for {
		b := &r.blocks[r.next.Add(1)%uint64(len(r.blocks))]
		if !b.lock.CompareAndSwap(0, 1) {
			continue // somebody reads or renews it
		}
		r.reuse(b, now)
		s.block.CompareAndSwap(old, b) // if another call was quicker, b is used when its turn has come again
		b.lock.Store(0)
		return
	}
}

// reuse empties a block, whose lock the caller has, for records from about an instant on.
func (r *ring) reuse(b *block, now clock.Instant) {
	use := b.state.Load() & useMask // nobody else changes it
	if claimed := b.state.Swap(noPairs|use) >> claimShift; claimed > 0 && use != 0 {
		latest := r.latest(b)
		if full := b.full.Load(); full&fullUseMask == use&fullUseMask {
			latest = min(latest, clock.Instant(b.base.Load())+clock.Instant(full>>fullUseBits))
		}
		raise(&r.lost, int64(latest))
	}
	empty(r.words[2*b.first:][:2*pairsOfBlock])
	b.base.Store(int64(now - blockLag))
	if use = (use + 1) & useMask; use&tagMask == 0 {
		use++
	}
	b.state.Store(use)
}

// latest returns an instant that no record in the block is after now: calls read the clock before they are
// recorded.
func (r *ring) latest(b *block) (at clock.Instant) {
	base := clock.Instant(b.base.Load())
	at = base + maxSinceBase
	defer func() { _ = recover() }() // a clock of the program has panicked, which is not the end of this call
	return min(at, max(base, r.clock.Now()))
}

// raise raises a number that only grows.
func raise(n *atomic.Int64, to int64) {
	for {
		present := n.Load()
		if to <= present || n.CompareAndSwap(present, to) {
			return
		}
	}
}
