package ruleset

import (
	"slices"

	"github.com/penstock-go/penstock/rule"
	"github.com/penstock-go/penstock/rules"
)

// Outcome is what comes of new rules.
type Outcome struct {
	Changes    []Change
	Origin     Origin
	Rejections []Rejection   // those that were not reported before
	Accepted   []DocumentKey // documents that were rejected and are in force now
}

// Change is what becomes of one rule. At least one of From and To is set.
type Change struct {
	From rule.Rule // that was in force; nil if none was
	To   rule.Rule // that is to be in force; nil if none is
	of   *entry
}

// Key returns the key that the rules have.
func (c *Change) Key() rule.Key {
	if c.To == nil {
		return c.From.Key()
	}
	return c.To.Key()
}

// Note returns what was noted of the rule in force; nil if nothing was.
func (c *Change) Note() any { return c.of.note }

// SetNote notes something of the rule in force, as long as there is one of the key.
func (c *Change) SetNote(note any) { c.of.note = note }

// Origin says what brought about a change.
type Origin struct {
	Source    string   // [SourceCode] for rules from code
	Documents []string // that have changed, with their revisions
	Rules     int      // that the source, or the owner, had before
}

// SourceCode stands for the code where the name of a source is expected.
const SourceCode = "code"

// DocumentKey identifies a document, or an owner of rules from code.
type DocumentKey struct{ Source, Document string }

// Rejection says that a document, or what an owner loaded, was not applied, or not all
// of it. Document is "" for a change of a source that was held back as a whole.
type Rejection struct {
	DocumentKey
	Revision int64
	Err      error // [rules.Problems], or [*HeldBack]
}

// edit is one change of a book under way.
type edit struct {
	book   *Book
	origin Origin

	changes []Change            // what becomes of the rule in force of each entry that the edit concerns; To, if known to be another
	emptied []rule.Key          // of which no rule is left, for now
	waited  map[*entry][]*group // before the edit, where any did
	served  bool                // somebody says something else of domains than before

	// Of these a rule now waits that did not, or was not there.
	displaced       map[*document]struct{}
	displacedOwners []*group
}

// begin begins an edit.
func (b *Book) begin() *edit {
	b.edits++
	return &edit{book: b, waited: make(map[*entry][]*group), displaced: make(map[*document]struct{})}
}

// touch notes what an entry was of which rules come or go. It returns false if that was noted before.
func (e *edit) touch(of *entry) bool {
	if of.edit == e.book.edits {
		return false
	}
	of.edit = e.book.edits
	e.changes = append(e.changes, Change{From: of.active.rule, of: of})
	for _, c := range e.book.waiting[of] {
		e.waited[of] = append(e.waited[of], c.group)
		c.group.waiting--
	}
	return true
}

// add adds a rule of a group, which has none of that key, and returns its entry.
func (e *edit) add(key rule.Key, c claim) *entry {
	of := e.book.entries.ensure(key)
	e.touch(of)
	e.book.add(of, c)
	return of
}

func (e *edit) remove(of *entry, key rule.Key, g *group) {
	e.touch(of)
	if e.book.remove(of, g); of.active.group == nil {
		e.emptied = append(e.emptied, key)
	}
}

// replace takes rules out of a group and puts others in their places.
func (e *edit) replace(g *group, replaced []rules.Replacement) {
	e.changes = slices.Grow(e.changes, len(replaced))
	for i := range replaced {
		r := &replaced[i]
		if r.From == nil {
			continue
		}
		of := g.at(r.From.Type().Kind(), r.Place)
		if !r.KeepsKey {
			e.remove(of, r.From.Key(), g)
			continue
		}
		isFirst := e.touch(of)
		if of.active.group == g { // of those that have the key it stays the first
			of.active.rule = r.To
			if isFirst {
				e.changes[len(e.changes)-1].To = r.To
			}
			continue
		}
		e.book.remove(of, g)
		e.book.add(of, claim{g, r.To})
	}
	for i := range replaced {
		switch r := &replaced[i]; {
		case r.To == nil:
			g.cut(r.From.Type().Kind(), r.Place) // there are none behind it
		case !r.KeepsKey:
			key := r.To.Key()
			g.put(key.Kind, r.Place, e.add(key, claim{g, r.To}))
		}
	}
}

// rank gives a group another place in the order of precedence.
func (e *edit) rank(g *group, created int64) {
	var contested []claim
	if len(e.book.waiting) > 0 {
		for r := range e.book.rules(g) {
			key := r.Key()
			if of := e.book.entries.of(key); len(e.book.waiting[of]) > 0 {
				contested = append(contested, claim{g, r})
				e.remove(of, key, g)
			}
		}
	}
	g.created = created
	for _, c := range contested {
		e.add(c.rule.Key(), c)
	}
}

// finish returns what the edit has changed.
func (e *edit) finish() Outcome {
	changes := e.changes[:0]
	for _, c := range e.changes {
		of := c.of
		isAnother := c.To != nil && c.To == of.active.rule
		c.To = of.active.rule
		if isAnother || (c.From == nil) != (c.To == nil) || c.From != nil && !c.From.Equal(c.To) {
			changes = append(changes, c)
		}
		for _, w := range e.book.waiting[of] {
			w.group.waiting++
			switch {
			case slices.Contains(e.waited[of], w.group):
			case w.group.document != nil:
				e.displaced[w.group.document] = struct{}{}
			case !slices.Contains(e.displacedOwners, w.group):
				e.displacedOwners = append(e.displacedOwners, w.group)
			}
		}
	}
	for _, key := range e.emptied {
		if of := e.book.entries.of(key); of != nil && of.active.group == nil {
			e.book.entries.drop(key)
		}
	}
	e.settleDomains()
	return Outcome{Origin: e.origin, Changes: changes}
}
