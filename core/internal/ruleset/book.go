package ruleset

import (
	"cmp"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/penstock-go/penstock/rule"
	"github.com/penstock-go/penstock/rules"
)

// Config configures a book.
type Config struct {
	// Table is the kinds of rules that there are.
	Table *rules.Table

	// MaxRemoval is the share of a source's rules that may go within RemovalWindow,
	// from 0 to 1; 1 sets no bound. A RemovalWindow of 0 counts each change by itself.
	MaxRemoval    float64
	RemovalWindow time.Duration

	// Try says why rules cannot be put in force although they have no mistakes. It is asked before
	// anything changes. nil if there are only kinds that do not fail.
	Try func([]rules.Replacement) error
}

// Book is the rules that the code and the sources hold, and which of them are in
// force.
type Book struct {
	config  Config
	owners  map[string]*group
	sources []*Source

	entries map[rule.Key]*entry
	waiting int    // how many rules wait, of all keys
	edits   uint64 // counted, to know when a description of conflicts is out of date
	domains domains
}

// entry is the rules of one key.
type entry struct {
	active  claim   // that in force
	waiting []claim // those whose name it has, by precedence
	edit    uint64  // the last edit that concerned them
}

// claim is a rule that a group has.
type claim struct {
	group *group
	rule  rule.Rule
}

// group is the rules that come and go together: those that one owner has loaded from
// code, or those of a document.
type group struct {
	owner    string    // of rules from code
	document *document // nil for rules from code
	created  int64     // the revision at which the document was created
	given    rules.Set
	waiting  int  // how many of the rules are not in force
	disputes bool // it says of a domain other than what is in force
}

// New returns an empty book.
func New(config Config) *Book {
	return &Book{
		config: config, owners: make(map[string]*group), entries: make(map[rule.Key]*entry),
	}
}

// precedes orders groups. When several have a rule of the same kind and name, that of
// the first group is in force: rules from code come before documents, owners are
// ordered by name, documents by creation, then by the names of source and document.
func (g *group) precedes(other *group) bool { return g.compare(other) < 0 }

func (g *group) compare(other *group) int {
	switch {
	case g == other:
		return 0
	case g.document == nil && other.document == nil:
		return cmp.Compare(g.owner, other.owner)
	case g.document == nil:
		return -1
	case other.document == nil:
		return 1
	}
	return cmp.Or(
		cmp.Compare(g.created, other.created),
		cmp.Compare(g.document.source.name, other.document.source.name),
		cmp.Compare(g.document.name, other.document.name))
}

// Kinds returns the kinds of rules that there are.
func (b *Book) Kinds() []rule.Definition { return b.config.Table.Definitions() }

// Len returns how many rules are in force.
func (b *Book) Len() int { return len(b.entries) }

// Where returns the source and the place in a document that a rule in force comes
// from; an empty source for a rule from code.
func (b *Book) Where(key rule.Key) (source string, at rules.Position) {
	present := b.entries[key]
	if present == nil || present.active.group.document == nil {
		return "", rules.Position{}
	}
	g := present.active.group
	at, _ = g.given.Position(key.Kind, key.Name)
	return g.document.source.name, at
}

// Load takes the rules that an owner in the code has now, in place of those that it
// had. When the set has a mistake, the error is [rules.Problems] and nothing changes.
// What it costs depends on how many rules are not the same, and at the same place, as
// before.
func (b *Book) Load(owner string, set rules.Set) (Outcome, error) {
	g := b.owners[owner]
	if g == nil {
		g = &group{owner: owner}
	}
	replaced := b.config.Table.Replaced(g.given, set)
	if err := b.judge(g, set, replaced); err != nil {
		return Outcome{}, err
	}
	if b.config.Try != nil {
		if err := b.config.Try(replaced); err != nil {
			return Outcome{}, err
		}
	}
	e := b.begin()
	e.origin = Origin{Source: SourceCode, Rules: b.config.Table.Len(g.given)}
	b.config.Table.Assign(&g.given, set)
	e.replace(g, replaced)
	e.serve(g)
	b.owners[owner] = g
	if b.config.Table.Len(set) == 0 && len(set.Serve) == 0 {
		delete(b.owners, owner)
	}
	o := e.finish()
	e.reportDisplaced(&o)
	return o, nil
}

// judge says what is wrong with a set that is to be an owner's. It looks at the rules
// that differ; only if one of them is wrong it looks for all there are.
func (b *Book) judge(g *group, set rules.Set, replaced []rules.Replacement) error {
	for _, r := range set.Custom {
		if !slices.Contains(b.config.Table.Kinds(), r.Type().Kind()) {
			return fmt.Errorf("core: the engine does not know rules of kind %q: give it the kind in Config.Kinds", r.Type().Kind())
		}
	}
	if err := judgeDomains(set); err != nil {
		return err
	}
	moves := make(map[rule.Key]bool) // of rules that do not stay at their place; false: gone; true: come
	for _, r := range replaced {
		if r.To == nil || r.From != r.To.Key() {
			moves[r.From] = false
		}
	}
	for _, r := range replaced {
		if r.To == nil {
			continue
		}
		if len(r.To.Faults()) > 0 {
			return set.Validate()
		}
		key := r.To.Key()
		if key == r.From {
			continue
		}
		if hasCome, isGone := moves[key]; hasCome || !isGone && b.has(g, key) {
			return set.Validate()
		}
		moves[key] = true
	}
	return nil
}

// has says whether a group has a rule of that key, in force or not.
func (b *Book) has(g *group, key rule.Key) bool {
	present := b.entries[key]
	return present != nil && (present.active.group == g ||
		slices.ContainsFunc(present.waiting, func(c claim) bool { return c.group == g }))
}

// add adds a rule of a group, which has none of that key.
func (e *entry) add(c claim) {
	switch present := e.active; {
	case present.group == nil:
		e.active = c
		return
	case c.group.precedes(present.group):
		e.active = c
		c = present
	}
	at, _ := slices.BinarySearchFunc(e.waiting, c, func(a, b claim) int { return a.group.compare(b.group) })
	e.waiting = slices.Insert(e.waiting, at, c)
}

// remove removes the rule that a group has. The next one that waits takes its place.
func (e *entry) remove(g *group) {
	switch {
	case e.active.group != g:
		e.waiting = slices.DeleteFunc(e.waiting, func(c claim) bool { return c.group == g })
	case len(e.waiting) > 0:
		e.active = e.waiting[0]
		e.waiting = slices.Delete(e.waiting, 0, 1)
	default:
		e.active = claim{}
	}
	if len(e.waiting) == 0 {
		e.waiting = nil
	}
}

// isWhole says whether all that the group has is in force.
func (g *group) isWhole() bool { return g.waiting == 0 && !g.disputes }

// conflict says which rules of a document are not in force because other rules have
// their names, and which domains because others say otherwise: [rules.Problems]; nil if all are.
func (b *Book) conflict(d *document) error {
	if d.group.isWhole() {
		return nil
	}
	if d.conflict == nil || d.conflictAt != b.edits {
		d.conflict, d.conflictAt = b.describeConflict(&d.group), b.edits
	}
	return d.conflict
}

// describeConflict says what of a group is not in force.
func (b *Book) describeConflict(g *group) error {
	var all, some rules.Problems
	for _, err := range []error{b.dispute(g), b.clashes(g)} {
		if errors.As(err, &some) {
			all = append(all, some...)
		}
	}
	if all == nil {
		return nil // and not an error that is empty
	}
	return all
}

// clashes says which rules of a group are not in force.
func (b *Book) clashes(g *group) error {
	return b.config.Table.Clashes(g.given, func(key rule.Key) (by string) {
		present := b.entries[key]
		if present == nil || present.active.group == g {
			return ""
		}
		holder := present.active.group
		at := b.config.Table.Whereabouts(holder.given, key)
		switch {
		case g.document == nil:
			return fmt.Sprintf("%s%s, which comes first: this one%s waits until that is gone", at, ofOwner(holder.owner), ofOwner(g.owner))
		case holder.document == nil:
			return fmt.Sprintf("%s%s, which comes before documents: this one, of source %q, waits until that is gone",
				at, ofOwner(holder.owner), g.document.source.name)
		}
		return fmt.Sprintf("%s of source %q, which comes first: this one, of source %q, waits until that is gone",
			at, holder.document.source.name, g.document.source.name)
	})
}

func ofOwner(owner string) string {
	if owner == "" {
		return ""
	}
	return fmt.Sprintf(" by %q", owner)
}

// Source returns the source of that name, which is made if there is none.
func (b *Book) Source(name string) *Source {
	if i := slices.IndexFunc(b.sources, func(s *Source) bool { return s.name == name }); i >= 0 {
		return b.sources[i]
	}
	s := &Source{
		name: name, documents: make(map[string]*document),
		pending: make(map[*document]struct{}),
	}
	s.removed = make(map[rule.Key]instant)
	b.sources = append(b.sources, s)
	return s
}

// sortedDocuments returns documents by source and name.
func sortedDocuments(documents iter.Seq[*document]) []*document {
	sorted := slices.SortedFunc(documents, func(a, b *document) int {
		return cmp.Or(strings.Compare(a.source.name, b.source.name), strings.Compare(a.name, b.name))
	})
	return slices.Compact(sorted)
}
