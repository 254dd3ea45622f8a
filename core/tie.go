package core

import "slices"

// ties are what binds a resource to the rules in force that name it. Such a
// resource is never forgotten.
type ties struct {
	guards []*flowRule // rules on the resource
	counts []*flowRule // rules on others that count its passes, in no order
}

// tie binds a rule to the resources that it names, however many there are. The
// caller holds g.upkeep, as for all that follows.
func (g *registry) tie(rule *flowRule) {
	if of := rule.terms.Rule(); of.Resource != "" {
		rule.guarded = g.tied(of.Resource)
		rule.guarded.ties.guards = append(rule.guarded.ties.guards, rule)
	}
	if rule.related != "" {
		rule.busy = g.tied(rule.related)
		rule.busy.ties.counts = append(rule.busy.ties.counts, rule)
	}
}

// tied returns the resource of a name that a rule names.
func (g *registry) tied(name string) *resource {
	var made *resource
	book := g.spill.patterns.Load()
	r := g.table.get(name) // nobody forgets it now
	if r == nil || r.evicted.Load() {
		made = g.newcomer(name, book)
	}
	if made == nil && r.ties != nil {
		return r
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if made != nil {
		if r = g.present(name); r == nil {
			r = made
			g.put(r, book, g.engine.clock.Now())
		}
	}
	r.ties = new(ties)
	g.ruled++
	return r
}

// untie lets a resource go of the rules that are gone, all at once.
func (g *registry) untie(r *resource) {
	r.ties.guards = slices.DeleteFunc(r.ties.guards, (*flowRule).isGone)
	r.ties.counts = slices.DeleteFunc(r.ties.counts, (*flowRule).isGone)
	if len(r.ties.guards)+len(r.ties.counts) == 0 {
		r.ties = nil
		g.mu.Lock()
		g.ruled--
		g.mu.Unlock()
	}
}
