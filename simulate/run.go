package simulate

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/penstock-go/penstock/clock"
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
	s := newSimulation(load, options, sharesLimits(set))
	defer s.close()
	if err := s.load(set); err != nil {
		return Result{}, fmt.Errorf("simulate: %w", err)
	}
	if err := s.findShared(load); err != nil {
		return Result{}, err
	}
	if err := s.run(ctx); err != nil {
		return Result{}, fmt.Errorf("simulate: after %v of %v: %w", s.now, options.Duration, err)
	}
	s.finishStates()
	result := Result{
		Seconds: s.rows.seconds, Events: s.events, States: s.states, Limits: s.limits.rows, Signals: s.limits.signals,
	}
	s.common.report(&result)
	return result, nil
}

// simulation is a run in progress.
type simulation struct {
	options   Options
	clock     *clock.Virtual
	instances []*instance
	streams   []stream

	begin    clock.Instant // of the simulation
	now      time.Duration // where the clock stands, since then
	arrivals heap[*source]
	queue    eventQueue
	pending  int // calls that wait or are served

	recharges []Recharge

	foregroundUntil time.Duration // the time of the last event that is not in the background

	woken     []*call // to be proceeded with before time moves, from proceeded on
	proceeded int

	// While rows are read, resource by resource, calls are woken whose time has come. If
	// the wait of one ends at this instant, its event proceeds with it, in the order of
	// waits.
	reading bool

	common *commonLimits // of limits by the instances; nil if they share none

	rows   *rows
	events []Event // of an arrival each, if asked for
	states []StateChange
	limits limits
}

// newSimulation returns a simulation without rules. Shared says whether there will be some
// whose limit is that of all instances together.
func newSimulation(load Load, options Options, shared bool) *simulation {
	rows := newRows(load, options.seconds())
	virtual := clock.NewVirtual(load.start())
	s := &simulation{
		options:  options,
		clock:    virtual,
		begin:    virtual.Now(),
		arrivals: newArrivals(load, options.Duration),
		queue:    newEventQueue(),
		rows:     rows,
		events:   []Event{}, // in JSON an empty list, not null
		states:   []StateChange{},
		limits:   newLimits(),

		recharges: load.Recharges,
	}
	if shared {
		s.common = newCommonLimits(load, options, virtual)
	}
	for number := range options.Instances {
		s.instances = append(s.instances, s.newInstance(load, number, virtual))
	}
	stages := stagesOf(load)
	for i := range load.Streams {
		stream := newStream(load, i, rows, len(s.instances))
		stream.stages = stages[stream.resource]
		s.streams = append(s.streams, stream)
	}
	return s
}

// load puts the rules in force on all instances.
func (s *simulation) load(set rules.Set) error {
	for _, i := range s.instances {
		if err := i.load(set, s.rows.resources); err != nil {
			return err
		}
	}
	return nil
}

// close ends the instances.
func (s *simulation) close() {
	for _, i := range s.instances {
		i.engine.Close()
	}
}

// run processes everything, in order, until there is nothing left.
func (s *simulation) run(ctx context.Context) error {
	s.queue.add(queuedEvent{kind: secondBegins})
	if len(s.instances[0].engine.Status().Signals) > 0 {
		s.queue.add(queuedEvent{kind: signalsSampled})
	}
	s.queueRecharges()
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
		s.foregroundUntil = s.now
		return s.arrive(s.nextCall())
	}
	e := s.queue.take()
	if !e.kind.background() {
		s.foregroundUntil = s.now
	}
	return s.process(e)
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
	case rechargeMade:
		return s.makeRecharge(e.index)
	case retryArrives:
		return s.arrive(e.call)
	case backendAsked:
		s.askBackend(e.trip)
	case replyArrives:
		s.takeReply(e.trip)
	case placesGranted:
		e.trip.instance.member.PlacesGranted(e.trip.limit)
		s.attend(e.trip.instance)
	case memberSteps:
		if e.number == e.trip.instance.step { // else it is due earlier
			return s.stepMember(e.trip.instance)
		}
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
	s.endSharedSecond()
	s.limits.beginSecond(s.instances, seconds(s.now), s.now == s.options.Duration)
	if s.now < s.options.Duration {
		s.rows.begin(s.instances, s.now)
		s.queue.add(queuedEvent{kind: secondSampled, at: s.now})
		s.queue.add(queuedEvent{kind: secondBegins, at: min(s.now+time.Second, s.options.Duration)})
	}
}
