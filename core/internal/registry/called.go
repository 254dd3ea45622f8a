package registry

import "github.com/penstock-go/penstock/core/internal/inforce"

// KnowsCallOf says whether a resource was called, as far as the registry remembers.
func (g *Registry[E]) KnowsCallOf(name string) bool {
	if r := g.Table.Get(name); r != nil && r.Node.Calls() > 0 {
		return true
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.past.Has(name)
}

// CalledNames returns the names of resources that were called.
func (g *Registry[E]) CalledNames() (called []string) {
	for _, r := range g.Table.All() {
		if r.Node.Calls() > 0 {
			called = append(called, r.Name)
		}
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	return append(called, g.past.All()...)
}

// WasCalled says whether a resource that a rule guards was evicted after calls of it.
func (g *Registry[E]) WasCalled(a *inforce.Rule) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if a.Pattern == nil {
		return g.past.Has(a.Resource)
	}
	for _, name := range g.past.All() {
		if name != a.Related() && a.Pattern.Matches(name) && !a.Pattern.Exceptions.Include(name) {
			return true
		}
	}
	return false
}
