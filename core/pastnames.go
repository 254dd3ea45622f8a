package core

// maxPastNames is how many names are remembered of resources that were evicted.
const maxPastNames = 1024

// pastNames are the names of the resources that were evicted last, for rules that come
// into force later: whether their names were ever called. The zero value is empty.
// registry.mu guards it.
type pastNames struct {
	known map[string]struct{}
	names []string // in a ring
	next  int      // the place of the next one in the ring
}

// add remembers a name.
func (p *pastNames) add(name string) {
	if _, known := p.known[name]; known {
		return
	}
	if p.known == nil {
		p.known = make(map[string]struct{})
	}
	if len(p.names) < maxPastNames {
		p.names = append(p.names, name)
	} else {
		delete(p.known, p.names[p.next])
		p.names[p.next] = name
		p.next = (p.next + 1) % maxPastNames
	}
	p.known[name] = struct{}{}
}

// wasCalled says whether a resource that a rule guards was evicted after calls of it.
func (g *registry) wasCalled(a *activeRule) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if a.pattern == nil {
		_, known := g.past.known[a.resource]
		return known
	}
	for _, name := range g.past.names {
		if name != a.related && a.pattern.Matches(name) && (a.excepts == nil || !a.excepts(name)) {
			return true
		}
	}
	return false
}
