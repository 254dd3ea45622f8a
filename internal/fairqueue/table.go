package fairqueue

// table has the records of the tenants that wait, found by their keys.
type table[T any] struct {
	records []record[T] // 0 stands for none
	buckets []uint32    // the first record of each; as many as there are records, rounded up
	free    uint32      // the first record that is not used
	count   int
}

// record is a tenant that waits.
type record[T any] struct {
	key            uint64
	tag            int64
	work           int64 // of the calls that wait
	oldest, newest *Node[T]
	earlier, later uint32 // in its slot of the ring, which is a circle
	before, after  uint32 // among those with as many calls
	chain          uint32 // the next one of the bucket, or the next free one
	count          uint32 // calls that wait
	placed         uint32 // in its slot: the lesser, the earlier
	class          uint16 // of its weight and group
	slot           uint16
}

const leastBuckets = 16

func (t *table[T]) init() {
	*t = table[T]{records: make([]record[T], 1, leastBuckets), buckets: make([]uint32, leastBuckets)}
}

func (t *table[T]) bucket(key uint64) *uint32 { return &t.buckets[key&uint64(len(t.buckets)-1)] }

// find returns the index of the record of a tenant; 0 if it does not wait.
func (t *table[T]) find(key uint64) uint32 {
	i := *t.bucket(key)
	for i != 0 && t.records[i].key != key {
		i = t.records[i].chain
	}
	return i
}

// add makes a record for a tenant that has none.
func (t *table[T]) add(key uint64) uint32 {
	i := t.free
	if i != 0 {
		t.free = t.records[i].chain
	} else {
		i = uint32(len(t.records))
		t.records = append(t.records, record[T]{})
	}
	if t.count++; t.count > len(t.buckets) {
		t.grow()
	}
	first := t.bucket(key)
	t.records[i] = record[T]{key: key, chain: *first}
	*first = i
	return i
}

func (t *table[T]) grow() {
	t.buckets = make([]uint32, 2*len(t.buckets))
	for i := range t.records {
		if r := &t.records[i]; r.count > 0 {
			first := t.bucket(r.key)
			r.chain, *first = *first, uint32(i)
		}
	}
}

// drop frees the record of a tenant.
func (t *table[T]) drop(i uint32) {
	at := t.bucket(t.records[i].key)
	for *at != i {
		at = &t.records[*at].chain
	}
	*at = t.records[i].chain
	t.records[i] = record[T]{chain: t.free}
	t.free = i
	t.count--
}
