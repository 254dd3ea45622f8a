package core

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/rules"
)

// sourceBook is what the engine knows of the sources it follows. It is guarded
// by ruleBook.mu.
type sourceBook struct {
	list   []*followed   // in the order in which they were first followed
	change chan struct{} // closed and renewed with every change of what is in here
	ctx    context.Context
	cancel context.CancelFunc
}

func (b *sourceBook) init() {
	b.change = make(chan struct{})
	b.ctx, b.cancel = context.WithCancel(context.Background())
}

// changed wakes those who wait for a change.
func (b *sourceBook) changed() {
	close(b.change)
	b.change = make(chan struct{})
}

// documents returns the documents of all sources, in a fixed order.
func (b *sourceBook) documents() []*document {
	var all []*document
	for _, f := range b.list {
		first := len(all)
		for _, d := range f.documents {
			all = append(all, d)
		}
		slices.SortFunc(all[first:], func(a, b *document) int { return cmp.Compare(a.name, b.name) })
	}
	return all
}

// active returns the rules in force of all sources.
func (b *sourceBook) active() []rules.Set {
	var sets []rules.Set
	for _, d := range b.documents() {
		sets = append(sets, d.inForce.rules)
	}
	return sets
}

// followed is a source that is followed, and the sink that it writes to.
type followed struct {
	engine *Engine
	name   string
	ctx    context.Context

	// ruleBook.mu guards what follows.
	documents map[string]*document
	running   bool
	read      bool          // all of its documents were seen once
	connected bool          // it could be read when last tried
	since     clock.Instant // when connected last changed
	err       error         // why it is not connected
	revision  int64
}

// Follow keeps the rules of a source applied until ctx ends or the engine is
// closed; it returns at once. When ctx ends, the rules that the source had
// applied stay in force, and the source can be followed again. [Engine.Ready]
// tells when what the sources hold is in force, [Engine.Status] how they are.
//
// Any number of sources can be followed, each name once. A document that has a
// mistake, or a rule whose name is taken, is rejected: it is logged, told to the
// observer, shown in the status, and what was in force of it stays in force, as
// do all others.
func (e *Engine) Follow(ctx context.Context, source Source) error {
	e.rules.mu.Lock()
	defer e.rules.mu.Unlock()
	if e.isClosed() {
		return ErrClosed
	}
	f := e.sources.find(source.Name())
	if f == nil {
		f = &followed{engine: e, name: source.Name(), documents: make(map[string]*document), since: e.clock.Now()}
		e.sources.list = append(e.sources.list, f)
	}
	if f.running {
		return fmt.Errorf("core: source %q is followed already", f.name)
	}
	f.running = true
	ctx, cancel := context.WithCancel(ctx)
	f.ctx = ctx
	stop := context.AfterFunc(e.sources.ctx, cancel)
	e.running.Go(func() {
		defer cancel()
		defer stop()
		f.ended(source.Run(ctx, f))
	})
	return nil
}

func (b *sourceBook) find(name string) *followed {
	for _, f := range b.list {
		if f.name == name {
			return f
		}
	}
	return nil
}

// Apply is the engine's side of [Sink].
func (f *followed) Apply(change Change) { f.engine.report(f.apply(change)) }

func (f *followed) apply(change Change) outcome {
	e := f.engine
	e.rules.mu.Lock()
	defer e.rules.mu.Unlock()
	if f.ctx.Err() != nil || e.isClosed() {
		return outcome{}
	}
	f.hold(change)
	f.read = f.read || change.Complete
	f.revision = change.Revision
	f.connect(nil)
	defer e.sources.changed()
	return e.reconcile()
}

// Disconnected is the engine's side of [Sink].
func (f *followed) Disconnected(err error) {
	f.engine.rules.mu.Lock()
	defer f.engine.rules.mu.Unlock()
	if f.ctx.Err() == nil {
		f.connect(err)
		f.engine.sources.changed()
	}
}

// hold takes note of what the source holds now.
func (f *followed) hold(change Change) {
	seen := make(map[string]struct{}, len(change.Documents))
	for _, found := range change.Documents {
		seen[found.Name] = struct{}{}
		d := f.documents[found.Name]
		if d == nil {
			d = &document{source: f.name, name: found.Name}
			f.documents[found.Name] = d
		}
		d.hold(found)
	}
	for _, name := range change.Removed {
		delete(f.documents, name)
	}
	if change.Complete {
		for name := range f.documents {
			if _, there := seen[name]; !there {
				delete(f.documents, name)
			}
		}
	}
}

// connect notes that the source could be read, or why not.
func (f *followed) connect(err error) {
	now := f.engine.clock.Now()
	switch connected := err == nil; {
	case connected && !f.connected:
		f.engine.log.Info("penstock: source connected", slog.String("source", f.name), slog.Int64("revision", f.revision))
		f.since = now
	case !connected && (f.connected || f.err == nil):
		f.engine.log.Error("penstock: source lost, the rules in force stay",
			slog.String("source", f.name), slog.Any("error", err))
		f.since = now
	}
	f.connected, f.err = err == nil, err
}

// ended notes that the source is not followed any longer, and why.
func (f *followed) ended(err error) {
	f.engine.rules.mu.Lock()
	defer f.engine.rules.mu.Unlock()
	f.running = false
	if f.ctx.Err() == nil {
		f.connect(fmt.Errorf("core: source %q gave up: %w", f.name, cmp.Or(err, errors.New("no reason given"))))
	} else {
		f.connected = false
	}
	f.engine.sources.changed()
}

// outcome is what came of putting rules in force.
type outcome struct {
	swap       Swap        // the zero Swap if nothing changed
	rejections []Rejection // those that were not reported before
}

// reconcile puts in force the code's rules and what the sources hold, as far as
// it can be. The caller holds rules.mu and has seen that the engine is open.
func (e *Engine) reconcile() outcome {
	choices := choose(e.rules.code, e.sources.documents())
	sets := make([]rules.Set, 1, 1+len(choices))
	sets[0] = e.rules.code
	for _, c := range choices {
		sets = append(sets, c.version.rules)
	}
	all, err := rules.Merge(sets...)
	if err != nil {
		// choose has seen to it that no two names are the same.
		panic(fmt.Sprintf("core: documents clash after all: %v", err))
	}
	outcome := outcome{swap: e.swap(all)}
	for _, c := range choices {
		d := c.document
		if c.held {
			d.apply(e.clock.Now())
		} else if !d.reported {
			d.reported = true
			outcome.rejections = append(outcome.rejections, Rejection{d.source, d.name, d.held.revision, d.problem})
		}
	}
	return outcome
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
