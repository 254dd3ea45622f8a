package registry

import "github.com/penstock-go/penstock/core/internal/inforce"

// Patterns returns the rules with patterns of the generation in force.
func (g *Registry[E]) Patterns() *inforce.Patterns { return g.overflow.patterns.Load() }

// BeginSwap has the registry note the names that are added from now on. They come with a plan for the present
// generation, like all others. The caller holds g.SwapMu, as for all that follows.
func (g *Registry[E]) BeginSwap() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.swapping = true
}

// FinishSwap ends a swap: it has act move the engine on to the coming generation, whose rules with patterns these are.
// If names were added since it was asked last, it returns these and does nothing.
func (g *Registry[E]) FinishSwap(patterns *inforce.Patterns, act func()) (added []*Resource[E]) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if added, g.addedDuringSwap = g.addedDuringSwap, nil; len(added) > 0 {
		return added
	}
	g.swapping = false
	act()
	g.overflow.patterns.Store(patterns)
	g.full.Store(false) // a rule has come to name a name: there may be space for another
	return nil
}
