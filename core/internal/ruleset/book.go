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

	entries entries
	waiting map[*entry][]claim // rules whose name another one has that is in force, by precedence
	edits   uint64             // counted, to know when a description of conflicts is out of date
	domains domains
}

// entry is the rules of one key.
type entry struct {
	active claim  // that in force
	edit   uint64 // the last edit that concerned them
	note   any    // of whoever owns the book, see Book.Note
}

// entries are those of all rules, by kind and name. There may be ten thousand of a kind: a map by
// rule.Key would have the kind with each.
type entries map[rule.Kind]map[string]*entry

// of returns that of a key; nil if there is none.
func (e entries) of(key rule.Key) *entry { return e[key.Kind][key.Name] }

// ensure returns that of a key, an empty one if there was none.
func (e entries) ensure(key rule.Key) *entry {
	byName := e[key.Kind]
	if byName == nil {
		byName = make(map[string]*entry)
		e[key.Kind] = byName
	}
	of := byName[key.Name]
	if of == nil {
		of = new(entry)
		byName[key.Name] = of
	}
	return of
}

// drop removes that of a key.
func (e entries) drop(key rule.Key) {
	byName := e[key.Kind]
	if delete(byName, key.Name); len(byName) == 0 {
		delete(e, key.Kind) // a map does not get smaller
	}
}

// len returns how many there are.
func (e entries) len() (count int) {
	for _, byName := range e {
		count += len(byName)
	}
	return count
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
	kinds    []rule.Kind
	rules    [][]*entry // of each of the kinds, by the places of the rules
	beside   rules.Set  // domains, and where the rules stand, without the rules
	waiting  int        // how many of the rules are not in force
	disputes bool       // it says of a domain other than what is in force
}

// New returns an empty book.
func New(config Config) *Book {
	return &Book{
		config: config, owners: make(map[string]*group), entries: make(entries),
		waiting: make(map[*entry][]claim),
	}
}

// Note returns what was noted of the rule in force that has a key; nil if there is none.
func (b *Book) Note(key rule.Key) any {
	if of := b.entries.of(key); of != nil {
		return of.note
	}
	return nil
}

// Notes yields what was noted of each rule in force.
func (b *Book) Notes() iter.Seq2[rule.Key, any] {
	return func(yield func(rule.Key, any) bool) {
		for kind, byName := range b.entries {
			for name, of := range byName {
				if !yield(rule.Key{Kind: kind, Name: name}, of.note) {
					return
				}
			}
		}
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
func (b *Book) Len() int { return b.entries.len() }

// Where returns the source and the place in a document that a rule in force comes
// from; an empty source for a rule from code.
func (b *Book) Where(key rule.Key) (source string, at rules.Position) {
	present := b.entries.of(key)
	if present == nil || present.active.group.document == nil {
		return "", rules.Position{}
	}
	g := present.active.group
	at, _ = g.beside.Position(key.Kind, key.Name)
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
	replaced, err := b.judge(g, set)
	if err != nil {
		return Outcome{}, err
	}
	if b.config.Try != nil {
		if err := b.config.Try(replaced); err != nil {
			return Outcome{}, err
		}
	}
	e := b.begin()
	e.origin = Origin{Source: SourceCode, Rules: g.len()}
	e.replace(g, replaced)
	g.beside = b.config.Table.WithRules(set, none)
	e.serve(g)
	b.owners[owner] = g
	if g.len() == 0 && len(set.Serve) == 0 {
		delete(b.owners, owner)
	}
	o := e.finish()
	e.reportDisplaced(&o)
	return o, nil
}

// judge returns where a set that is to be an owner's has other rules, and says what is wrong with it. It looks
// at the rules that differ; only if one of them is wrong it looks for all there are.
func (b *Book) judge(g *group, set rules.Set) ([]rules.Replacement, error) {
	for _, r := range set.Custom {
		if !slices.ContainsFunc(b.config.Table.Definitions(), func(d rule.Definition) bool { return d.Kind() == r.Type().Kind() }) {
			return nil, fmt.Errorf("core: the engine does not know rules of kind %q: give it the kind in Config.Kinds", r.Type().Kind())
		}
	}
	if err := judgeDomains(set); err != nil {
		return nil, err
	}
	replaced, sound := b.replaced(g, set, func(r rule.Rule) bool { return len(r.Faults()) == 0 })
	if !sound {
		return nil, set.Validate()
	}
	gone, come := make(map[rule.Key]struct{}), make(map[rule.Key]struct{}) // of rules that do not stay at their places
	for _, r := range replaced {
		if r.From != nil && !r.KeepsKey {
			gone[r.From.Key()] = struct{}{}
		}
	}
	for i := range replaced {
		r := &replaced[i]
		if r.To == nil || r.KeepsKey {
			continue
		}
		key := r.To.Key()
		_, isGone := gone[key]
		if _, isTwice := come[key]; isTwice || !isGone && b.has(g, key) {
			return nil, set.Validate()
		}
		come[key] = struct{}{}
	}
	return replaced, nil
}

// has says whether a group has a rule of that key, in force or not.
func (b *Book) has(g *group, key rule.Key) bool {
	of := b.entries.of(key)
	return of != nil && b.claimOf(of, g) != nil
}

// claimOf returns the rule that a group has of a key, in force or not; nil if it has none.
func (b *Book) claimOf(of *entry, g *group) rule.Rule {
	if of.active.group == g {
		return of.active.rule
	}
	for _, c := range b.waiting[of] {
		if c.group == g {
			return c.rule
		}
	}
	return nil
}

// add adds a rule of a group, which has none of that key.
func (b *Book) add(of *entry, c claim) {
	switch present := of.active; {
	case present.group == nil:
		of.active = c
		return
	case c.group.precedes(present.group):
		of.active = c
		c = present
	}
	at, _ := slices.BinarySearchFunc(b.waiting[of], c, func(a, b claim) int { return a.group.compare(b.group) })
	b.waiting[of] = slices.Insert(b.waiting[of], at, c)
}

// remove removes the rule that a group has. The next one that waits takes its place.
func (b *Book) remove(of *entry, g *group) {
	waiting := b.waiting[of]
	switch {
	case of.active.group != g:
		waiting = slices.DeleteFunc(waiting, func(c claim) bool { return c.group == g })
	case len(waiting) > 0:
		of.active = waiting[0]
		waiting = slices.Delete(waiting, 0, 1)
	default:
		of.active = claim{}
	}
	if b.waiting[of] = waiting; len(waiting) == 0 {
		delete(b.waiting, of)
	}
}

// replaced returns where a set has other rules than a group, and whether isSound says yes to them, see [rules.Table.Replaced].
func (b *Book) replaced(g *group, set rules.Set, isSound func(rule.Rule) bool) (replaced []rules.Replacement, sound bool) {
	return b.config.Table.Replaced(func(kind rule.Kind) (count int, at func(place int) rule.Rule) {
		var present []*entry
		if i := slices.Index(g.kinds, kind); i >= 0 {
			present = g.rules[i]
		}
		return len(present), func(place int) rule.Rule { return b.claimOf(present[place], g) }
	}, set, isSound)
}

// parsed returns where a set that was parsed, and so is sound, has other rules than a group.
func (b *Book) parsed(g *group, set rules.Set) []rules.Replacement {
	replaced, _ := b.replaced(g, set, func(rule.Rule) bool { return true })
	return replaced
}

// rules yields the rules of a group.
func (b *Book) rules(g *group) iter.Seq[rule.Rule] {
	return func(yield func(rule.Rule) bool) {
		for _, entries := range g.rules {
			for _, of := range entries {
				if !yield(b.claimOf(of, g)) {
					return
				}
			}
		}
	}
}

// given returns all that a group says, its rules complete.
func (b *Book) given(g *group) rules.Set { return b.config.Table.WithRules(g.beside, b.rules(g)) }

// whereabouts tells where the rule of a key stands that the group has.
func (g *group) whereabouts(key rule.Key, of *entry) string {
	if p, ok := g.beside.Position(key.Kind, key.Name); ok {
		return "the rule at " + p.String()
	}
	i := slices.Index(g.kinds, key.Kind)
	return fmt.Sprintf("%s[%d], made in code", key.Kind, slices.Index(g.rules[i], of))
}

// none yields no rules.
func none(func(rule.Rule) bool) {}

// len returns how many rules the group has.
func (g *group) len() (count int) {
	for _, entries := range g.rules {
		count += len(entries)
	}
	return count
}

// put notes the rule of a kind at a place, which is behind the last one at most.
func (g *group) put(kind rule.Kind, place int, of *entry) {
	i := slices.Index(g.kinds, kind)
	if i < 0 {
		i = len(g.kinds)
		g.kinds, g.rules = append(g.kinds, kind), append(g.rules, nil)
	}
	if place == len(g.rules[i]) {
		g.rules[i] = append(g.rules[i], of)
	} else {
		g.rules[i][place] = of
	}
}

// cut drops the places of a kind from one on, and the memory if much of it is not needed any more.
func (g *group) cut(kind rule.Kind, place int) {
	i := slices.Index(g.kinds, kind)
	if i < 0 || place >= len(g.rules[i]) {
		return
	}
	kept := slices.Delete(g.rules[i], place, len(g.rules[i]))
	if place < cap(kept)/4 {
		kept = slices.Clone(kept)
	}
	if g.rules[i] = kept; place == 0 {
		g.kinds, g.rules = slices.Delete(g.kinds, i, i+1), slices.Delete(g.rules, i, i+1)
	}
}

// at returns the entry of the rule of a kind at a place.
func (g *group) at(kind rule.Kind, place int) *entry {
	return g.rules[slices.Index(g.kinds, kind)][place]
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
	return b.config.Table.Clashes(b.given(g), func(key rule.Key) (by string) {
		present := b.entries.of(key)
		if present == nil || present.active.group == g {
			return ""
		}
		holder := present.active.group
		at := holder.whereabouts(key, present)
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
