package simulate

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/rules"
)

// Run sends the calls of a load through an engine with the given rules and
// returns what became of them. Calls that wait when the duration is over are
// followed to the end of their wait.
//
// The error is [Faults] for a load that makes no sense or is larger than the
// bounds of this package, [rules.Problems] for such rules, or that of ctx, which
// ends a long run. Run works in the goroutine that calls it.
func Run(ctx context.Context, set rules.Set, load Load, options Options) (Result, error) {
	if ctx == nil {
		return Result{}, errors.New("simulate: the context is nil: use context.Background() if nothing is to end the run")
	}
	options, err := options.complete(load)
	if err != nil {
		return Result{}, err
	}
	s := newSimulation(load, options)
	defer s.engine.Close()
	if err := s.engine.Load(set); err != nil {
		return Result{}, fmt.Errorf("simulate: %w", err)
	}
	if err := s.run(ctx); err != nil {
		return Result{}, fmt.Errorf("simulate: after %v of %v: %w", s.now, options.Duration, err)
	}
	return Result{Seconds: s.rows.seconds, Events: s.events}, nil
}

// simulation is a run under way.
type simulation struct {
	options Options
	clock   *clock.Virtual
	engine  *core.Engine
	streams []stream

	now      time.Duration // where the clock stands
	arrivals heap[*source]
	agenda   agenda
	woken    []*call // to be proceeded with before time moves
	pending  int     // calls that wait or are served

	rows   *rows
	events []Event // of an arrival each, if asked for
}

// stream is what all calls of a stream have in common.
type stream struct {
	resource    string
	row         int // of its resource within a second
	options     []core.Option
	serviceTime time.Duration
}

func newSimulation(load Load, options Options) *simulation {
	rows := newRows(load, options.seconds())
	virtual := clock.NewVirtual(time.Unix(0, 0))
	s := &simulation{
		options: options,
		clock:   virtual,
		engine: core.New(core.Config{
			Clock:        virtual,
			Logger:       slog.New(slog.DiscardHandler),
			MaxResources: max(core.DefaultMaxResources, len(rows.resources)),
		}),
		arrivals: newArrivals(load, options.Duration),
		agenda:   newAgenda(),
		rows:     rows,
		events:   []Event{}, // in JSON an empty list, not null
	}
	for _, of := range load.Streams {
		s.streams = append(s.streams, newStream(of, rows))
	}
	return s
}

func newStream(of Stream, rows *rows) stream {
	s := stream{resource: of.Resource, row: rows.indexOf(of.Resource), serviceTime: of.ServiceTime}
	if of.Tokens > 0 {
		s.options = append(s.options, core.Tokens(of.Tokens))
	}
	if of.Origin != "" {
		s.options = append(s.options, core.Origin(of.Origin))
	}
	return s
}

// run lets everything happen, in order, until there is nothing left.
func (s *simulation) run(ctx context.Context) error {
	s.agenda.add(entry{kind: secondBegins})
	for ctx.Err() == nil {
		at, arrives := s.next()
		if at == endless {
			return s.end()
		}
		s.clock.Advance(at - s.now)
		s.now = at
		if err := s.step(arrives); err != nil {
			return err
		}
	}
	return ctx.Err()
}

// end makes sure that no call was lost.
func (s *simulation) end() error {
	if s.pending > 0 {
		return fmt.Errorf("%d calls wait that nothing wakes", s.pending)
	}
	return nil
}

// next tells when the next thing happens, and whether it is an arrival: the
// last of what happens at the same instant.
func (s *simulation) next() (at time.Duration, arrives bool) {
	at = endless
	if s.agenda.len() > 0 {
		at = s.agenda.top().at
	}
	if s.arrivals.len() > 0 && s.arrivals.top().next < at {
		return s.arrivals.top().next, true
	}
	return at, false
}

// step lets the next thing happen, and what follows from it at once.
func (s *simulation) step(arrives bool) error {
	if arrives {
		if err := s.arrive(); err != nil {
			return err
		}
	} else if err := s.happen(s.agenda.pop()); err != nil {
		return err
	}
	for i := 0; i < len(s.woken); i++ { // which may grow
		s.woken[i].woken = false
		if err := s.proceed(s.woken[i]); err != nil {
			return err
		}
	}
	s.woken = s.woken[:0]
	return nil
}

// happen lets an entry of the agenda happen.
func (s *simulation) happen(e entry) error {
	switch e.kind {
	case secondBegins:
		s.beginSecond()
	case callEnds:
		s.pending--
		e.call.guard.Exit()
	case turnFalls:
		if e.number == e.call.turn { // else it was woken before
			return s.proceed(e.call)
		}
	}
	return nil
}

// beginSecond looks at the ceilings and reports how far the simulation is.
func (s *simulation) beginSecond() {
	if s.now > 0 && s.options.Progress != nil {
		s.options.Progress(s.now, s.options.Duration)
	}
	if s.now < s.options.Duration {
		s.rows.begin(s.engine, s.now)
		s.agenda.add(entry{kind: secondBegins, at: min(s.now+time.Second, s.options.Duration)})
	}
}
