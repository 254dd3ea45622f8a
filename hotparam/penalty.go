package hotparam

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/internal/splitmix"
)

const (
	penaltyGroup   = 8  // slots of which a value has one
	penaltyStripes = 64 // mutexes
)

// penalties counts the refusals of values and knows which values are refused outright
// until when. It is a table of fixed size. A value that finds no slot takes that of the
// value with the fewest refusals, never that of one with a penalty. So nobody is refused
// for the refusals of others, and who is refused most is not overlooked.
//
// Asking whether a value has a penalty takes no lock. Counting a refusal takes the mutex
// of a few slots.
type penalties struct {
	keys  []atomic.Uint64 // 0: free
	until []atomic.Int64  // the end of the penalty; written before the key is

	stripes [penaltyStripes]sync.Mutex
	// The mutex of its group guards the rest of a slot, and all writing.
	counts []refusalCount
	groups uint64

	penalty atomic.Pointer[versionedPenalty]
	begun   atomic.Uint64 // penalties so far
}

// refusalCount counts the refusals of one value in aligned buckets.
type refusalCount struct {
	within  time.Duration // how long a window was when they were counted
	bucket  int64         // the last one that counts
	buckets [buckets]uint32
}

func newPenalties(slots int, p Penalty, version uint64) *penalties {
	groups := uint64(1)
	for int(groups)*penaltyGroup < slots {
		groups *= 2
	}
	n := groups * penaltyGroup
	t := &penalties{
		keys: make([]atomic.Uint64, n), until: make([]atomic.Int64, n), counts: make([]refusalCount, n), groups: groups,
	}
	t.configure(p, version)
	return t
}

// versionedPenalty is what a version of the rule says.
type versionedPenalty struct {
	Penalty
	version uint64
}

// configure goes over to a version of the rule, unless a newer one is in force. Penalties
// that have begun end when they would have. A value is counted anew if the time changes
// whose refusals count.
func (p *penalties) configure(to Penalty, version uint64) {
	next := &versionedPenalty{to, version}
	for {
		present := p.penalty.Load()
		if present != nil && present.version >= version || p.penalty.CompareAndSwap(present, next) {
			return
		}
	}
}

// left returns how long a value is refused still; 0 if it is not.
func (p *penalties) left(key uint64, now clock.Instant) time.Duration {
	if slot := p.find(key|1, p.group(key)); slot >= 0 {
		if until := clock.Instant(p.until[slot].Load()); until > now && p.keys[slot].Load() == key|1 {
			return until.Sub(now)
		}
	}
	return 0
}

// lift ends the penalty of a value, whose refusals are counted anew.
func (p *penalties) lift(key uint64) {
	group := p.group(key)
	mu := &p.stripes[group/penaltyGroup%penaltyStripes]
	mu.Lock()
	defer mu.Unlock()
	if slot := p.find(key|1, group); slot >= 0 {
		p.until[slot].Store(0)
		p.counts[slot] = refusalCount{}
	}
}

// group returns the first slot of the group of a value.
func (p *penalties) group(key uint64) int {
	return int(splitmix.Mix(key)&(p.groups-1)) * penaltyGroup
}

// find returns the slot of a value in a group; -1 if it has none.
func (p *penalties) find(key uint64, group int) int {
	for slot := group; slot < group+penaltyGroup; slot++ {
		if p.keys[slot].Load() == key {
			return slot
		}
	}
	return -1
}

// refused counts a refusal of a value, which may begin a penalty.
func (p *penalties) refused(key uint64, now clock.Instant) {
	penalty := p.penalty.Load()
	group := p.group(key)
	key |= 1
	mu := &p.stripes[group/penaltyGroup%penaltyStripes]
	mu.Lock()
	defer mu.Unlock()
	slot := p.find(key, group)
	if slot < 0 {
		if slot = p.replaced(group, now, penalty.Within); slot < 0 {
			return
		}
		p.keys[slot].Store(0)
		p.until[slot].Store(0)
		p.counts[slot] = newRefusalCount(now, penalty.Within)
		p.keys[slot].Store(key)
	}
	if p.until[slot].Load() > int64(now) {
		return // another goroutine has begun the penalty meanwhile
	}
	count := &p.counts[slot]
	count.add(now, penalty.Within)
	if count.total() >= uint64(penalty.After) {
		*count = newRefusalCount(now, penalty.Within)
		p.until[slot].Store(int64(now.Add(penalty.For)))
		p.begun.Add(1)
	}
}

// replaced returns the slot of a group that a new value gets; -1 if all have penalties.
func (p *penalties) replaced(group int, now clock.Instant, within time.Duration) int {
	least, fewest := -1, ^uint64(0)
	for slot := group; slot < group+penaltyGroup; slot++ {
		switch count := &p.counts[slot]; {
		case p.keys[slot].Load() == 0:
			return slot
		case p.until[slot].Load() > int64(now):
		default:
			if total := count.at(now, within); total < fewest {
				least, fewest = slot, total
			}
		}
	}
	return least
}

// running returns how many values have a penalty.
func (p *penalties) running(now clock.Instant) (count int) {
	for slot := range p.until {
		if p.until[slot].Load() > int64(now) {
			count++
		}
	}
	return count
}

func newRefusalCount(now clock.Instant, within time.Duration) refusalCount {
	return refusalCount{within: within, bucket: bucketOf(now, within)}
}

func bucketOf(now clock.Instant, within time.Duration) int64 {
	return int64(uint64(now) / uint64(within/buckets))
}

// add counts a refusal. One that comes late counts in the last bucket.
func (c *refusalCount) add(now clock.Instant, within time.Duration) {
	c.advance(now, within)
	if n := &c.buckets[c.bucket%buckets]; *n < 1<<32-1 {
		*n++
	}
}

// advance clears the buckets that have left the window, all of them if it had another
// length.
func (c *refusalCount) advance(now clock.Instant, within time.Duration) {
	bucket := bucketOf(now, within)
	if c.within != within || bucket-c.bucket >= buckets {
		*c = newRefusalCount(now, within)
	}
	for c.bucket < bucket {
		c.bucket++
		c.buckets[c.bucket%buckets] = 0
	}
}

// at returns the refusals in the window at an instant.
func (c *refusalCount) at(now clock.Instant, within time.Duration) uint64 {
	then := *c
	then.advance(now, within)
	return then.total()
}

func (c *refusalCount) total() (total uint64) {
	for _, n := range c.buckets {
		total += uint64(n)
	}
	return total
}
