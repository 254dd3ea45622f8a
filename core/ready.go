package core

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/penstock-go/penstock/rule"
)

// Ready waits until every source that is followed has delivered all of its
// documents once and what is sound of them is in force, and until the lists are there
// that rules in force name, see [Status.AwaitedLists]; with [fleet.Config.AwaitBackend], also
// until the backend of the fleet has answered once, if rules in force are for the whole fleet.
// Without all that it returns at once. The error is that of ctx, naming what is missing and what keeps it, or
// [ErrClosed].
//
// Watch the lists before Ready is called: it waits for those that nobody has begun to
// watch, too.
func (e *Engine) Ready(ctx context.Context) error {
	for {
		lists := e.lists.Changed()
		e.rules.mu.Lock()
		missing := e.sources.Missing()
		for _, l := range e.awaitedLists() {
			missing = append(missing, fmt.Sprintf("list %q, which %s names, is not there", l.Name, strings.Join(l.Rules, ", ")))
		}
		answered := e.fleet.Awaited()
		if answered != nil {
			missing = append(missing, "the backend of the fleet has not answered yet")
		}
		if len(missing) == 0 {
			e.rules.mu.Unlock()
			return nil
		}
		change := e.sources.NextChange()
		e.rules.mu.Unlock()
		select {
		case <-change:
		case <-lists:
		case <-answered:
		case <-ctx.Done():
			return fmt.Errorf("core: not ready: %s: %w", strings.Join(missing, "; "), ctx.Err())
		case <-e.closed:
			return ErrClosed
		}
	}
}

// maxListRules is how many rules [MissingList] names.
const maxListRules = 10

// MissingList is a list that rules in force name and that is not there. Rules that deny
// its entries let them pass meanwhile, rules that allow only its entries refuse everybody.
type MissingList struct {
	Name  string
	Rules []string // that name it, by kind and name: the first ten
}

// awaitedLists returns [Status.AwaitedLists]. The caller holds rules.mu.
func (e *Engine) awaitedLists() []MissingList {
	if len(e.sources.Missing()) > 0 {
		e.rules.wasReady = false
	}
	if e.rules.wasReady {
		return nil
	}
	missing := e.missingLists(isEnforced)
	if len(missing) > 0 {
		return missing
	}
	e.rules.wasReady = len(e.sources.Missing()) == 0 && e.rules.book.Len() > 0
	return nil // as when it was ready
}

// isEnforced says whether a rule is no shadow.
func isEnforced(r rule.Rule) bool { return !r.Target().Shadow }

// missingLists returns the lists that some of the rules in force name and that are not
// there, by name.
func (e *Engine) missingLists(some func(rule.Rule) bool) []MissingList {
	naming := make(map[string][]string)
	for key, active := range e.rules.all() {
		for _, name := range active.Version.Lists() {
			if some(active.Version) && e.lists.Get(name) == nil {
				naming[name] = append(naming[name], key.String())
			}
		}
	}
	missing := make([]MissingList, 0, len(naming))
	for name, of := range naming {
		slices.Sort(of)
		missing = append(missing, MissingList{Name: name, Rules: slices.Clip(of[:min(len(of), maxListRules)])})
	}
	slices.SortFunc(missing, func(a, b MissingList) int { return strings.Compare(a.Name, b.Name) })
	return missing
}
