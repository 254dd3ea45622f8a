package fairqueue

import "math/bits"

// ring sorts tenants by their tags into slots, and finds the first one by the bits of those that are
// not empty. It begins at base: slot (base >> shift) & slotMask is the first one. A tenant whose tag
// is beyond the last slot waits in that, and is placed anew when it is found there. One whose tag
// is below base moves the base down: then some that stand where the last slots are now have higher
// tags than these slots are for, and are placed anew when they are found, too.
//
// Tags are compared by their difference: they may overflow.
type ring struct {
	first []uint32 // tenant of each slot; the earlier one of that is the last one. nil until one is placed
	words [ringSlots / 64]uint64
	full  uint64 // a bit for each word that is not 0
	base  int64  // a multiple of a slot
	shift uint
	count int
}

const (
	ringSlots = 4096
	slotMask  = ringSlots - 1

	// A slot is for an eighth of a mean call. It is made anew when the mean is four times as much,
	// or a quarter.
	slotBits  = 3
	tolerance = 2
)

// sort makes the ring of a group, or one with slots of another width, and places all its tenants.
func (q *Queue[T]) sort(group uint8) {
	first := q.groups[group].ring.first
	clear(first)
	q.groups[group].ring = ring{first: first, shift: q.slotShift()}
	for i := range q.tenants.records {
		if q.tenants.records[i].count > 0 && q.classOf(uint32(i)).group == group {
			q.place(uint32(i))
		}
	}
}

func (q *Queue[T]) slotShift() uint {
	return uint(max(0, log2(q.mean.value)+fraction-slotBits))
}

// ringOf returns the ring in which a tenant stands.
func (q *Queue[T]) ringOf(i uint32) *ring { return &q.groups[q.classOf(i).group].ring }

// place puts a tenant into the slot of its tag, as the last one there.
func (q *Queue[T]) place(i uint32) {
	r, t := q.ringOf(i), &q.tenants.records[i]
	if r.count == 0 {
		if r.first == nil {
			r.first = make([]uint32, ringSlots)
		}
		r.shift = q.slotShift()
		r.base = r.align(t.tag)
	}
	slots := (t.tag - r.base) >> r.shift
	if slots < 0 {
		r.base, slots = r.align(t.tag), 0
	}
	slot := r.index(min(slots, ringSlots-1))
	t.slot = uint16(slot)
	r.count++
	head := r.first[slot]
	if head == 0 {
		r.first[slot] = i
		t.earlier, t.later = i, i
		r.words[slot/64] |= 1 << (slot % 64)
		r.full |= 1 << (slot / 64)
		return
	}
	h := &q.tenants.records[head]
	t.earlier, t.later = h.earlier, head
	q.tenants.records[h.earlier].later = i
	h.earlier = i
}

func (r *ring) align(tag int64) int64 { return tag >> r.shift << r.shift }

// index returns the slot that is so many after the first one.
func (r *ring) index(slots int64) uint64 {
	return (uint64(r.base)>>r.shift + uint64(slots)) & slotMask
}

// take takes a tenant out of the ring.
func (q *Queue[T]) take(i uint32) {
	r, t := q.ringOf(i), &q.tenants.records[i]
	slot := uint64(t.slot)
	r.count--
	if t.later == i {
		r.first[slot] = 0
		if r.words[slot/64] &^= 1 << (slot % 64); r.words[slot/64] == 0 {
			r.full &^= 1 << (slot / 64)
		}
		return
	}
	q.tenants.records[t.earlier].later = t.later
	q.tenants.records[t.later].earlier = t.earlier
	if r.first[slot] == i {
		r.first[slot] = t.later
	}
}

// move places a tenant anew, whose tag has changed.
func (q *Queue[T]) move(i uint32) {
	q.take(i)
	q.enter(i)
}

// enter is place for a tenant that comes after all others of its slot, also those of the other group.
func (q *Queue[T]) enter(i uint32) {
	q.placed++
	q.tenants.records[i].placed = q.placed
	q.place(i)
}

// firstOf returns the tenant of a group whose call is served next. One waits.
func (q *Queue[T]) firstOf(group uint8) uint32 {
	r := &q.groups[group].ring
	if d := int(q.slotShift()) - int(r.shift); d >= tolerance || -d >= tolerance {
		q.sort(group)
	}
	for {
		slots := r.next()
		i := r.first[r.index(slots)]
		switch late := (q.tenants.records[i].tag - r.base) >> r.shift; {
		case late <= slots:
			return i
		case slots == ringSlots-1:
			q.spread(r)
		default:
			q.move(i)
		}
	}
}

// only returns the one tenant that waits, while no ring was made yet.
func (q *Queue[T]) only() uint32 {
	for i := range q.tenants.records {
		if q.tenants.records[i].count > 0 {
			return uint32(i)
		}
	}
	return 0
}

// begin puts the tenants into rings: a second one begins to wait.
func (q *Queue[T]) begin(second uint32) {
	q.sorted = true
	for i := range q.tenants.records {
		if q.tenants.records[i].count > 0 && uint32(i) != second {
			q.enter(uint32(i))
		}
	}
	q.enter(second)
}

// next returns how many slots after the base the first one is that is not empty.
func (r *ring) next() int64 {
	start := r.index(0)
	word, bit := start/64, start%64
	if ahead := r.words[word] >> bit; ahead != 0 {
		return int64(bits.TrailingZeros64(ahead))
	}
	later := r.full &^ (2<<word - 1)
	if later == 0 {
		later = r.full // from the beginning again, perhaps up to the bits of word that are below bit
	}
	found := uint64(bits.TrailingZeros64(later))
	slot := found*64 + uint64(bits.TrailingZeros64(r.words[found]))
	return int64((slot - start) & slotMask)
}

// lastIn returns the tenant with the greatest tag in a ring, as far as the slots tell. One stands there.
func (q *Queue[T]) lastIn(r *ring) uint32 {
	start := r.index(0)
	word, below := start/64, uint64(1)<<(start%64)-1
	found := r.words[word] & below
	for i := 0; found == 0; i++ {
		word = (word - 1) % 64
		if found = r.words[word]; i == 63 {
			found &^= below
		}
	}
	first := r.first[word*64+uint64(bits.Len64(found)-1)]
	return q.tenants.records[first].earlier
}

// spread places all tenants of a ring anew, which wait in the last slot: the base moves on to the least
// tag.
func (q *Queue[T]) spread(r *ring) {
	slot := r.index(ringSlots - 1)
	i := r.first[slot]
	last := q.tenants.records[i].earlier
	r.first[slot], r.words, r.full, r.count = 0, [ringSlots / 64]uint64{}, 0, 0
	for {
		next := q.tenants.records[i].later
		q.place(i)
		if i == last {
			return
		}
		i = next
	}
}
