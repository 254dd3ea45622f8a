package sources

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"time"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/core/internal/journal"
	"github.com/penstock-go/penstock/core/internal/ruleset"
)

// How long it takes until a source is started again that has panicked.
const (
	minRestart = 100 * time.Millisecond
	maxRestart = 5 * time.Second
)

// Source is what is known of a source that is followed.
type Source struct {
	Name  string
	Rules *ruleset.Source // its documents
	State

	list     *List
	ctx      context.Context
	running  bool
	logged   string // why it is lost
	loggedAt clock.Instant
}

// State is how a source is.
type State struct {
	Ready     bool          // all of its documents were seen once, from itself or from a copy
	CopiedAt  clock.Instant // when what was seen last was copied; 0 if it was read from the source
	Connected bool          // it could be read when last tried
	Since     clock.Instant // when Connected last changed, or when it was first followed
	Err       error         // why it is not connected
}

// HasEnded says whether the source is to end: what it still delivers has no effect.
func (s *Source) HasEnded() bool { return s.ctx.Err() != nil }

// Received notes that the source has delivered its documents, or some of them, or a copy of them.
func (s *Source) Received(complete bool, copiedAt clock.Instant) {
	s.Ready = s.Ready || complete
	s.CopiedAt = copiedAt
}

// InForce tells that what was received last is in force since now.
func (s *Source) InForce(complete bool, now clock.Instant) {
	switch {
	case s.CopiedAt == 0:
		s.connect(nil)
	case complete:
		s.list.config.Log.Warn("penstock: the source cannot be read, its last good copy is used",
			slog.String("source", s.Name), slog.Int64("revision", s.Rules.Revision()),
			slog.String("age", now.Sub(s.CopiedAt).String()))
		s.list.config.Note(s, now, OnCopy, s.Err)
	}
}

// Disconnected notes why the source could not be read.
func (s *Source) Disconnected(err error) {
	if !s.HasEnded() {
		s.connect(err)
		s.list.Changed()
	}
}

// connect notes that the source could be read, or why not.
func (s *Source) connect(err error) {
	c := &s.list.config
	now := c.Clock.Now()
	switch connected := err == nil; {
	case connected && !s.Connected:
		c.Log.Info("penstock: source connected", slog.String("source", s.Name), slog.Int64("revision", s.Rules.Revision()))
		s.Since = now
		c.Note(s, now, Connected, nil)
	case !connected && (s.Connected || s.Err == nil):
		c.Log.Error("penstock: source lost, the rules in force stay", slog.String("source", s.Name), slog.Any("error", err))
		s.Since, s.logged, s.loggedAt = now, err.Error(), now
		c.Note(s, now, Lost, err)
	case !connected && s.logged != err.Error() && journal.IsDue(s.loggedAt, now):
		c.Log.Error("penstock: source still lost, for another reason", slog.String("source", s.Name), slog.Any("error", err))
		s.logged, s.loggedAt = err.Error(), now
		c.Note(s, now, Lost, err)
	}
	s.Connected, s.Err = err == nil, err
}

// run runs the source until it returns. When it panics it is started again, after a pause that doubles each time
// unless it has run for long.
func (s *Source) run(
	ctx context.Context, run func(context.Context, *Source) error, panicked func(s *Source, value any, stack []byte),
) {
	err := errors.New("it has ended its goroutine")
	defer func() { s.ended(err) }()
	clock := s.list.config.Clock
	for pause := minRestart; ; pause = min(2*pause, maxRestart) {
		begun := clock.Now()
		stack, value, returned := runOnce(ctx, s, run)
		if stack == nil {
			err = returned
			return
		}
		panicked(s, value, stack)
		now := clock.Now()
		if now.Sub(begun) >= maxRestart {
			pause = minRestart
		}
		if ended := s.list.config.Sleepers.Until(ctx, now.Add(pause)); ended != nil {
			err = ended
			return
		}
	}
}

// runOnce runs the source. If it panics it returns where, and with what.
func runOnce(ctx context.Context, s *Source, run func(context.Context, *Source) error) (stack []byte, value any, err error) {
	defer func() {
		if value = recover(); value != nil {
			stack = debug.Stack()
		}
	}()
	return nil, nil, run(ctx, s)
}

// ended notes that the source is not followed any longer, and why.
func (s *Source) ended(err error) {
	c := &s.list.config
	c.Mu.Lock()
	defer c.Mu.Unlock()
	if s.Connected || !s.HasEnded() {
		s.Since = c.Clock.Now()
	}
	s.running, s.Connected = false, false
	if !s.HasEnded() {
		s.Err = fmt.Errorf("core: source %q gave up: %w", s.Name, cmp.Or(err, errors.New("no reason given")))
		c.Log.Error("penstock: source gave up, the rules in force stay", slog.String("source", s.Name), slog.Any("error", err))
		c.Note(s, s.Since, Ended, err)
	}
	s.list.Changed()
}
