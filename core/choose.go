package core

import (
	"slices"

	"github.com/penstock-go/penstock/rules"
)

// choice is the version of a document that is to be in force: the one held, if
// it is usable and does not clash with other documents.
type choice struct {
	document *document
	version  *version
	held     bool
}

// lose makes the choice what is in force of the document already.
func (c *choice) lose() { c.version, c.held = &c.document.inForce, false }

// chooser settles which version of some documents is to be in force, given that
// no name may stand for two rules. A version held whose names are taken by others
// is left out; its document keeps what is in force of it.
//
// Who has a name in force keeps it. Between newcomers the one that comes first
// has it. The code's rules are always in force.
type chooser struct {
	book    *ruleBook
	choices map[*document]*choice
	owners  map[rules.Key]*choice
	open    []*choice // that have to claim their names yet
}

// choose returns a choice for each of the documents, in their order. All others
// are in force as they are held.
func (b *ruleBook) choose(documents []*document) []*choice {
	s := chooser{book: b, choices: make(map[*document]*choice, len(documents)), owners: make(map[rules.Key]*choice)}
	choices := make([]*choice, len(documents))
	for i, d := range documents {
		c := &choice{document: d, version: &d.held, held: true}
		if d.problem = d.obstacle(); d.problem != nil {
			c.lose()
		}
		choices[i], s.choices[d] = c, c
	}
	for s.open = slices.Clone(choices); len(s.open) > 0; s.open = s.open[1:] {
		s.claim(s.open[0])
	}
	for slices.ContainsFunc(choices, s.claimAfterAll) {
		// What that has given up may be what others want.
	}
	for _, c := range choices {
		if !c.held && c.document.problem == nil {
			c.document.problem = s.clash(c.document)
		}
	}
	return choices
}

// claim takes the names of a choice, unless it cannot stand beside others or they
// cannot beside it: those lose. What is in force stands: only a version held can
// lose.
func (s *chooser) claim(c *choice) {
	for key := range c.version.rules.Keys() {
		present, _ := s.book.find(key)
		owner := s.owners[key]
		precedes := owner != nil && owner.held && (!c.held || present == &c.document.part)
		switch {
		case c.held && (s.isFixed(present) || owner != nil && !precedes):
			c.lose()
			s.claim(c) // the names that its document has in force
			return
		case precedes:
			s.release(owner)
			owner.lose()
			s.open = append(s.open, owner) // which has other names to claim now
		}
	}
	s.take(c)
}

// claimAfterAll takes the names of a version held that lost to one which lost itself
// later, so that nobody has them now.
func (s *chooser) claimAfterAll(c *choice) bool {
	if c.held || c.document.problem != nil || s.clash(c.document) != nil {
		return false
	}
	s.release(c)
	c.version, c.held = &c.document.held, true
	s.take(c)
	return true
}

// isFixed says whether the rules of a part are in force, whatever is chosen.
func (s *chooser) isFixed(p *part) bool {
	return p != nil && (p.document == nil || s.choices[p.document] == nil)
}

func (s *chooser) take(c *choice) {
	for key := range c.version.rules.Keys() {
		s.owners[key] = c
	}
}

// release gives the names of a choice back, if it has them.
func (s *chooser) release(c *choice) {
	for key := range c.version.rules.Keys() {
		if s.owners[key] == c {
			delete(s.owners, key)
		}
	}
}

// clash returns what is wrong with putting the version held of a document beside
// what was chosen of the others; nil if nothing is.
func (s *chooser) clash(d *document) error {
	return d.held.rules.Clashes(func(key rules.Key) (by rules.Set, index int, taken bool) {
		if p, index := s.book.find(key); s.isFixed(p) {
			return p.given, index, true
		}
		if owner := s.owners[key]; owner != nil && owner.document != d {
			return owner.version.rules, 0, true
		}
		return rules.Set{}, 0, false
	})
}
