// Package sources follows the sources of rules: it runs them, starts again those that panic, and knows how each of
// them is.
package sources

import (
	"context"
	"fmt"
	"log/slog"
	"sync"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/core/internal/ruleset"
	"github.com/penstock-go/penstock/core/internal/sleep"
)

// Config is what sources need of their engine.
type Config struct {
	Clock    clock.Clock
	Log      *slog.Logger
	Sleepers *sleep.Sleepers
	Go       func(func()) // starts a goroutine

	// Mu guards all that is known of the sources. Who calls holds it; the goroutines that run sources take it.
	Mu sync.Locker

	// Note is told how a source is from an instant on, and why.
	Note func(s *Source, at clock.Instant, how How, err error)
}

// How is how a source is.
type How int

// A source was Connected, or Lost; it is used OnCopy of what it held, or has Ended for good.
const (
	Connected How = iota
	Lost
	OnCopy
	Ended
)

// List is the sources that an engine follows.
type List struct {
	config Config
	all    []*Source     // in the order in which they were first followed
	change chan struct{} // closed with the next change of what is in here; nil unless somebody waits for that
	ctx    context.Context
	cancel context.CancelFunc
}

// Init makes the list ready to use.
func (l *List) Init(c Config) {
	l.config = c
	l.ctx, l.cancel = context.WithCancel(context.Background())
}

// Cancel has all sources end.
func (l *List) Cancel() { l.cancel() }

// Changed wakes the goroutines that wait for a change.
func (l *List) Changed() {
	if l.change != nil {
		close(l.change)
		l.change = nil
	}
}

// NextChange returns a channel that is closed with the next change.
func (l *List) NextChange() <-chan struct{} {
	if l.change == nil {
		l.change = make(chan struct{})
	}
	return l.change
}

// All returns the sources in the order in which they were first followed.
func (l *List) All() []*Source { return l.all }

// Find returns the source of a name; nil if there is none.
func (l *List) Find(name string) *Source {
	for _, s := range l.all {
		if s.Name == name {
			return s
		}
	}
	return nil
}

// Missing describes the sources that were not read yet.
func (l *List) Missing() (missing []string) {
	for _, s := range l.all {
		switch {
		case s.Ready:
		case s.Err != nil:
			missing = append(missing, fmt.Sprintf("source %q: %v", s.Name, s.Err))
		default:
			missing = append(missing, fmt.Sprintf("source %q has not been read yet", s.Name))
		}
	}
	return missing
}

// Follow runs the source of a name, which is not run already, until ctx ends. It is told what the source has panicked
// with. of returns the documents of one that was never followed before.
func (l *List) Follow(
	ctx context.Context, name string, of func(name string) *ruleset.Source,
	run func(context.Context, *Source) error, panicked func(s *Source, value any, stack []byte),
) error {
	s := l.Find(name)
	if s == nil {
		s = &Source{Name: name, Rules: of(name), list: l, State: State{Since: l.config.Clock.Now()}}
		l.all = append(l.all, s)
	}
	if s.running {
		return fmt.Errorf("core: source %q is followed already", name)
	}
	s.running = true
	ctx, cancel := context.WithCancel(ctx)
	s.ctx = ctx
	stop := context.AfterFunc(l.ctx, cancel)
	l.config.Go(func() {
		defer cancel()
		defer stop()
		s.run(ctx, run, panicked)
	})
	return nil
}
