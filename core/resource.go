package core

import (
	"context"
	"sync/atomic"
)

// Entry asks to make a call of the named resource. It returns a guard to be
// exited when the call has ended, or the reason why the call must not be made:
//
//   - a [*BlockError], which matches [ErrBlocked], when a rule refuses it;
//   - the error of ctx, when that ended while the call waited;
//   - [ErrClosed], or an error that matches [ErrInvalid].
//
// Entry waits only where a rule lets calls wait. A wait for which ctx leaves too
// little time is refused at once; a delay that a rule injects lasts as long as ctx lets
// it. A resource that no rule names passes and is
// counted.
func (e *Engine) Entry(ctx context.Context, resource string, opts ...Option) (Guard, error) {
	return e.enter(ctx, nil, resource, opts)
}

// Resource returns the resource of that name, to be entered without looking the
// name up each time.
func (e *Engine) Resource(name string) *Resource {
	r := &Resource{engine: e, name: name}
	r.present.Store(e.resources.get(name))
	return r
}

// Resource is a resource that was looked up once. It stays valid as long as its
// engine and is safe for concurrent use.
type Resource struct {
	engine  *Engine
	name    string
	present atomic.Pointer[resource]
}

// Name returns the name of the resource.
func (r *Resource) Name() string { return r.name }

// Entry is [Engine.Entry] for this resource.
func (r *Resource) Entry(ctx context.Context, opts ...Option) (Guard, error) {
	return r.engine.enter(ctx, r.current(), r.name, opts)
}

// current looks the name up again if the resource was evicted meanwhile, or is one of
// the overflow.
func (r *Resource) current() *resource {
	present := r.present.Load()
	if present.evicted.Load() || present.resourceStats == r.engine.resources.overflowResource.resourceStats {
		present = r.engine.resources.getOrAdd(r.name)
		r.present.Store(present)
	}
	return present
}
