package core

import (
	"context"
	"errors"
	"log/slog"
	"reflect"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/core/internal/ruleset"
	"github.com/penstock-go/penstock/core/internal/sources"
	"github.com/penstock-go/penstock/internal/sourcepanic"
)

// sourceSink is the [Sink] that a source writes to.
type sourceSink struct {
	engine *Engine
	of     *sources.Source
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
	return e.sources.Follow(ctx, source.Name(), e.rules.book.Source,
		func(ctx context.Context, of *sources.Source) error { return source.Run(ctx, sourceSink{e, of}) }, e.reportPanic)
}

// reportPanic reports that a source has panicked.
func (e *Engine) reportPanic(of *sources.Source, value any, stack []byte) {
	err := &sourcepanic.Error{Source: of.Name, Value: value, Stack: stack}
	e.log.Error("penstock: source panicked, the rules in force stay, it is started again",
		slog.String("source", of.Name), slog.Any("error", err), slog.String("stack", string(stack)))
	sourceSink{e, of}.Disconnected(err)
	if e.observer.Rejected != nil {
		e.observer.Rejected(Rejection{Source: of.Name, Err: err})
	}
}

// Apply is the engine's side of [Sink].
func (f sourceSink) Apply(change Change) { f.engine.report(f.apply(change)) }

func (f sourceSink) apply(change Change) outcome {
	e := f.engine
	e.rules.mu.Lock()
	defer e.rules.mu.Unlock()
	if f.of.HasEnded() || e.isClosed() {
		return outcome{}
	}
	now := e.clock.Now()
	result := e.rules.book.Deliver(f.of.Rules, delivery(change), now)
	f.of.Received(change.Complete, change.CopiedAt)
	defer e.sources.Changed()
	applied := e.put(result, now) // before anything is logged, which may panic
	f.of.InForce(change.Complete, now)
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
	f.of.Disconnected(err)
}

// isNil says whether a source is nil, or a nil pointer.
func isNil(source Source) bool {
	if source == nil {
		return true
	}
	v := reflect.ValueOf(source)
	return v.Kind() == reflect.Pointer && v.IsNil()
}

// noteSource adds the event of how a source is.
func (e *callEnv) noteSource(s *sources.Source, at clock.Instant, how sources.How, err error) {
	to := [...]string{sources.Connected: sourceConnected, sources.Lost: sourceLost, sources.OnCopy: sourceOnCopy, sources.Ended: sourceEnded}
	e.events.add(Event{At: at, Type: eventSource, Source: s.Name, Revision: s.Rules.Revision(), To: to[how], Err: textOf(err)})
}
