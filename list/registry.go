package list

import (
	"maps"
	"slices"
	"sync"
	"sync/atomic"
)

// Registry has lists by name. It is safe for concurrent use. Make one with
// [NewRegistry].
type Registry struct {
	mu       sync.RWMutex // guards the fields below
	handles  map[string]*Handle
	provided map[string]provided // see providers.go
	limit    removalLimit        // see removals.go; a share of 0 is none
	past     map[string][]past   // by name, in the order of time
	changed  chan struct{}       // closed when something changes; nil while nobody waits
}

// NewRegistry returns a registry without lists.
func NewRegistry() *Registry { return &Registry{handles: make(map[string]*Handle)} }

// Handle stands for the list of one name, whichever that is at the time, or for none. It
// is safe for concurrent use.
type Handle struct{ list atomic.Pointer[List] }

// List returns the present list of the name; nil if there is none. It costs as much as
// one atomic load. The list stays as it is, also when another one takes its place; it is
// freed when nobody holds it any more.
func (h *Handle) List() *List { return h.list.Load() }

// Handle returns the handle of a name. There need not be a list of that name, now or
// ever. All handles of a name are the same one, for as long as the registry lives.
func (r *Registry) Handle(name string) *Handle {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.handle(name)
}

// handle is [Registry.Handle] for a caller that holds r.mu.
func (r *Registry) handle(name string) *Handle {
	h := r.handles[name]
	if h == nil {
		h = new(Handle)
		r.handles[name] = h
	}
	return h
}

// Set gives a name a list made by the code of the program, for all calls from now on. It
// comes before lists of the same name that sources have. nil takes away the list that Set gave to the name.
func (r *Registry) Set(name string, l *List) {
	if l == nil {
		r.Withdraw(name, Provider{})
		return
	}
	r.Put(name, Provider{}, Version{List: l})
}

// Get returns the present list of a name; nil if there is none.
func (r *Registry) Get(name string) *List {
	r.mu.RLock()
	defer r.mu.RUnlock()
	if h := r.handles[name]; h != nil {
		return h.list.Load()
	}
	return nil
}

// Changed returns a channel that is closed when a list is put in force, removed or held
// back after the call.
func (r *Registry) Changed() <-chan struct{} {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.changed == nil {
		r.changed = make(chan struct{})
	}
	return r.changed
}

// notify wakes those who wait for a change. The caller holds r.mu.
func (r *Registry) notify() {
	if r.changed != nil {
		close(r.changed)
		r.changed = nil
	}
}

// Names returns the names that have a list, sorted.
func (r *Registry) Names() []string {
	r.mu.RLock()
	defer r.mu.RUnlock()
	names := slices.Sorted(maps.Keys(r.handles))
	return slices.DeleteFunc(names, func(name string) bool { return r.handles[name].list.Load() == nil })
}
