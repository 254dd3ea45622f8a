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
	Key  rule.Key
	From rule.Rule // that was in force; nil if none was
	To   rule.Rule // that is to be in force; nil if none is
}

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

	// The entries that the edit concerns, in the order in which they were found, and
	// what becomes of the rule in force in each.
	touched []*entry
	changes []Change
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

// touch returns the entry of a key of which rules come or go, and notes what it was.
func (e *edit) touch(key rule.Key) *entry {
	of := e.book.entries[key]
	if of == nil {
		of = new(entry)
		e.book.entries[key] = of
	}
	if of.edit == e.book.edits {
		return of
	}
	of.edit = e.book.edits
	e.touched = append(e.touched, of)
	e.changes = append(e.changes, Change{Key: key, From: of.active.rule})
	for _, c := range of.waiting {
		e.waited[of] = append(e.waited[of], c.group)
		c.group.waiting--
	}
	return of
}

func (e *edit) add(key rule.Key, c claim) {
	of := e.touch(key)
	before := len(of.waiting)
	of.add(c)
	e.book.waiting += len(of.waiting) - before
}

func (e *edit) remove(key rule.Key, g *group) {
	of := e.touch(key)
	before := len(of.waiting)
	of.remove(g)
	e.book.waiting += len(of.waiting) - before
}

// replace takes rules out of a group and puts others in their places.
func (e *edit) replace(g *group, replaced []rules.Replacement) {
	e.touched, e.changes = slices.Grow(e.touched, len(replaced)), slices.Grow(e.changes, len(replaced))
	for _, r := range replaced {
		switch {
		case r.From == (rule.Key{}):
		case r.To != nil && r.From == r.To.Key(): // as most have: one look-up is enough
			e.exchange(r.From, claim{g, r.To})
		default:
			e.remove(r.From, g)
		}
	}
	for _, r := range replaced {
		if r.To == nil {
			continue
		}
		if key := r.To.Key(); key != r.From {
			e.add(key, claim{g, r.To})
		}
	}
}

// exchange puts a rule in place of that of the same group and key.
func (e *edit) exchange(key rule.Key, c claim) {
	of := e.touch(key)
	before := len(of.waiting)
	of.remove(c.group)
	of.add(c)
	e.book.waiting += len(of.waiting) - before
}

// rank gives a group another place in the order of precedence.
func (e *edit) rank(g *group, created int64) {
	var contested []claim
	if e.book.waiting > 0 {
		for r := range e.book.config.Table.All(g.given) {
			if key := r.Key(); len(e.book.entries[key].waiting) > 0 {
				contested = append(contested, claim{g, r})
				e.remove(key, g)
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
	for i, of := range e.touched {
		c := e.changes[i]
		c.To = of.active.rule
		if c.To == nil {
			delete(e.book.entries, c.Key)
		}
		if (c.From == nil) != (c.To == nil) || c.From != nil && !c.From.Equal(c.To) {
			changes = append(changes, c)
		}
		for _, w := range of.waiting {
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
	e.settleDomains()
	if len(e.book.entries) == 0 {
		e.book.entries = make(map[rule.Key]*entry) // a map does not get smaller
	}
	return Outcome{Origin: e.origin, Changes: changes}
}
