package table

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/rule"
)

// Buckets is a table of token buckets or throttles, one 64-bit word per value:
//
//	parity, 1 bit | tag, 18 bits | class, up to 5 bits | instant, 45 bits less the class
//
// The instant is when the value is as new, see [Rate]. A word whose instant has come may be
// dropped or given to another value. That of a value which has come again after it was as
// new is kept for a grace beyond that, which is the longer one of the window and the time
// of a token, or an epoch: at least a sixth of the time in which the fullest bucket of the
// table fills. Otherwise those who keep to their limit would be the first to lose their
// slots to many others. A throttle needs no grace: its values are as new a window after
// they have passed.
//
// What guards what:
//
//   - A word is changed by compare-and-swap only. A call on a value that has a slot does
//     nothing else: it loads the state of the table, the word and the header of its block,
//     in that order, and swaps the word. A refusal loads the word again instead.
//   - The mutex of a value's stripe guards that the value has no second slot: only under
//     it a value is given one, and judged by the sketch. It also keeps the table's version.
//   - The mutex of a block guards its header, and that words appear in it. The header says
//     of which version the words are and in which epoch instants that have come were last
//     dropped from it. A call that finds another version or epoch there first brings the
//     block up to date. So words are always decoded within two epochs of their block's,
//     however long no call came, and need no more bits of time than that.
//   - A bit in returned is a hint: nobody gets more than the limit whatever it says.
//   - A change of the version holds the mutexes of all stripes for as long as it takes to
//     convert the sketch. Words are converted block by block, by the calls that need them
//     and by Activate. The parity of each word changes with that, so that the
//     compare-and-swap of a call with the older version fails.
//
// Locks are taken in the order change, stripe, stripe of the table before, block.
type Buckets struct {
	geometry
	state   atomic.Pointer[bucketState]
	groups  []bucketGroup
	headers []atomic.Uint64 // one for each block

	// returned has a bit for each slot: its value has come again after it was as new.
	returned []atomic.Uint64

	cells   instants
	sources Used
	stripes []stripe
	blocks  []sync.Mutex // block i is guarded by the one at i modulo their number

	change    sync.Mutex              // held by who changes the version
	previous  atomic.Pointer[Buckets] // the table that this one takes over from
	successor *Buckets                // the table that has taken over
	until     atomic.Int64            // while another table takes over: when all that is here is as new
	maxValues int
}

type bucketGroup [groupSize]atomic.Uint64

// stripe is the lock of some of the values, and what was counted under it.
type stripe struct {
	sync.Mutex
	forgotten   uint64
	withoutSlot uint64
	_           [40]byte // a cache line of its own
}

// count adds what was counted under the stripes.
func (s *Stats) count(stripes []stripe) {
	for i := range stripes {
		of := &stripes[i]
		of.Lock()
		s.Forgotten += of.forgotten
		s.WithoutSlot += of.withoutSlot
		of.Unlock()
	}
}

// continues goes on from what was counted under the stripes of another table.
func (s *stripe) continues(others []stripe) {
	var stats Stats
	stats.count(others)
	s.Lock()
	defer s.Unlock()
	s.forgotten += stats.Forgotten
	s.withoutSlot += stats.WithoutSlot
}

// bucketState is a version of the rule in a table. It never changes.
type bucketState struct {
	accepts *Rates        // calls with other rates are stale, or newer; nil if the table is not in use
	rates   *Rates        // of the words in blocks that are up to date
	before  *Rates        // of the words in others
	serial  uint64        // counts the versions; from 1
	parity  uint64        // of the words in blocks that are up to date: parityBit or 0
	since   clock.Instant // when the table went over to these rates
	closed  bool          // another table has taken over
}

const (
	blockGroups = 64 // groups of a block
	blockLocks  = 64
	serialBits  = 24 // of a header; the rest is the epoch
)

// NewBuckets makes a table that holds at least maxValues values at a time, as long as they
// spread evenly. It takes about 15 bytes a value.
func NewBuckets(maxValues int, rates *Rates) *Buckets {
	b := newBuckets(maxValues)
	b.state.Store(&bucketState{accepts: rates, rates: rates, before: rates, serial: 1})
	return b
}

func newBuckets(maxValues int) *Buckets {
	g := newGeometry(maxValues)
	return &Buckets{
		geometry:  g,
		groups:    make([]bucketGroup, g.groups),
		returned:  make([]atomic.Uint64, (g.slots()+63)/64),
		headers:   make([]atomic.Uint64, (g.groups+blockGroups-1)/blockGroups),
		cells:     instants{cells: make([]atomic.Int64, g.sketchSize())},
		sources:   newUsed(&g),
		stripes:   make([]stripe, g.stripes),
		blocks:    make([]sync.Mutex, blockLocks),
		maxValues: maxValues,
	}
}

// Reserve makes a reservation at a value's throttle and returns when the call passes: now or
// later. It is refused if that is later than the rate's MaxWait. The rate must be for a
// [Throttle]. A call of more tokens than the limit, rounded up, never passes.
func (b *Buckets) Reserve(hash uint64, r *Rate, now clock.Instant, tokens int32) (Place, clock.Instant, Outcome) {
	p, wait, outcome := b.TakeOrWait(hash, r, now, tokens, NoSource)
	if outcome != Taken {
		return 0, now, outcome
	}
	return p, now.Add(wait), Taken
}

// TakeOrWait is Take or Reserve, and tells how long the call waits: until its reservation or, if
// it is refused, until such a call passes, as [Buckets.RetryAfter] does. The source is where the
// call comes from, which counts if its value finds no slot.
func (b *Buckets) TakeOrWait(
	hash uint64, r *Rate, now clock.Instant, tokens int32, from Source,
) (Place, time.Duration, Outcome) {
	if int64(tokens) > r.most {
		return 0, rule.Never, Refused
	}
	k := b.key(hash, tagMask)
	state := b.state.Load()
	if state.accepts != r.rates {
		return b.takeSlowly(hash, k, r, now, tokens, from)
	}
	units, header := r.units(now), state.header(r, now)
	for {
		want := state.parity>>stateBits | k.tag
		slot, word, ok := b.findIn(k.first, k.tag, want) // as in find, whose call is 1 ns
		if !ok {
			slot, word, ok = b.findIn(k.second, k.tag, want)
		}
		if !ok || b.headers[slot/(groupSize*blockGroups)].Load() != header || word&r.classMask != r.class {
			return b.takeSlowly(hash, k, r, now, tokens, from)
		}
		ahead := r.ahead(word, units)
		next, pass := r.after(ahead, tokens)
		if !pass {
			if b.word(slot).Load() == word {
				return 0, r.untilPass(next), Refused
			}
			continue
		}
		if b.word(slot).CompareAndSwap(word, r.moved(word, units+uint64(next))) {
			if ahead == 0 {
				b.setReturned(slot)
			}
			return b.place(slot, k.tag), r.wait(next), Taken
		}
	}
}

// untilPass returns how long it takes until a call passes that was refused, because it would
// have moved the instant of its value so far ahead.
func (r *Rate) untilPass(next int64) time.Duration {
	return time.Duration(r.toTime.timesUp(max(0, next-r.top)))
}

// wait returns how long a call waits that moved the instant of its value so far ahead.
func (r *Rate) wait(next int64) time.Duration {
	if r.span == 0 {
		return 0 // a token bucket
	}
	return time.Duration(r.toTime.timesUp(max(0, next-r.span-r.rounds)))
}

// setReturned notes that the value of a slot has come again after it was as new.
func (b *Buckets) setReturned(slot uint64) {
	if bits, bit := &b.returned[slot/64], uint64(1)<<(slot%64); bits.Load()&bit == 0 {
		bits.Or(bit)
	}
}

func (b *Buckets) hasReturned(slot uint64) bool {
	return b.returned[slot/64].Load()>>(slot%64)&1 == 1
}

// graceIf returns for how long a value may keep its slot once it is as new.
func (r *Rate) graceIf(hasReturned bool) int64 {
	if hasReturned {
		return r.grace
	}
	return 0
}

// header returns the header of a block that is up to date.
func (s *bucketState) header(r *Rate, now clock.Instant) uint64 {
	return uint64(now)>>r.epoch<<serialBits | s.serial&(1<<serialBits-1)
}

// moved returns a word with another instant.
func (r *Rate) moved(word, instant uint64) uint64 {
	return word&^r.timeMask | instant&r.timeMask
}

func (b *Buckets) word(slot uint64) *atomic.Uint64 {
	return &b.groups[slot/groupSize][slot%groupSize]
}

// find returns the slot of a value. Want is the parity and the tag.
func (b *Buckets) find(k key, want uint64) (slot, word uint64, ok bool) {
	if slot, word, ok = b.findIn(k.first, k.tag, want); ok {
		return slot, word, ok
	}
	return b.findIn(k.second, k.tag, want)
}

// findIn looks in a group, first at the slot that candidate prefers.
func (b *Buckets) findIn(group, tag, want uint64) (slot, word uint64, ok bool) {
	words := &b.groups[group]
	for i := range uint64(groupSize) {
		at := (tag + i) % groupSize
		if w := words[at].Load(); w>>stateBits == want {
			return group*groupSize + at, w, true
		}
	}
	return 0, 0, false
}

// RetryAfter returns how long it takes until such a call passes if nobody else comes: 0 if
// it would pass now, [rule.Never] if it cannot pass at all.
func (b *Buckets) RetryAfter(hash uint64, r *Rate, now clock.Instant, tokens int32) time.Duration {
	if int64(tokens) > r.most {
		return rule.Never
	}
	next, _ := r.after(b.used(hash, r, now), tokens)
	return r.untilPass(next)
}

// Quota returns how many calls of one token would pass if they came now, and how long it takes until
// there is one more; 0 if there never is.
func (b *Buckets) Quota(hash uint64, r *Rate, now clock.Instant) (remaining int64, reset time.Duration) {
	if r.most == 0 {
		return 0, 0
	}
	ahead := b.used(hash, r, now)
	next, pass := r.after(ahead, 1)
	if pass {
		remaining = 1 + (r.top-next)/r.cost
		next += remaining * r.cost
	}
	if ahead == 0 || ahead+r.cost <= r.span {
		return remaining, 0 // it is at its highest
	}
	return remaining, r.untilPass(next)
}

// Remaining returns how many tokens the bucket of a value holds, less than 0 if it is in
// debt; of a throttle, how many calls of one token would pass within MaxWait.
func (b *Buckets) Remaining(hash uint64, r *Rate, now clock.Instant) float64 {
	if r.most == 0 {
		return 0
	}
	ahead := b.used(hash, r, now)
	if r.span == 0 {
		return float64(r.top-r.lack-ahead) / float64(r.cost)
	}
	first, pass := r.after(ahead, 1)
	if !pass {
		return 0
	}
	return float64(1 + (r.top-first)/r.cost)
}
