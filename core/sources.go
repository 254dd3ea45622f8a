package core

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/penstock-go/penstock/rules"
)

// sourceBook is what the engine knows of the sources it follows. It is guarded
// by ruleBook.mu.
type sourceBook struct {
	list      []*followed            // in the order in which they were first followed
	unsettled map[*document]struct{} // that could be in force if others were not, or if they were confirmed
	change    chan struct{}          // closed and renewed with every change of what is in here
	ctx       context.Context
	cancel    context.CancelFunc
}

func (b *sourceBook) init() {
	b.unsettled = make(map[*document]struct{})
	b.change = make(chan struct{})
	b.ctx, b.cancel = context.WithCancel(context.Background())
}

// changed wakes those who wait for a change.
func (b *sourceBook) changed() {
	close(b.change)
	b.change = make(chan struct{})
}

// active returns the rules in force of all sources.
func (b *sourceBook) active() []rules.Set {
	var sets []rules.Set
	for _, f := range b.list {
		for _, d := range f.sorted() {
			sets = append(sets, d.inForce.rules)
		}
	}
	return sets
}

// candidates returns the documents that have changed and those that are not
// settled, in a fixed order.
func (b *sourceBook) candidates(changed []*document) []*document {
	all := slices.Concat(changed, slices.Collect(maps.Keys(b.unsettled)))
	slices.SortFunc(all, (*document).compare)
	return slices.Compact(all)
}

// settle takes note of what became of a document, and adds to the rejections what
// has to be reported of it.
func (b *sourceBook) settle(c *choice, rejections []Rejection) []Rejection {
	d := c.document
	delete(b.unsettled, d)
	if c.held {
		if d.held.gone {
			delete(d.source.documents, d.name)
		}
		return rejections
	}
	if d.held.err == nil {
		b.unsettled[d] = struct{}{}
	}
	if heldBack := (*HeldBackError)(nil); errors.As(d.problem, &heldBack) {
		return d.source.reportHeldBack(rejections)
	}
	if d.reported {
		return rejections
	}
	d.reported = true
	return append(rejections, Rejection{d.source.name, d.name, d.held.revision, d.problem})
}

func (b *sourceBook) find(name string) *followed {
	for _, f := range b.list {
		if f.name == name {
			return f
		}
	}
	return nil
}

// Ready waits until every source that is followed has delivered all of its
// documents once and what is sound of them is in force; without sources it
// returns at once. The error is that of ctx, naming the sources that are
// missing and what keeps them, or [ErrClosed].
func (e *Engine) Ready(ctx context.Context) error {
	for {
		e.rules.mu.Lock()
		missing, change := e.sources.missing(), e.sources.change
		e.rules.mu.Unlock()
		if len(missing) == 0 {
			return nil
		}
		select {
		case <-change:
		case <-ctx.Done():
			return fmt.Errorf("core: not ready: %s: %w", strings.Join(missing, "; "), ctx.Err())
		case <-e.closed:
			return ErrClosed
		}
	}
}

// missing describes the sources that were not read yet.
func (b *sourceBook) missing() []string {
	var missing []string
	for _, f := range b.list {
		switch {
		case f.read:
		case f.err != nil:
			missing = append(missing, fmt.Sprintf("source %q: %v", f.name, f.err))
		default:
			missing = append(missing, fmt.Sprintf("source %q has not been read yet", f.name))
		}
	}
	return missing
}
