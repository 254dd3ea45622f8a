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
// The error is [Faults] for a load that is invalid or larger than the
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
	s.makeLimiters(set)
	if err := s.run(ctx); err != nil {
		return Result{}, fmt.Errorf("simulate: after %v of %v: %w", s.now, options.Duration, err)
	}
	s.finishStates()
	return Result{
		Seconds: s.rows.seconds, Events: s.events, States: s.states, Limits: s.limits.rows, Signals: s.limits.signals,
	}, nil
}

// simulation is a run in progress.
type simulation struct {
	options Options
	clock   *clock.Virtual
	engine  *core.Engine
	streams []stream
	servers []*server
	signals *signals

	now      time.Duration // where the clock stands
	arrivals heap[*source]
	queue    eventQueue
	pending  int // calls that wait or are served

	woken     []*call // to be proceeded with before time moves, from proceeded on
	proceeded int

	// While rows are read, resource by resource, calls are woken whose time has come. If
	// the wait of one ends at this instant, its event proceeds with it, in the order of
	// waits.
	reading bool

	rows   *rows
	events []Event // of an arrival each, if asked for
	states []StateChange
	limits limits
}

func newSimulation(load Load, options Options) *simulation {
	rows := newRows(load, options.seconds())
	virtual := clock.NewVirtual(time.Unix(0, 0))
	s := &simulation{
		options:  options,
		clock:    virtual,
		servers:  newServers(load),
		arrivals: newArrivals(load, options.Duration),
		queue:    newEventQueue(),
		rows:     rows,
		events:   []Event{}, // in JSON an empty list, not null
		states:   []StateChange{},
		limits:   newLimits(),
	}
	s.signals = newSignals(load, s.servers)
	s.engine = core.New(core.Config{
		Clock:        virtual,
		Logger:       slog.New(slog.DiscardHandler),
		MaxResources: max(core.DefaultMaxResources, len(rows.resources)),
		Kinds:        options.Kinds,
		Seed:         limiterSeed(load),
		Lists:        options.Lists,
		Observer:     core.Observer{StateChanged: s.stateChanged},

		Signals:        s.signals,
		SignalInterval: -1, // sampleSignals does it
	})
	served := servedBy(load)
	for i := range load.Streams {
		stream := newStream(load, i, rows)
		if by := served[stream.resource]; len(by) > 0 {
			stream.server = s.servers[by[0]]
		}
		s.streams = append(s.streams, stream)
	}
	return s
}

// makeLimiters has limits that move begin at the start rather than with the first call of
// a resource.
func (s *simulation) makeLimiters(set rules.Set) {
	for r := range set.All() {
		if r.Type().LimitMoves() {
			for _, name := range s.rows.resources {
				s.engine.Resource(name)
			}
			return
		}
	}
}

// run processes everything, in order, until there is nothing left.
func (s *simulation) run(ctx context.Context) error {
	s.queue.add(queuedEvent{kind: secondBegins})
	if len(s.engine.Status().Signals) > 0 {
		s.queue.add(queuedEvent{kind: signalsSampled})
	}
	for ctx.Err() == nil {
		if len(s.woken) > 0 && !s.endsNow() {
			if err := s.proceedWoken(); err != nil {
				return err
			}
			continue
		}
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

// end completes the rows and makes sure that no call was lost.
func (s *simulation) end() error {
	s.rows.summarise()
	if s.pending != 0 {
		return fmt.Errorf("%d calls wait that nothing wakes", s.pending)
	}
	return nil
}

// endsNow says whether there are events of this instant that come before those of
// waiting calls: ends and timeouts. Rules learn of them first, so that a call does not
// pass a circuit breaker that opens at the same instant.
func (s *simulation) endsNow() bool {
	return s.queue.len() > 0 && s.queue.top().at == s.now && s.queue.top().kind < waitOver
}

// next returns when the next event is due, and whether it is an arrival, which
// come after all other events of the same instant.
func (s *simulation) next() (at time.Duration, arrives bool) {
	at = endless
	if s.queue.len() > 0 {
		at = s.queue.top().at
	}
	if s.arrivals.len() > 0 && s.arrivals.top().next < at {
		return s.arrivals.top().next, true
	}
	return at, false
}

// step processes the next event.
func (s *simulation) step(arrives bool) error {
	if arrives {
		return s.arrive(s.nextCall())
	}
	return s.process(s.queue.pop())
}

// proceedWoken proceeds with the call that was woken first.
func (s *simulation) proceedWoken() error {
	c := s.woken[s.proceeded]
	s.woken[s.proceeded] = nil
	if s.proceeded++; s.proceeded == len(s.woken) {
		s.woken, s.proceeded = s.woken[:0], 0
	}
	c.woken = false
	return s.proceed(c)
}

// process processes an event of the queue.
func (s *simulation) process(e queuedEvent) error {
	switch e.kind {
	case signalsSampled:
		s.sampleSignals()
	case secondBegins:
		s.beginSecond()
	case workEnds:
		return s.endWork(e.call)
	case timeoutOver:
		s.timeOut(e.call)
	case secondSampled:
		s.rows.sampleAll(s.now)
	case retryArrives:
		return s.arrive(e.call)
	case waitOver:
		if e.number == e.call.timer { // else it was woken before
			return s.proceed(e.call)
		}
	}
	return nil
}

// beginSecond notes the ceilings and limits and reports how far the simulation is.
func (s *simulation) beginSecond() {
	if s.now > 0 && s.options.Progress != nil {
		s.options.Progress(s.now, s.options.Duration)
	}
	s.reading = true
	defer func() { s.reading = false }()
	s.limits.beginSecond(s.engine, seconds(s.now), s.now == s.options.Duration)
	if s.now < s.options.Duration {
		s.rows.begin(s.engine, s.now)
		s.queue.add(queuedEvent{kind: secondSampled, at: s.now})
		s.queue.add(queuedEvent{kind: secondBegins, at: min(s.now+time.Second, s.options.Duration)})
	}
}
