package list

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/penstock-go/penstock/clock"
)

// maxName is how many bytes the name of a list may have.
const maxName = 256

// CheckName returns an error if a list cannot have the name: it is empty, is longer than
// 256 bytes, begins with a dot, or has slashes or control characters. Such names
// are names of files, and parts of keys in etcd.
func CheckName(name string) error {
	switch {
	case name == "":
		return errors.New("list: the name of the list is empty")
	case len(name) > maxName:
		return fmt.Errorf("list: the name %.40q… has %d bytes: shorten it to %d", name, len(name), maxName)
	case strings.HasPrefix(name, "."), strings.ContainsAny(name, `/\`):
		return fmt.Errorf("list: the name %q begins with a dot or has slashes: leave them out", name)
	case !utf8.ValidString(name) || strings.ContainsFunc(name, unicode.IsControl):
		return fmt.Errorf("list: the name %q has control characters or is not UTF-8: leave them out", name)
	default:
		return nil
	}
}

// Provider is where a list comes from: a document of a source. The zero value stands for
// the code of the program.
type Provider struct{ Source, Document string }

func (p Provider) compare(q Provider) int {
	return cmp.Or(cmp.Compare(p.Source, q.Source), cmp.Compare(p.Document, q.Document))
}

// Version is a list as a provider has it.
type Version struct {
	List   *List
	Digest [32]byte      // SHA-256 of the text; zero if the list was made in code
	At     clock.Instant // when it was put in force

	// CopiedAt, when set, says that the list was read from a copy of what the source held
	// at that instant, as the source cannot be read. [Registry.Judge] ends it.
	CopiedAt clock.Instant
}

// Status is how the list of a provider is.
type Status struct {
	Name string // of the list
	Provider

	// InForce says that calls are decided by the list of this provider. It is false if
	// there is none yet, and if another provider of the name comes first: the code, then
	// sources and their documents in the order of their names.
	InForce bool

	Entries int           // of the last good version, 0 without one
	WithEnd int           // entries among them that have an end, also those that have ended
	Size    int64         // of it in memory, in bytes, about
	Digest  [32]byte      // of its text
	Since   clock.Instant // when it was put in force; 0 without one

	// CopiedAt is set when that version was not read from the source but from a copy of
	// what the source held at that instant; see [Version].
	CopiedAt clock.Instant

	// HeldBack is set while a later version, or that the list is gone, is not put in force
	// because too many entries would go at once: see [Registry.LimitRemoval].
	HeldBack *HeldBackError

	// Err says why the present version of the document is not the last good one, and
	// FailedAt since when.
	Err      error
	FailedAt clock.Instant
}

// provided is what the providers of one name have, in order.
type provided []*entry

type entry struct {
	Provider
	Version  // the last good one
	err      error
	failedAt clock.Instant

	// What the provider has now, if that is not settled yet: see removals.go.
	next     *Version
	gone     bool
	heldBack *HeldBackError
}

// Put takes over a good version of a list. Sources call it; [Registry.Set] is for code.
// When several providers have a list of one name, that of the first is in force: the
// code, then sources and their documents in the order of their names. So it is the same
// in every instance of a service, whatever came first. Put returns whether this one is
// in force: it is not if another provider comes first, or if it is held back.
func (r *Registry) Put(name string, from Provider, v Version) (inForce bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	e := r.entry(name, from)
	e.err, e.failedAt = nil, 0
	e.next, e.gone = &v, false
	r.resolve(name, e)
	return r.handle(name).List() == v.List
}

// Judge notes whether the present version of a provider's list is in force: err says why it cannot be put in
// force, so that the last good one stays; nil that it is in force, as the source has it and not a copy only.
func (r *Registry) Judge(name string, from Provider, err error, at clock.Instant) {
	r.mu.Lock()
	defer r.mu.Unlock()
	e := r.entry(name, from)
	switch {
	case err == nil:
		e.CopiedAt, at = 0, 0
	case e.err != nil:
		at = e.failedAt
	}
	e.err, e.failedAt = err, at
}

// Withdraw takes away the list of a provider, which no longer has one, unless that is held
// back.
func (r *Registry) Withdraw(name string, from Provider) {
	r.mu.Lock()
	defer r.mu.Unlock()
	e := r.entry(name, from)
	e.next, e.gone = nil, true
	r.resolve(name, e)
}

// Status returns how the lists of all providers are, or those of the given names: by name, those of one name in
// the order in which they come into force.
func (r *Registry) Status(names ...string) []Status {
	r.mu.RLock()
	defer r.mu.RUnlock()
	if len(names) == 0 {
		names = slices.Sorted(maps.Keys(r.provided))
	}
	var all []Status
	for _, name := range names {
		taken := false
		for _, e := range r.provided[name] {
			s := e.status(name)
			if e.List != nil {
				s.InForce, taken = !taken, true
			}
			all = append(all, s)
		}
	}
	return all
}

// status returns how the list is, but for whether it is in force.
func (e *entry) status(name string) Status {
	s := Status{
		Name: name, Provider: e.Provider, Digest: e.Digest, Since: e.At, CopiedAt: e.CopiedAt,
		HeldBack: e.heldBack, Err: e.err, FailedAt: e.failedAt,
	}
	if e.List != nil {
		s.Entries, s.WithEnd, s.Size = e.List.Len(), e.List.ends.len(), e.List.Size()
	}
	return s
}

// entry returns what is known of a provider's list, in place. The caller holds r.mu.
func (r *Registry) entry(name string, from Provider) *entry {
	all := r.provided[name]
	at, found := slices.BinarySearchFunc(all, from, func(e *entry, p Provider) int { return e.compare(p) })
	if !found {
		if r.provided == nil {
			r.provided = make(map[string]provided)
		}
		all = slices.Insert(all, at, &entry{Provider: from})
		r.provided[name] = all
	}
	return all[at]
}

// resolve puts the list of the first provider in force after one of them, changed, has
// another version or none, unless too many entries would go by that: then what has changed
// waits. What the code of the program has does not. The caller holds r.mu.
func (r *Registry) resolve(name string, changed *entry) {
	if changed.Provider == (Provider{}) {
		changed.take()
		r.provided[name] = slices.DeleteFunc(r.provided[name], func(e *entry) bool { return e == changed && e.gone })
		r.store(name, r.provided[name].first())
	}
	r.settle(name, changed)
	r.notify()
}

// settle puts in force what the providers of a name have now, or holds it back because of
// what one of them has changed.
func (r *Registry) settle(name string, changed *entry) {
	if why := r.tooMany(name, r.provided[name].next()); why != nil {
		why.Provider = changed.Provider
		if changed.heldBack == nil || *changed.heldBack != *why {
			changed.heldBack = why
		}
		return
	}
	r.takeAll(name)
}

// takeAll puts in force what the providers of a name have now.
func (r *Registry) takeAll(name string) {
	for _, e := range r.provided[name] {
		e.take()
	}
	rest := slices.DeleteFunc(r.provided[name], func(e *entry) bool { return e.gone })
	if len(rest) == 0 {
		delete(r.provided, name)
	} else {
		r.provided[name] = rest
	}
	r.store(name, rest.first())
}

// take makes what a provider has now its last good version.
func (e *entry) take() {
	switch {
	case e.gone:
		e.Version = Version{}
	case e.next != nil:
		e.Version = *e.next
	}
	e.next, e.heldBack = nil, nil
}

// first returns the list that is in force of those that are settled; nil if there is none.
func (p provided) first() *List {
	for _, e := range p {
		if e.List != nil {
			return e.List
		}
	}
	return nil
}

// next returns the list that is in force once everything is settled; nil if there is none.
func (p provided) next() *List {
	for _, e := range p {
		switch {
		case e.gone:
		case e.next != nil:
			return e.next.List
		case e.List != nil:
			return e.List
		}
	}
	return nil
}
