package registry

import (
	"slices"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/core/internal/inforce"
)

// Attach links a rule to the resources that it names, however many there are. The
// caller holds g.SwapMu, as for all that follows.
func (g *Registry[E]) Attach(a *inforce.Rule, now clock.Instant) {
	if name := a.Resource; name != "" {
		r := g.resourceOfRule(name, now)
		r.attached.guards = append(r.attached.guards, a)
		a.Named = &r.Entry
	}
	if a.Related != "" {
		r := g.resourceOfRule(a.Related, now)
		r.attached.counts = append(r.attached.counts, a)
	}
}

// resourceOfRule returns the resource of a name that a rule names, and adds it if there
// is none.
func (g *Registry[E]) resourceOfRule(name string, now clock.Instant) *Resource[E] {
	var made *Resource[E]
	patterns := g.overflow.patterns.Load()
	r := g.Table.Get(name) // it cannot be evicted now
	if r == nil || r.Evicted.Load() {
		made = g.newResourceFor(name, patterns, now)
	}
	if made == nil && r.attached != nil {
		return r
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if made != nil {
		if r = g.present(name); r == nil {
			r = made
			g.put(r, patterns, now)
		}
	}
	r.attached = newAttachments()
	g.attachedCount++
	return r
}

// Detach removes the rules that are gone from a resource, all at once.
func (g *Registry[E]) Detach(r *Resource[E]) {
	r.attached.guards = slices.DeleteFunc(r.attached.guards, (*inforce.Rule).IsRemoved)
	r.attached.counts = slices.DeleteFunc(r.attached.counts, (*inforce.Rule).IsRemoved)
	if len(r.attached.guards)+len(r.attached.counts) == 0 {
		r.attached = nil
		g.mu.Lock()
		g.attachedCount--
		g.mu.Unlock()
	}
}
