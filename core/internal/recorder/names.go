package recorder

import (
	"hash/maphash"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/penstock-go/penstock/rule"
)

// The first indexes of a table of names.
const (
	noName     = 0
	otherNames = 1 // those for which there is no space
)

// table numbers names, up to a bound. To find one takes no lock.
type table struct {
	most   int // names
	seed   maphash.Seed
	others *entry
	hash   atomic.Pointer[[]atomic.Pointer[entry]] // with linear probing; a power of two
	full   atomic.Bool

	mu   sync.Mutex // guards what follows, and changes of the table
	list []*entry
}

// entry is a name with its number.
type entry struct {
	of    *table
	index uint64
	name  string
}

// Place is where whoever has a name remembers its number. It is one word, and belongs to no one recorder.
type Place struct{ known atomic.Pointer[entry] }

func (t *table) init(most int) {
	t.most, t.seed = most, maphash.MakeSeed()
	t.others = &entry{t, otherNames, rule.OtherResources}
	t.list = []*entry{{t, noName, ""}, t.others}
	slots := make([]atomic.Pointer[entry], 64)
	t.hash.Store(&slots)
}

// find returns the name with its number, that of others if there is no space.
func (t *table) find(name string) *entry {
	hash := maphash.String(t.seed, name)
	slots := *t.hash.Load()
	for i := hash; ; i++ {
		found := slots[i&uint64(len(slots)-1)].Load()
		if found == nil {
			return t.add(hash, name)
		}
		if found.name == name {
			return found
		}
	}
}

// isOf says whether it is known and of a table.
func (n *entry) isOf(t *table) bool { return n != nil && n.of == t }

// indexOf returns the number of a name that is remembered in a place.
func (t *table) indexOf(p *Place, name string) uint64 {
	n := p.known.Load()
	if !n.isOf(t) {
		n = t.learn(p, name)
	}
	return n.index
}

// learn is find for a place that does not have the number yet.
func (t *table) learn(p *Place, name string) *entry {
	n := t.find(name)
	p.known.Store(n)
	return n
}

func (t *table) add(hash uint64, name string) *entry {
	if t.full.Load() || len(name) > rule.MaxNameLength {
		return t.others
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	slots := *t.hash.Load()
	i := hash
	for ; ; i++ {
		found := slots[i&uint64(len(slots)-1)].Load()
		if found == nil {
			break
		}
		if found.name == name {
			return found // added meanwhile
		}
	}
	if len(t.list) >= t.most {
		t.full.Store(true)
		return t.others
	}
	made := &entry{t, uint64(len(t.list)), strings.Clone(name)}
	t.list = append(t.list, made)
	slots[i&uint64(len(slots)-1)].Store(made)
	if 2*len(t.list) > len(slots) {
		t.grow(2 * len(slots))
	}
	return made
}

// grow makes a larger table, beside the one that others may look into.
func (t *table) grow(size int) {
	slots := make([]atomic.Pointer[entry], size)
	for _, n := range t.list[otherNames+1:] {
		i := maphash.String(t.seed, n.name)
		for slots[i&uint64(size-1)].Load() != nil {
			i++
		}
		slots[i&uint64(size-1)].Store(n)
	}
	t.hash.Store(&slots)
}

// names returns all names by their numbers.
func (t *table) names() []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	names := make([]string, len(t.list))
	for i, n := range t.list {
		names[i] = n.name
	}
	return names
}
