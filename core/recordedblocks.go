package core

import (
	"math"
	"runtime"
	"sync/atomic"
	"unsafe"

	"github.com/penstock-go/penstock/clock"
)

// The memory of a recorder is blocks, in a ring. A shard is where some goroutines write: it has one block
// at a time, and takes the oldest one of all when that is full. So all blocks are used whichever shards
// are, and calls neither wait for each other nor write to the same cache lines, as a rule.
const (
	blockWords = 504  // with the header a block has 4 KiB less a cache line
	maxWords   = 11   // of a record
	blockBytes = 4096 // about

	minShards, maxShards = 8, 256
	minBlocksOfShard     = 4

	// A word has an instant as the time since that of its block, which begins a little earlier for calls
	// that were interrupted after they had read the clock.
	instantBits  = 35
	blockLag     = 1 << 33 // nanoseconds
	maxSinceBase = 1<<instantBits - 1
)

// recordedBlock is a part of the ring. Who has the lock may use what follows. Nobody waits for it: calls
// write elsewhere instead.
type recordedBlock struct {
	lock  atomic.Uint32
	used  int32          // words
	shard *recorderShard // whose block it is; nil if it is nobody's
	base  clock.Instant
	last  clock.Instant // the latest instant of a record
	words [blockWords]uint64
}

// recorderShard is a cache line, which has the block that is written to.
type recorderShard struct {
	block atomic.Pointer[recordedBlock]
	_     [56]byte
}

// recordedBlocks is the ring.
type recordedBlocks struct {
	shards []recorderShard // a power of two
	blocks []recordedBlock
	next   atomic.Uint64 // the block that is taken next, counted on
	lost   atomic.Int64  // the latest instant of a record that was overwritten
}

func (r *recordedBlocks) init(bytes int) {
	shards := minShards
	for shards < 4*runtime.GOMAXPROCS(0) && shards < maxShards {
		shards *= 2
	}
	r.shards = make([]recorderShard, shards)
	r.blocks = make([]recordedBlock, max(bytes/blockBytes, shards*minBlocksOfShard))
	for i := range r.shards {
		b := &r.blocks[i]
		b.shard = &r.shards[i]
		r.shards[i].block.Store(b)
	}
	r.next.Store(uint64(shards))
	r.lost.Store(math.MinInt64)
}

// open returns a block with space for a record of an instant, locked.
func (r *recordedBlocks) open(now clock.Instant) *recordedBlock {
	// Goroutines have stacks of their own: an address there is as good as a number of theirs.
	var onStack byte
	at := uint64(uintptr(unsafe.Pointer(&onStack))>>11) * golden >> 32 //nolint:gosec // nothing is read there
	shard := &r.shards[at&uint64(len(r.shards)-1)]
	if b := shard.block.Load(); b.lock.CompareAndSwap(0, 1) {
		if b.takes(shard, now) {
			return b
		}
		b.lock.Store(0)
	}
	return r.openAny(at, now)
}

// openAny is open where the block of the first shard is full, or somebody has its lock.
func (r *recordedBlocks) openAny(at uint64, now clock.Instant) *recordedBlock {
	for try := uint64(0); ; try++ {
		shard := &r.shards[(at+try)&uint64(len(r.shards)-1)]
		b := shard.block.Load()
		if !b.lock.CompareAndSwap(0, 1) {
			if try >= uint64(len(r.shards)) {
				runtime.Gosched() // those who have the locks were interrupted
			}
			continue
		}
		if b.takes(shard, now) {
			return b
		}
		b.lock.Store(0)
		r.renew(shard, b, now)
	}
}

// takes says whether a block whose lock the caller has is still that of a shard, and has space for a record of
// an instant.
func (b *recordedBlock) takes(shard *recorderShard, now clock.Instant) bool {
	if b.shard != shard || b.used > blockWords-maxWords || uint64(now-b.base) > maxSinceBase {
		return false
	}
	if now > b.last {
		b.last = now
	}
	return true
}

// renew gives the shard the oldest block in place of one that is full.
func (r *recordedBlocks) renew(shard *recorderShard, full *recordedBlock, now clock.Instant) {
	for {
		b := &r.blocks[r.next.Add(1)%uint64(len(r.blocks))]
		if !b.lock.CompareAndSwap(0, 1) {
			continue // somebody reads it, or writes at the very end of the time that it has
		}
		if b.used > 0 {
			raise(&r.lost, int64(b.last))
		}
		b.shard, b.base, b.last, b.used = shard, now-blockLag, now, 0
		if !shard.block.CompareAndSwap(full, b) {
			b.shard = nil // another call was quicker
		}
		b.lock.Store(0)
		return
	}
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

// each calls fn with a copy of the words of each block that has any.
func (r *recordedBlocks) each(fn func(base clock.Instant, words []uint64)) {
	var words [blockWords]uint64
	for i := range r.blocks {
		b := &r.blocks[i]
		for !b.lock.CompareAndSwap(0, 1) {
			runtime.Gosched()
		}
		used, base := b.used, b.base
		copy(words[:used], b.words[:used])
		b.lock.Store(0)
		if used > 0 {
			fn(base, words[:used])
		}
	}
}
