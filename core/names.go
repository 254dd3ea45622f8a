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
	seed  maphash.Seed
	parts [nameParts]atomic.Pointer[namePart]
}

// namePart is a hash table in which a name stands in the first slot that was free from
// that of its hash on. Slots are filled and refilled, but never emptied.
type namePart struct {
	slots []atomic.Pointer[resource] // a power of two; one is free at least
	used  int
}

func (t *nameTable) init() {
	t.seed = maphash.MakeSeed()
	empty := newNamePart(1)
	for i := range t.parts {
		t.parts[i].Store(empty)
	}
}

func newNamePart(size int) *namePart {
	return &namePart{slots: make([]atomic.Pointer[resource], size)}
}

// get returns the resource of a name, nil if there is none. It may have been
// forgotten just now.
func (t *nameTable) get(name string) *resource {
	hash := maphash.String(t.seed, name)
	slots := t.parts[hash>>(64-partsBits)].Load().slots
	for i := hash; ; i++ { // slot written out, which is 2 ns
		if r := slots[i&uint64(len(slots)-1)].Load(); r == nil || r.name == name {
			return r
		}
	}
}

// slot returns the slot in which a name is, or the free one in which it would be.
func (p *namePart) slot(hash uint64, name string) *atomic.Pointer[resource] {
	last := uint64(len(p.slots) - 1)
	for i := hash; ; i++ {
		slot := &p.slots[i&last]
		if r := slot.Load(); r == nil || r.name == name {
			return slot
		}
	}
}

// put adds a resource, in place of one of the same name. The caller holds
// registry.mu, as all do who change the table.
func (t *nameTable) put(r *resource) {
	hash := maphash.String(t.seed, r.name)
	part := &t.parts[hash>>(64-partsBits)]
	p := part.Load()
	slot := p.slot(hash, r.name)
	if slot.Load() == nil {
		if (p.used+1)*3 > len(p.slots)*2 {
			p = t.copyPart(p)
			part.Store(p)
			slot = p.slot(hash, r.name)
		}
		p.used++
	}
	slot.Store(r)
}

// dropEvicted removes the resources of a part that were evicted. The caller holds
// registry.mu.
func (t *nameTable) dropEvicted(part int) {
	t.parts[part].Store(t.copyPart(t.parts[part].Load()))
}

// copyPart returns a part with the resources that were not evicted, and room for as
// many more.
func (t *nameTable) copyPart(p *namePart) *namePart {
	kept := make([]*resource, 0, p.used)
	for i := range p.slots {
		if r := p.slots[i].Load(); r != nil && !r.evicted.Load() {
			kept = append(kept, r)
		}
	}
	size := 2
	for size < 3*len(kept) {
		size *= 2
	}
	next := newNamePart(size)
	for _, r := range kept {
		next.slot(maphash.String(t.seed, r.name), r.name).Store(r)
	}
	next.used = len(kept)
	return next
}

// all returns the resources that are there now.
func (t *nameTable) all() (resources []*resource) {
	for i := range t.parts {
		p := t.parts[i].Load()
		for j := range p.slots {
			if r := p.slots[j].Load(); r != nil && !r.evicted.Load() {
				resources = append(resources, r)
			}
		}
	}
	return resources
}
