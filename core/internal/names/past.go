package names

// maxPast is how many names are remembered.
const maxPast = 1024

// Past remembers the names of what was evicted last. The zero value is empty.
type Past struct {
	known map[string]struct{}
	names []string // in a ring
	next  int      // the place of the next one in the ring
}

// Add remembers a name.
func (p *Past) Add(name string) {
	if _, known := p.known[name]; known {
		return
	}
	if p.known == nil {
		p.known = make(map[string]struct{})
	}
	if len(p.names) < maxPast {
		p.names = append(p.names, name)
	} else {
		delete(p.known, p.names[p.next])
		p.names[p.next] = name
		p.next = (p.next + 1) % maxPast
	}
	p.known[name] = struct{}{}
}

// Has says whether a name is remembered.
func (p *Past) Has(name string) bool {
	_, known := p.known[name]
	return known
}

// All returns the names that are remembered, in no order. They are not to be changed.
func (p *Past) All() []string { return p.names }
