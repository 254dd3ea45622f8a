package core

import "github.com/penstock-go/penstock/rules"

// choice is the version of a document that is to be in force: the one held, if
// it is usable and does not clash with other documents.
type choice struct {
	document *document
	version  *version
	held     bool
}

// lose makes the choice what is in force of the document already.
func (c *choice) lose(problem error) {
	c.document.problem = problem
	c.version, c.held = &c.document.inForce, false
}

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
}

// choose returns a choice for each of the documents, in their order. All others
// are in force as they are held.
func (b *ruleBook) choose(documents []*document) []*choice {
	s := chooser{book: b, choices: make(map[*document]*choice, len(documents)), owners: make(map[rules.Key]*choice)}
	choices := make([]*choice, len(documents))
	for i, d := range documents {
		c := &choice{document: d, version: &d.held, held: true}
		if problem := d.obstacle(); problem != nil {
			c.lose(problem)
		}
		choices[i], s.choices[d] = c, c
	}
	for open := append([]*choice(nil), choices...); len(open) > 0; {
		loser, problem := s.claim(open[0])
		if loser == nil {
			open = open[1:]
			continue
		}
		s.release(loser)
		loser.lose(problem)
		if loser != open[0] {
			open = append(open, loser) // to claim the names that it has in force
		}
	}
	return choices
}

// claim takes the names of a choice, unless another cannot stand beside it: that
// one is returned, and why. What is in force stands: only a version held can lose.
func (s *chooser) claim(c *choice) (loser *choice, problem error) {
	for key := range c.version.rules.Keys() {
		part := s.book.partOf(key)
		if c.held && part != nil && (part.document == nil || s.choices[part.document] == nil) {
			return c, conflict(part.given, c)
		}
		owner := s.owners[key]
		switch {
		case owner == nil:
		case !c.held || owner.held && part == &c.document.part:
			return owner, conflict(c.version.rules, owner)
		default:
			return c, conflict(owner.version.rules, c)
		}
	}
	for key := range c.version.rules.Keys() {
		s.owners[key] = c
	}
	return nil, nil
}

// release gives the names of a choice back, if it has them.
func (s *chooser) release(c *choice) {
	for key := range c.version.rules.Keys() {
		if s.owners[key] == c {
			delete(s.owners, key)
		}
	}
}

// conflict returns what is wrong with putting a choice beside rules in force.
func conflict(others rules.Set, c *choice) error {
	_, err := rules.Merge(others, c.version.rules)
	return err
}
