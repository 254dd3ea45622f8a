package list

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/penstock-go/penstock/clock"
)

// removalLimit says how many entries of a list may go at once.
type removalLimit struct {
	share  float64 // of the entries; 0 sets no bound
	window time.Duration
	clock  clock.Clock
}

// LimitRemoval holds back from now on what sources do to a list that takes out more than a share of
// its entries, from 0 to 1, such as a file that was cut short: the present list stays in
// force, until most of the entries are back, or [Registry.Confirm]. A list that loses its addresses
// and has texts instead loses the addresses. 0 sets no bound, as does 1. Entries that have gone are counted over a
// window of the clock, [clock.System] if it is nil; if that is not positive, each change is judged by itself. What the code of the
// program does is never held back. Of several limits the strictest counts, so engines
// that share a registry may each have one.
func (r *Registry) LimitRemoval(share float64, window time.Duration, c clock.Clock) {
	if !(share > 0 && share < 1) {
		return
	}
	if c == nil {
		c = clock.System()
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.limit.share == 0 || share < r.limit.share {
		r.limit = removalLimit{share, window, c}
	}
}

// HeldBackError says that a change of a list is not put in force because it would take out
// more entries than [Registry.LimitRemoval] allows.
type HeldBackError struct {
	Name     string // of the list
	Provider        // whose change is held back
	Removed  int    // entries that would go, and those that went within Within
	Entries  int    // of the list in force, and those that went within Within
	Most     float64
	Within   time.Duration // the window if entries that went before are counted; else 0
}

// Error tells how many entries would go.
func (e *HeldBackError) Error() string {
	when := "would go at once"
	if e.Within > 0 {
		when = fmt.Sprintf("would be gone within %v", e.Within)
	}
	return fmt.Sprintf("list: source %q: %d of the %d entries of list %q %s, more than the share of %v that is allowed: "+
		"the list in force stays; put them back or confirm", e.Source, e.Removed, e.Entries, e.Name, when, e.Most)
}

// Confirm puts in force what a provider has of its lists, however many entries that takes out, after it was held
// back for that: of all documents of the source if it names none. It speaks of what the provider has now: later
// changes are held back again. The error says that nothing is held back.
func (r *Registry) Confirm(of Provider) error {
	isMeant := func(e *entry) bool {
		return e.heldBack != nil && e.Source == of.Source && (of.Document == "" || e.Document == of.Document)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	var names []string
	for name, all := range r.provided {
		if slices.ContainsFunc(all, isMeant) {
			names = append(names, name)
		}
	}
	if len(names) == 0 {
		return errors.New("list: nothing is held back: there is nothing to confirm")
	}
	for _, name := range names {
		r.takeAll(name)
		delete(r.past, name) // what is left is what counts from now on
	}
	r.notify()
	return nil
}

// past is how many entries a list had that was in force.
type past struct {
	until        clock.Instant // when another one took its place
	addrs, texts int
}

// maxPast is how many lists of a name are remembered. When there are more, two of them are
// taken for one that had what either had.
const maxPast = 32

// pastOf returns how many entries a list has now that have not ended. l may be nil.
func (r *Registry) pastOf(l *List, now clock.Instant) past {
	if l == nil {
		return past{until: now}
	}
	addrs, texts := l.ends.ended(clock.Instant(clock.TimeOf(r.limit.clock, now).UnixNano()))
	return past{until: now, addrs: l.addrs - addrs, texts: l.entries - l.addrs - texts}
}

func (p past) entries() int { return p.addrs + p.texts }

// removedBy returns how many of the entries are gone with those of another list in their place.
func (p past) removedBy(next past) int {
	return max(0, p.addrs-next.addrs) + max(0, p.texts-next.texts)
}

// tooMany says why a list that may be nil must not take the place of the present one; nil
// if it may. What takes out nothing always may.
func (r *Registry) tooMany(name string, next *List) *HeldBackError {
	present := r.handle(name).List()
	if r.limit.share == 0 || present == nil {
		return nil
	}
	now := r.limit.clock.Now()
	r.forgetPast(name, now)
	before, after := r.pastOf(present, now), r.pastOf(next, now)
	if before.removedBy(after) == 0 {
		return nil
	}
	for _, before := range r.past[name] {
		if why := r.judge(before, after); why != nil {
			why.Name, why.Within = name, r.limit.window
			return why
		}
	}
	why := r.judge(before, after)
	if why != nil {
		why.Name = name
	}
	return why
}

// judge returns an error if a list takes out too many of the entries that there were.
func (r *Registry) judge(before, after past) *HeldBackError {
	removed, of := before.removedBy(after), before.entries()
	if of == 0 || float64(removed)/float64(of) <= r.limit.share {
		return nil
	}
	return &HeldBackError{Removed: removed, Entries: of, Most: r.limit.share}
}

// forgetPast forgets the lists of a name whose entries count no longer.
func (r *Registry) forgetPast(name string, now clock.Instant) {
	left := slices.DeleteFunc(r.past[name], func(p past) bool { return now.Sub(p.until) >= r.limit.window })
	if len(left) == 0 {
		delete(r.past, name)
		return
	}
	r.past[name] = left
}

// store puts a list in force, which may be nil, and remembers the one before if entries are gone.
func (r *Registry) store(name string, next *List) {
	h := r.handle(name)
	present := h.list.Swap(next)
	if present == next || present == nil || r.limit.share == 0 || r.limit.window <= 0 {
		return
	}
	now := r.limit.clock.Now()
	if p := r.pastOf(present, now); p.removedBy(r.pastOf(next, now)) > 0 {
		if r.past == nil {
			r.past = make(map[string][]past)
		}
		all := slices.Concat(r.past[name], []past{p})
		if len(all) > maxPast {
			all[1] = past{all[1].until, max(all[0].addrs, all[1].addrs), max(all[0].texts, all[1].texts)}
			all = all[1:]
		}
		r.past[name] = all
	}
}
