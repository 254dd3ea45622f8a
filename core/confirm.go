package core

import (
	"fmt"

	"github.com/penstock-go/penstock/list"
)

// Confirm puts in force what the source of that name holds, of rules or of lists, however
// many rules or entries that removes, after it was held back for that; see
// [Config.MaxRemoval]. It speaks of what the source holds now: later changes are held back
// again. The error says that no such source is followed or that nothing of it is held back.
func (e *Engine) Confirm(source string) error {
	outcome, err := e.confirm(source)
	e.report(outcome)
	if !e.isClosed() && e.lists.Confirm(list.Provider{Source: source}) == nil {
		return nil
	}
	return err
}

func (e *Engine) confirm(source string) (outcome, error) {
	e.rules.mu.Lock()
	defer e.rules.mu.Unlock()
	if e.isClosed() {
		return outcome{}, ErrClosed
	}
	f := e.sources.Find(source)
	if f == nil {
		return outcome{}, fmt.Errorf("core: source %q is not followed: there is nothing to confirm", source)
	}
	if f.Rules.HeldBack() == nil {
		return outcome{}, fmt.Errorf("core: nothing of source %q is held back: there is nothing to confirm", source)
	}
	defer e.sources.Changed()
	now := e.clock.Now()
	return e.put(e.rules.book.Confirm(f.Rules, now), now), nil
}
