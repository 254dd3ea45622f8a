package ruleset

import (
	"slices"

	"github.com/penstock-go/penstock/rules"
)

// domains is which domains are served by what the code and the documents say. If several groups say
// different things of one, what the first says is in force, and the others dispute it.
type domains struct {
	groups  []*group                 // that say anything, by precedence
	inForce *map[string]rules.Domain // by name; another map after each change, nil without domains
	holders map[string]*group        // of those in force
}

// Domains returns the domains that are served, by name; nil if nothing is said of any. The map never
// changes.
func (b *Book) Domains() *map[string]rules.Domain { return b.domains.inForce }

// serve takes note of what a group says of domains, and of its place among the others.
func (e *edit) serve(g *group) {
	of := &e.book.domains
	if i := slices.Index(of.groups, g); i >= 0 {
		of.groups = slices.Delete(of.groups, i, i+1)
	} else if len(g.beside.Serve) == 0 {
		return
	}
	if len(g.beside.Serve) > 0 {
		at, _ := slices.BinarySearchFunc(of.groups, g, (*group).compare)
		of.groups = slices.Insert(of.groups, at, g)
	} else {
		g.disputes = false
	}
	e.served = true
}

// judgeDomains says what is wrong with the domains of a set.
func judgeDomains(set rules.Set) error {
	if len(set.Serve) == 0 {
		return nil
	}
	return rules.Set{Serve: set.Serve}.Validate()
}

// settleDomains finds what is in force once all groups have said what they have to.
func (e *edit) settleDomains() {
	if !e.served {
		return
	}
	of := &e.book.domains
	of.inForce, of.holders = nil, make(map[string]*group)
	served := make(map[string]rules.Domain)
	for _, g := range of.groups {
		for _, d := range g.beside.Serve {
			if of.holders[d.Name] == nil {
				of.holders[d.Name], served[d.Name] = g, d.WithDefaults()
			}
		}
	}
	if len(served) > 0 {
		of.inForce = &served
	}
	for _, g := range of.groups {
		before := g.disputes
		g.disputes = e.book.dispute(g) != nil
		switch {
		case before || !g.disputes:
		case g.document != nil:
			e.displaced[g.document] = struct{}{}
		case !slices.Contains(e.displacedOwners, g):
			e.displacedOwners = append(e.displacedOwners, g)
		}
	}
}

// dispute says of which domains a group says other than what is in force: [rules.Problems], nil if of
// none.
func (b *Book) dispute(g *group) error {
	return g.beside.Dispute(func(name string) (rules.Domain, string, bool) {
		holder := b.domains.holders[name]
		if holder == nil || holder == g {
			return rules.Domain{}, "", false
		}
		where := holder.beside.WhereDomain(name)
		if holder.document != nil {
			where += " of source \"" + holder.document.source.name + "\""
		} else {
			where += ofOwner(holder.owner)
		}
		return (*b.domains.inForce)[name], where + ", which comes first", true
	})
}
