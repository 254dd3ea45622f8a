package core

import (
	"context"
	"sync/atomic"
)

// Resource returns the resource of that name, for callers that enter it often: its Entry
// does not look the name up.
func (e *Engine) Resource(name string) *Resource {
	r := &Resource{engine: e, name: name}
	r.present.Store(e.get(name))
	return r
}

// Resource is a resource that was looked up once. It is valid as long as its engine, and
// safe for concurrent use.
type Resource struct {
	engine  *Engine
	name    string
	present atomic.Pointer[resource]
}

// Entry is [Engine.Entry] for this resource.
func (r *Resource) Entry(ctx context.Context, opts ...Option) (Guard, error) {
	return r.engine.enter(ctx, r.current(), r.name, opts)
}

// current returns the present resource of the name. It looks the name up again if the
// resource was evicted meanwhile, or shares the statistics of the overflow.
func (r *Resource) current() *resource {
	present := r.present.Load()
	if present.Evicted.Load() || present.Stats == r.engine.resources.Overflow.Stats {
		present = (*resource)(r.engine.resources.GetOrAdd(r.name))
		r.present.Store(present)
	}
	return present
}
