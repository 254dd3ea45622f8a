package core

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"reflect"
	"runtime/debug"
	"time"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/core/internal/journal"
	"github.com/penstock-go/penstock/core/internal/ruleset"
)

// How long the engine waits before it starts a source again that has panicked.
const (
	minRestart = 100 * time.Millisecond
	maxRestart = 5 * time.Second
)

// sourceList is the sources that the engine follows. ruleStore.mu guards it.
type sourceList struct {
	list   []*followedSource // in the order in which they were first followed
	change chan struct{}     // closed with the next change of what is in here; nil unless somebody waits for that
	ctx    context.Context
	cancel context.CancelFunc
}

func (b *sourceList) init() {
	b.ctx, b.cancel = context.WithCancel(context.Background())
}

// changed wakes the goroutines that wait for a change.
func (b *sourceList) changed() {
	if b.change != nil {
		close(b.change)
		b.change = nil
	}
}

// nextChange returns a channel that is closed with the next change.
func (b *sourceList) nextChange() <-chan struct{} {
	if b.change == nil {
		b.change = make(chan struct{})
	}
	return b.change
}

func (b *sourceList) find(name string) *followedSource {
	for _, f := range b.list {
		if f.name == name {
			return f
		}
	}
	return nil
}

// followedSource is what is known of a source that is followed.
type followedSource struct {
	name string
	ctx  context.Context

	// ruleStore.mu guards what follows.
	source    *ruleset.Source // its documents
	running   bool
	read      bool          // all of its documents were seen once, from itself or from a copy
	copiedAt  clock.Instant // when what was seen last was copied; 0 if it was read from the source
	connected bool          // it could be read when last tried
	since     clock.Instant // when connected last changed
	err       error         // why it is not connected
	logged    string        // of that
	loggedAt  clock.Instant
}

// sourceSink is the [Sink] that a source writes to.
type sourceSink struct {
	engine *Engine
	*followedSource
}

// Follow keeps the rules of a source applied until ctx ends or the engine is
// closed; it returns at once. When ctx ends, the rules that the source had
// applied stay in force, and the source can be followed again. [Engine.Ready]
// tells when what the sources hold is in force, [Engine.Status] how they are.
//
// Any number of sources can be followed, each name once. A document that has a
// mistake, or a rule whose name is taken, is rejected: it is logged, reported to the
// observer, shown in the status, and what was in force of it stays in force, as
// do all others. A source that panics is reported likewise and started again, after
// 0.1 s at first and 5 s at most.
func (e *Engine) Follow(ctx context.Context, source Source) error {
	switch {
	case ctx == nil:
		return errors.New("core: Follow with a nil context: use context.Background() to follow until the engine is closed")
	case isNil(source):
		return errors.New("core: Follow of a nil source: was the error of what opens it ignored?")
	}
	e.rules.mu.Lock()
	defer e.rules.mu.Unlock()
	if e.isClosed() {
		return ErrClosed
	}
	f := e.sources.find(source.Name())
	if f == nil {
		f = &followedSource{name: source.Name(), since: e.clock.Now()}
		f.source = e.rules.book.Source(f.name)
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
		err := errors.New("it has ended its goroutine")
		sink := sourceSink{e, f}
		defer func() { sink.ended(err) }()
		err = sink.run(source)
	})
	return nil
}

// run runs the source until it returns. When it panics it is started again, after a
// pause that doubles each time unless it has run for long.
func (f sourceSink) run(source Source) error {
	pause := minRestart
	for {
		begun := f.engine.clock.Now()
		err := f.runOnce(source)
		panicked := (*SourcePanicError)(nil)
		if !errors.As(err, &panicked) || panicked.Source != f.name {
			return err
		}
		f.reportPanic(panicked)
		now := f.engine.clock.Now()
		if now.Sub(begun) >= maxRestart {
			pause = minRestart
		}
		if err := f.engine.sleepUntil(f.ctx, now.Add(pause), newSleeper()); err != nil {
			return err
		}
		pause = min(2*pause, maxRestart)
	}
}

// runOnce runs the source and returns a panic as a [*SourcePanicError].
func (f sourceSink) runOnce(source Source) (err error) {
	defer func() {
		if value := recover(); value != nil {
			err = &SourcePanicError{Source: f.name, Value: value, Stack: debug.Stack()}
		}
	}()
	return source.Run(f.ctx, f)
}

func (f sourceSink) reportPanic(err *SourcePanicError) {
	f.engine.log.Error("penstock: source panicked, the rules in force stay, it is started again",
		slog.String("source", f.name), slog.Any("error", err), slog.String("stack", string(err.Stack)))
	f.Disconnected(err)
	if f.engine.observer.Rejected != nil {
		f.engine.observer.Rejected(Rejection{Source: f.name, Err: err})
	}
}

// ended notes that the source is not followed any longer, and why.
func (f sourceSink) ended(err error) {
	f.engine.rules.mu.Lock()
	defer f.engine.rules.mu.Unlock()
	if f.connected || f.ctx.Err() == nil {
		f.since = f.engine.clock.Now()
	}
	f.running, f.connected = false, false
	if f.ctx.Err() == nil {
		f.err = fmt.Errorf("core: source %q gave up: %w", f.name, cmp.Or(err, errors.New("no reason given")))
		f.engine.log.Error("penstock: source gave up, the rules in force stay",
			slog.String("source", f.name), slog.Any("error", err))
		f.note(f.since, SourceEnded, err)
	}
	f.engine.sources.changed()
}

// Apply is the engine's side of [Sink].
func (f sourceSink) Apply(change Change) { f.engine.report(f.apply(change)) }

func (f sourceSink) apply(change Change) outcome {
	e := f.engine
	e.rules.mu.Lock()
	defer e.rules.mu.Unlock()
	if f.ctx.Err() != nil || e.isClosed() {
		return outcome{}
	}
	now := e.clock.Now()
	result := e.rules.book.Deliver(f.source, delivery(change), now)
	f.read = f.read || change.Complete
	f.copiedAt = change.CopiedAt
	defer e.sources.changed()
	applied := e.put(result, now) // before anything is logged, which may panic
	switch {
	case f.copiedAt == 0:
		f.connect(nil)
	case change.Complete:
		e.log.Warn("penstock: the source cannot be read, its last good copy is used",
			slog.String("source", f.name), slog.Int64("revision", f.source.Revision()),
			slog.String("age", now.Sub(f.copiedAt).String()))
		f.note(now, SourceOnCopy, f.err)
	}
	return applied
}

// delivery returns a change as package ruleset takes it.
func delivery(change Change) ruleset.Delivery {
	d := ruleset.Delivery{
		Complete: change.Complete, Removed: change.Removed, Revision: change.Revision, ConfirmedAt: change.ConfirmedAt,
	}
	for _, document := range change.Documents {
		d.Documents = append(d.Documents, ruleset.Document(document))
	}
	return d
}

// Disconnected is the engine's side of [Sink].
func (f sourceSink) Disconnected(err error) {
	defer f.engine.journal.Flush(f.engine.clock.Now(), false)
	f.engine.rules.mu.Lock()
	defer f.engine.rules.mu.Unlock()
	if f.ctx.Err() == nil {
		f.connect(err)
		f.engine.sources.changed()
	}
}

// connect notes that the source could be read, or why not.
func (f sourceSink) connect(err error) {
	now := f.engine.clock.Now()
	switch connected := err == nil; {
	case connected && !f.connected:
		f.engine.log.Info("penstock: source connected", slog.String("source", f.name), slog.Int64("revision", f.source.Revision()))
		f.since = now
		f.note(now, SourceConnected, nil)
	case !connected && (f.connected || f.err == nil):
		f.engine.log.Error("penstock: source lost, the rules in force stay",
			slog.String("source", f.name), slog.Any("error", err))
		f.since, f.logged, f.loggedAt = now, err.Error(), now
		f.note(now, SourceLost, err)
	case !connected && f.logged != err.Error() && journal.IsDue(f.loggedAt, now):
		f.engine.log.Error("penstock: source still lost, for another reason",
			slog.String("source", f.name), slog.Any("error", err))
		f.logged, f.loggedAt = err.Error(), now
		f.note(now, SourceLost, err)
	}
	f.connected, f.err = err == nil, err
}

// isNil says whether a source is nil, or a nil pointer.
func isNil(source Source) bool {
	if source == nil {
		return true
	}
	v := reflect.ValueOf(source)
	return v.Kind() == reflect.Pointer && v.IsNil()
}

// note notes how the source is.
func (f sourceSink) note(at clock.Instant, state string, err error) {
	f.engine.events.add(Event{
		At: at, Type: EventSource, Source: f.name, Revision: f.source.Revision(), To: state, Err: textOf(err),
	})
}
