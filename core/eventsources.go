package core

import (
	"cmp"
	"context"
	"log/slog"
	"strings"
	"sync"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/list"
)

func (e *Engine) noteSwap(s *Swap, source string) {
	e.events.add(Event{
		At: s.At, Type: EventSwap, Source: source, Revision: int64(s.Revision),
		Rules: s.Rules, Added: s.Added, Changed: s.Changed, Removed: s.Removed,
	})
}

func (e *Engine) noteRejection(r *Rejection) {
	e.events.add(Event{
		At: e.clock.Now(), Type: EventRejection, Source: r.Source, Document: r.Document, Revision: r.Revision, Err: textOf(r.Err),
	})
}

// note notes how the source is.
func (f sourceSink) note(at clock.Instant, state string, err error) {
	f.engine.events.add(Event{
		At: at, Type: EventSource, Source: f.name, Revision: f.source.Revision(), To: state, Err: textOf(err),
	})
}

func textOf(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// listKey is a list of a provider.
type listKey struct {
	name string
	list.Provider
}

// listState is what is known of it.
type listState struct {
	since clock.Instant
	how   string // [Event.To]
	err   string
}

// listStates are those that were noted last.
type listStates struct {
	mu    sync.Mutex // guards what follows
	noted map[listKey]listState
}

// swap sets the states, and returns those before.
func (l *listStates) swap(next map[listKey]listState) (before map[listKey]listState) {
	l.mu.Lock()
	defer l.mu.Unlock()
	before, l.noted = l.noted, next
	return before
}

// stateOfList returns how a list is, in the words of [Event.To].
func stateOfList(s *list.Status) listState {
	state := listState{since: s.Since, how: "in force"}
	switch {
	case s.HeldBack != nil:
		state.how, state.err = "held back", s.HeldBack.Error()
	case s.Err != nil:
		state.how, state.err = "rejected", s.Err.Error()
	case s.CopiedAt != 0:
		state.how = "on a copy"
	case !s.InForce:
		state.how = "not in force"
	}
	return state
}

// noteLists notes which lists have changed since it was last called. Lists may belong to several
// engines, so that nobody tells.
func (e *Engine) noteLists() {
	if !e.events.Keeps() {
		return
	}
	status, now := e.lists.Status(), e.clock.Now()
	next := make(map[listKey]listState, len(status))
	for i := range status {
		next[listKey{status[i].Name, status[i].Provider}] = stateOfList(&status[i])
	}
	before := e.listStates.swap(next)
	for i := range status {
		s := &status[i]
		key := listKey{s.Name, s.Provider}
		state := next[key]
		if before[key] == state {
			continue
		}
		at := cmp.Or(s.Since, now)
		if was, known := before[key]; known && was.since == s.Since {
			at = cmp.Or(s.FailedAt, now)
		}
		e.events.add(Event{
			At: at, Type: EventList, Source: s.Source, Document: s.Document, Resource: s.Name, To: state.how, Err: state.err,
		})
	}
	for key := range before {
		if _, there := next[key]; !there {
			e.events.add(Event{At: now, Type: EventList, Source: key.Source, Document: key.Document, Resource: key.name, To: "gone"})
		}
	}
}

// fleetLogger returns the logger of the fleet's member, whose lines become events, too.
func fleetLogger(of *callEnv) *slog.Logger { return slog.New(&fleetLog{of.log.Handler(), of}) }

// fleetLog is a handler that makes events of the lines of the fleet.
type fleetLog struct {
	slog.Handler
	env *callEnv
}

// Enabled implements [slog.Handler].
func (f *fleetLog) Enabled(context.Context, slog.Level) bool { return true }

// Handle implements [slog.Handler].
func (f *fleetLog) Handle(ctx context.Context, line slog.Record) error {
	e := Event{At: f.env.clock.Now(), Type: EventFleet, Text: strings.TrimPrefix(line.Message, "penstock: ")}
	line.Attrs(func(a slog.Attr) bool {
		if a.Key == "error" || a.Key == "panic" {
			e.Err = a.Value.String()
		}
		return true
	})
	f.env.events.add(e)
	if !f.Handler.Enabled(ctx, line.Level) {
		return nil
	}
	return f.Handler.Handle(ctx, line)
}
