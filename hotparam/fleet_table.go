package hotparam

import (
	"math/bits"
	"sync"
	"sync/atomic"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/hotparam/internal/table"
	"github.com/penstock-go/penstock/internal/sharing/ask"
	"github.com/penstock-go/penstock/internal/sharing/lease"
	"github.com/penstock-go/penstock/internal/splitmix"
	"github.com/penstock-go/penstock/rule"
)

// sharedValue is the limit of a value that this instance shares with the fleet, or a cell:
// the limit of all values that find no slot.
type sharedValue struct {
	key    uint64         // of the value
	owner  *fleetResource // nil for cells
	budget *lease.Budget  // nil in mode ask
	asker  *ask.Asker     // nil otherwise
	cell   int            // the number of the cell, from 1; 0 if it is none

	version atomic.Uint64 // of the rule whose terms it has

	last table.Source // that has the value's slot as one of the last; the mutex of its shard guards it
}

// forget releases the limit if it is as new, and says whether it did.
func (v *sharedValue) forget(now clock.Instant) bool {
	if v.budget != nil {
		return v.budget.Forget(now)
	}
	return v.asker.Forget(now)
}

// isNew says whether forget would release the limit, probably.
func (v *sharedValue) isNew(now clock.Instant) bool { return v.budget != nil && v.budget.IsNew(now) }

func (v *sharedValue) release(now clock.Instant) {
	if v.budget != nil {
		v.budget.Release(now)
	} else {
		v.asker.Release(now)
	}
}

func (v *sharedValue) giveBack(taken clock.Instant, tokens int32) {
	if v.budget != nil {
		v.budget.GiveBack(taken, tokens)
	} else {
		v.asker.GiveBack(taken, tokens)
	}
}

func (v *sharedValue) settle(taken clock.Instant, tokens int32) {
	if v.budget != nil {
		v.budget.Settle(taken, tokens)
	} else {
		v.asker.Settle(taken, tokens)
	}
}

// valueTable is the limits of values, in a fixed number of slots. A value has a slot in one of
// two groups. To find one takes no lock; to add or remove one takes the mutex of a shard, which
// has both groups.
type valueTable struct {
	number uint64 // of tables before it
	shards []valueShard
	groups uint64 // of each shard

	keys   []atomic.Uint64 // with usedSlot; 0: free
	values []atomic.Pointer[sharedValue]

	holders *table.Holders // what sources have of the last slots
}

type valueShard struct {
	sync.Mutex
	closed bool // another table has taken over
	_      [48]byte
}

const (
	slotGroup  = 8   // slots of a group
	shardSpace = 128 // groups of a shard, at least, unless there is only one
	mostShards = 64

	// lastSlots is how many slots of a value's two groups are its last ones: of which a source has its
	// share, as in the tables of an instance. They are more than there, as balances are not shared.
	lastSlots = 4

	noSlot      = -1 // of a value that has none
	needsSource = -2 // of one that may have one, by where its call comes from

	// usedSlot is set in the keys of slots. Keys of values do not have it: see keyMask.
	usedSlot = 1 << ticketShift
)

// newValueTable returns a table that holds so many values of one source, and others in its last slots.
func newValueTable(size int, number uint64) *valueTable {
	groups := max(1, size*7/5/slotGroup)
	shards := min(max(1, groups/shardSpace), mostShards)
	t := &valueTable{number: number, shards: make([]valueShard, shards), groups: uint64(groups / shards)}
	slots := shards * int(t.groups) * slotGroup
	t.keys = make([]atomic.Uint64, slots)
	t.values = make([]atomic.Pointer[sharedValue], slots)
	t.holders = table.NewHolders(size)
	return t
}

// part returns a number below n by the upper bits of a hash.
func part(hash, n uint64) uint64 {
	high, _ := bits.Mul64(hash, n)
	return high
}

// shard returns the shard of a value.
func (t *valueTable) shard(key uint64) *valueShard {
	return &t.shards[part(splitmix.Mix(key), uint64(len(t.shards)))]
}

// placesOf returns the first slots of the two groups of a value.
func (t *valueTable) placesOf(key uint64) [2]uint64 {
	hash := splitmix.Mix(key)
	first := part(hash, uint64(len(t.shards))) * t.groups
	return [2]uint64{
		(first + part(hash*prime1, t.groups)) * slotGroup,
		(first + part(hash*prime2, t.groups)) * slotGroup,
	}
}

// find returns the limit of a value and its slot; nil if it has none.
func (t *valueTable) find(key uint64) (*sharedValue, int) {
	for _, first := range t.placesOf(key) {
		keys := t.keys[first : first+slotGroup : first+slotGroup]
		for i := range keys {
			if keys[i].Load() == key|usedSlot {
				slot := int(first) + i
				if v := t.values[slot].Load(); v != nil && v.key == key {
					return v, slot
				}
			}
		}
	}
	return nil, noSlot
}

// free returns a free slot for a value, and whether it is one of the last; noSlot if there is none. When
// only some of the last are free, it forgets the limits in its groups that are as new, and returns how
// many there were. The mutex of the shard is held.
func (t *valueTable) free(key uint64, now clock.Instant) (slot int, isLast bool, forgotten uint64) {
	places := t.placesOf(key)
	slot, left := t.emptier(places)
	if left > lastSlots {
		return slot, false, 0
	}
	for _, first := range places {
		for slot := first; slot < first+slotGroup; slot++ {
			if v := t.values[slot].Load(); v != nil && v.forget(now) {
				t.remove(int(slot))
				forgotten++
			}
		}
	}
	slot, left = t.emptier(places)
	return slot, left <= lastSlots, forgotten
}

// emptier returns a free slot of the one of two groups that has more of them, and how many both have.
func (t *valueTable) emptier(places [2]uint64) (slot, left int) {
	slot, most := noSlot, 0
	for _, first := range places {
		free, at := 0, noSlot
		for slot := first; slot < first+slotGroup; slot++ {
			if t.values[slot].Load() == nil {
				free, at = free+1, int(slot)
			}
		}
		if left += free; free > most {
			slot, most = at, free
		}
	}
	return slot, left
}

// put puts a limit into a free slot, and remove removes one. The mutex of the shard is held.
func (t *valueTable) put(slot int, v *sharedValue) {
	t.holders.AddLast(v.last, 1)
	t.values[slot].Store(v)
	t.keys[slot].Store(v.key | usedSlot)
}

func (t *valueTable) remove(slot int) {
	v := t.values[slot].Load()
	t.holders.AddLast(v.last, -1)
	v.last = table.NoSource
	t.keys[slot].Store(0)
	t.values[slot].Store(nil)
}

// each calls f for each slot in use, with the mutex of its shard held. Each shard is locked
// once: what was about to be put into it is there.
func (t *valueTable) each(f func(slot int, v *sharedValue)) {
	size := int(t.groups) * slotGroup
	for i := range t.shards {
		t.shards[i].Lock()
		for slot := i * size; slot < (i+1)*size; slot++ {
			if v := t.values[slot].Load(); v != nil {
				f(slot, v)
			}
		}
		t.shards[i].Unlock()
	}
}

// occupied returns how many values have a limit that is not as new.
func (t *valueTable) occupied(now clock.Instant) (count int) {
	for slot := range t.values {
		if v := t.values[slot].Load(); v != nil && !v.isNew(now) {
			count++
		}
	}
	return count
}

// moved returns a table of another size, to which all values move that find a slot there. The
// others are released: the fleet knows what they have used. The table is closed.
func (t *valueTable) moved(size int, now clock.Instant) *valueTable {
	next := newValueTable(size, t.number+1)
	for i := range t.shards {
		t.shards[i].Lock()
		t.shards[i].closed = true
	}
	for slot := range t.values {
		if v := t.values[slot].Load(); v != nil {
			if to, _, _ := next.free(v.key, now); to >= 0 {
				next.put(to, v)
			} else {
				v.release(now)
			}
		}
	}
	for i := range t.shards {
		t.shards[i].Unlock()
	}
	return next
}

// A ticket says which limit a call has taken from. Mostly it is the number of a slot and some
// bits of the key, so that a guard can carry it. Once the program has settled a call, or the
// table has another size, it has the key: see keyTicket. That of a cell has its number.
const (
	cellTicket  = 1 << 61
	carriedBits = 25
)

// slotTicket returns the ticket of a value in a slot.
func (t *valueTable) slotTicket(slot int, key uint64) rule.Ticket {
	return rule.Ticket(uint64(slot)+1) | rule.Ticket(t.check(key))
}

// check returns what tells the key of a ticket from most others.
func (t *valueTable) check(key uint64) uint64 {
	return splitmix.Mix(key) & (1<<carriedBits - 1) &^ (1<<t.slotBits() - 1)
}

func (t *valueTable) slotBits() int { return bits.Len(uint(len(t.values))) }

// valueIn returns the limit of a ticket; nil if its slot was given to another value.
func (t *valueTable) valueIn(ticket rule.Ticket) *sharedValue {
	slot := int(ticket&(1<<t.slotBits()-1)) - 1
	if slot < 0 || slot >= len(t.values) {
		return nil
	}
	if v := t.values[slot].Load(); v != nil && t.slotTicket(slot, v.key) == ticket {
		return v
	}
	return nil
}
