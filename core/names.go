package core

import (
	"hash/maphash"
	"sync/atomic"
)

const (
	nameParts = 256
	partsBits = 8
)

// nameTable holds resources by their names. Looking one up takes no lock. It is in
// parts, so that what is copied at once, to grow or to forget names, is a small part
// of it.
type nameTable struct {
	shortcuts shortcuts
	seed      maphash.Seed
	parts     [nameParts]atomic.Pointer[namePart]
}

// namePart is a hash table with linear probing: a name is in the first slot that was free,
// counted from that of its hash. Slots are filled and refilled, but never emptied.
type namePart struct {
	slots []nameSlot // a power of two; one is free at least
	used  int
}

// nameSlot holds a resource and the hash of its name. The hash is written before the
// first resource and stays, so that most other names are ruled out without a look at
// their resources, which are elsewhere in memory.
type nameSlot struct {
	resource atomic.Pointer[resource]
	hash     uint64
}

func (t *nameTable) init() {
	t.seed = maphash.MakeSeed()
	empty := newNamePart(1)
	for i := range t.parts {
		t.parts[i].Store(empty)
	}
}

func newNamePart(size int) *namePart { return &namePart{slots: make([]nameSlot, size)} }

// get returns the resource of a name, nil if there is none. It may have been
// forgotten just now.
func (t *nameTable) get(name string) *resource {
	hash := maphash.String(t.seed, name)
	slots := t.parts[hash>>(64-partsBits)].Load().slots
	for i := hash; ; i++ { // find written out, which is 2 ns
		slot := &slots[i&uint64(len(slots)-1)]
		if r := slot.resource.Load(); r == nil || slot.hash == hash && r.name == name {
			return r
		}
	}
}

// find returns the slot in which a name is, or the free one in which it would be.
func (p *namePart) find(hash uint64, name string) *nameSlot {
	for i := hash; ; i++ {
		slot := &p.slots[i&uint64(len(p.slots)-1)]
		if r := slot.resource.Load(); r == nil || slot.hash == hash && r.name == name {
			return slot
		}
	}
}

// set puts a resource into the slot, which is free or that of its name.
func (s *nameSlot) set(hash uint64, r *resource) {
	if s.resource.Load() == nil {
		s.hash = hash
	}
	s.resource.Store(r)
}

// put adds a resource, in place of one of the same name. The caller holds
// registry.mu, as all do who change the table.
func (t *nameTable) put(r *resource) {
	hash := maphash.String(t.seed, r.name)
	part := &t.parts[hash>>(64-partsBits)]
	p := part.Load()
	slot := p.find(hash, r.name)
	if slot.resource.Load() == nil {
		if (p.used+1)*3 > len(p.slots)*2 {
			p = p.copy()
			part.Store(p)
			slot = p.find(hash, r.name)
		}
		p.used++
	}
	slot.set(hash, r)
	t.shortcuts.put(r)
}

// dropEvicted removes the resources of a part that were evicted. The caller holds
// registry.mu.
func (t *nameTable) dropEvicted(part int) {
	t.parts[part].Store(t.parts[part].Load().copy())
	t.shortcuts.dropEvicted()
}

// copy returns a part with the resources that were not evicted, and space for as
// many more.
func (p *namePart) copy() *namePart {
	kept := make([]*nameSlot, 0, p.used)
	for i := range p.slots {
		if r := p.slots[i].resource.Load(); r != nil && !r.evicted.Load() {
			kept = append(kept, &p.slots[i])
		}
	}
	size := 2
	for size < 3*len(kept) {
		size *= 2
	}
	next := newNamePart(size)
	for _, slot := range kept {
		r := slot.resource.Load()
		next.find(slot.hash, r.name).set(slot.hash, r)
	}
	next.used = len(kept)
	return next
}

// all returns the resources that are there now.
func (t *nameTable) all() (resources []*resource) {
	for i := range t.parts {
		p := t.parts[i].Load()
		for j := range p.slots {
			if r := p.slots[j].resource.Load(); r != nil && !r.gone.Load() {
				resources = append(resources, r)
			}
		}
	}
	return resources
}
