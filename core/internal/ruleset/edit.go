package ruleset

import (
	"slices"

	"github.com/penstock-go/penstock/rule"
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

	touched []standing // keys whose rules may change, in the order in which they were found
	seen    map[rule.Key]struct{}

	// Of these a rule now waits that did not, or was not there.
	displaced       map[*document]struct{}
	displacedOwners []*group
}

// standing is who had a key before the edit.
type standing struct {
	key     rule.Key
	active  claim
	waiting []*group
}

// begin begins an edit.
func (b *Book) begin() *edit {
	b.edits++
	return &edit{book: b, seen: make(map[rule.Key]struct{}), displaced: make(map[*document]struct{})}
}

func (e *edit) touch(key rule.Key) {
	if _, seen := e.seen[key]; seen {
		return
	}
	e.seen[key] = struct{}{}
	was := standing{key: key, active: e.book.active[key]}
	for _, c := range e.book.waiting[key] {
		was.waiting = append(was.waiting, c.group)
		c.group.waiting--
	}
	e.touched = append(e.touched, was)
}

// replace takes rules out of a group and puts others in.
func (e *edit) replace(g *group, gone []rule.Key, come []rule.Rule) {
	if most := max(len(gone), len(come)); len(e.seen) == 0 && most > 0 {
		e.seen = make(map[rule.Key]struct{}, most)
		e.touched = make([]standing, 0, most)
	}
	for _, key := range gone {
		e.touch(key)
		e.book.remove(key, g)
	}
	for _, r := range come {
		key := r.Key()
		e.touch(key)
		e.book.add(key, claim{g, r})
	}
}

// rank gives a group another place in the order of precedence.
func (e *edit) rank(g *group, created int64) {
	var contested []claim
	if len(e.book.waiting) > 0 {
		for r := range e.book.config.Table.All(g.given) {
			if key := r.Key(); len(e.book.waiting[key]) > 0 {
				contested = append(contested, claim{g, r})
				e.touch(key)
				e.book.remove(key, g)
			}
		}
	}
	g.created = created
	for _, c := range contested {
		e.book.add(c.rule.Key(), c)
	}
}

// finish returns what the edit has changed.
func (e *edit) finish() Outcome {
	o := Outcome{Origin: e.origin, Changes: make([]Change, 0, len(e.touched))}
	for _, was := range e.touched {
		key := was.key
		is := e.book.active[key]
		switch {
		case was.active.rule == nil && is.rule == nil:
		case was.active.rule == nil || is.rule == nil || !was.active.rule.Equal(is.rule):
			o.Changes = append(o.Changes, Change{key, was.active.rule, is.rule})
		}
		for _, c := range e.book.waiting[key] {
			c.group.waiting++
			switch {
			case slices.Contains(was.waiting, c.group):
			case c.group.document != nil:
				e.displaced[c.group.document] = struct{}{}
			case !slices.Contains(e.displacedOwners, c.group):
				e.displacedOwners = append(e.displacedOwners, c.group)
			}
		}
	}
	if len(e.book.active) == 0 {
		e.book.active = make(map[rule.Key]claim) // a map does not get smaller
	}
	return o
}
