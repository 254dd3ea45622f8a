package core

import (
	"context"
	"fmt"
	"strings"
)

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
func (b *sourceList) missing() []string {
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
