// Package names finds what has a name: without a lock, however many names there are.
package names

import (
	"hash/maphash"
	"reflect"
	"sync/atomic"
	"unsafe"
)

// Entry is what a [Table] knows of what it holds. It is the first field of that.
type Entry struct {
	Name    string
	Evicted atomic.Bool // it is no longer in the table, or never was: look the name up again
	Gone    atomic.Bool // it is evicted for good
}

// entryOf returns the entry with which a value of a table begins: so a table of pointers to values finds
// what it compares, as if it were a table of one type, without a call and without a pointer in each value.
func entryOf[T any](r *T) *Entry { return (*Entry)(unsafe.Pointer(r)) }

// Of returns the value of a table that begins with an entry.
func Of[T any](e *Entry) *T { return (*T)(unsafe.Pointer(e)) }

const (
	parts     = 256
	partsBits = 8
)

// Table holds values by their names, of a type whose first field is an [Entry]. Looking one up takes no
// lock; those who change the table exclude each other. It is in parts, so that what is copied at once, to grow
// or to forget names, is a small part of it.
type Table[T any] struct {
	shortcuts shortcuts[T]
	seed      maphash.Seed
	parts     [parts]atomic.Pointer[part[T]]
}

// part is a hash table with linear probing: a name is in the first slot that was free,
// counted from that of its hash. Slots are filled and refilled, but never emptied.
type part[T any] struct {
	slots []slot[T] // a power of two; one is free at least
	used  int
}

// slot holds a value and the hash of its name. The hash is written before the first value
// and stays, so that most other names are ruled out without a look at their values, which
// are elsewhere in memory.
type slot[T any] struct {
	value atomic.Pointer[T]
	hash  uint64
}

// Init makes the table ready to use. It panics if values of the table do not begin with an [Entry].
func (t *Table[T]) Init() {
	if of := reflect.TypeFor[T](); of.Kind() != reflect.Struct || of.NumField() == 0 || of.Field(0).Type != reflect.TypeFor[Entry]() {
		panic("names: " + of.String() + " does not begin with a names.Entry")
	}
	t.seed = maphash.MakeSeed()
	empty := newPart[T](1)
	for i := range t.parts {
		t.parts[i].Store(empty)
	}
}

func newPart[T any](size int) *part[T] { return &part[T]{slots: make([]slot[T], size)} }

// Get returns the value of a name, nil if there is none. It may have been evicted just now.
func (t *Table[T]) Get(name string) *T {
	hash := quickHash(name)
	if s := t.shortcuts.slot(hash); s.hash.Load() == hash { // not in a function of its own, which is 2 ns
		if r := s.value.Load(); r != nil && entryOf(r).Name == name {
			return r
		}
	}
	hash = maphash.String(t.seed, name)
	slots := t.parts[hash>>(64-partsBits)].Load().slots
	for i := hash; ; i++ { // find written out, which is 2 ns
		slot := &slots[i&uint64(len(slots)-1)]
		if r := slot.value.Load(); r == nil || slot.hash == hash && entryOf(r).Name == name {
			return r
		}
	}
}

// find returns the slot in which a name is, or the free one in which it would be.
func (p *part[T]) find(hash uint64, name string) *slot[T] {
	for i := hash; ; i++ {
		slot := &p.slots[i&uint64(len(p.slots)-1)]
		if r := slot.value.Load(); r == nil || slot.hash == hash && entryOf(r).Name == name {
			return slot
		}
	}
}

// set puts a value into the slot, which is free or that of its name.
func (s *slot[T]) set(hash uint64, r *T) {
	if s.value.Load() == nil {
		s.hash = hash
	}
	s.value.Store(r)
}

// Put adds a value, in place of one of the same name.
func (t *Table[T]) Put(r *T) {
	name := entryOf(r).Name
	hash := maphash.String(t.seed, name)
	part := &t.parts[hash>>(64-partsBits)]
	p := part.Load()
	slot := p.find(hash, name)
	if slot.value.Load() == nil {
		if (p.used+1)*3 > len(p.slots)*2 {
			p = p.copy()
			part.Store(p)
			slot = p.find(hash, name)
		}
		p.used++
	}
	slot.set(hash, r)
	t.shortcuts.put(r)
}

// DropEvicted removes the values of a part that were evicted.
func (t *Table[T]) DropEvicted(part int) {
	t.parts[part].Store(t.parts[part].Load().copy())
	t.shortcuts.dropEvicted()
}

// copy returns a part with the values that were not evicted, and space for as
// many more.
func (p *part[T]) copy() *part[T] {
	kept := make([]*slot[T], 0, p.used)
	for i := range p.slots {
		if r := p.slots[i].value.Load(); r != nil && !entryOf(r).Evicted.Load() {
			kept = append(kept, &p.slots[i])
		}
	}
	size := 2
	for size < 3*len(kept) {
		size *= 2
	}
	next := newPart[T](size)
	for _, slot := range kept {
		r := slot.value.Load()
		next.find(slot.hash, entryOf(r).Name).set(slot.hash, r)
	}
	next.used = len(kept)
	return next
}

// All returns the values that are there now, without those that are gone.
func (t *Table[T]) All() (all []*T) {
	slots := 0
	for i := range t.parts {
		slots += len(t.parts[i].Load().slots)
	}
	all = make([]*T, 0, slots*2/3) // no more are used, unless names come meanwhile
	for i := range t.parts {
		p := t.parts[i].Load()
		for j := range p.slots {
			if r := p.slots[j].value.Load(); r != nil && !entryOf(r).Gone.Load() {
				all = append(all, r)
			}
		}
	}
	return all
}

// MaxPart returns how many slots are used in the fullest part: so many are copied at once.
func (t *Table[T]) MaxPart() (most int) {
	for i := range t.parts {
		most = max(most, t.parts[i].Load().used)
	}
	return most
}

// Round goes round a table, part by part, again and again.
type Round[T any] struct {
	part int       // that is being looked at
	rest []slot[T] // of its slots
	open bool      // it has begun
}

// AtStart says whether the round is before the first part.
func (w *Round[T]) AtStart() bool { return w.part == 0 && !w.open }

// Next returns the next value of the part that was not evicted; nil at the end of the part.
func (w *Round[T]) Next(t *Table[T]) *T {
	if !w.open {
		w.open, w.rest = true, t.parts[w.part].Load().slots
	}
	for len(w.rest) > 0 {
		r := w.rest[0].value.Load()
		w.rest = w.rest[1:]
		if r != nil && !entryOf(r).Evicted.Load() {
			return r
		}
	}
	return nil
}

// EndPart goes on to the next part of the table, after the last to the first, and returns the one that was.
func (w *Round[T]) EndPart() (part int) {
	part = w.part
	*w = Round[T]{part: (part + 1) % parts}
	return part
}
