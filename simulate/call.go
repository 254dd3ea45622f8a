package simulate

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/penstock-go/penstock/core"
)

// call is one call from its arrival to its end.
type call struct {
	arrival *core.Arrival // until it is done
	guard   *core.Guard   // once it has passed
	stream  *stream
	arrived time.Duration
	event   int    // the index of its event, if events are asked for
	turn    uint64 // the entry of the agenda that proceeds with it, 0 if none does
	woken   bool   // it is among those to be proceeded with
}

// arrive lets the next call arrive.
func (s *simulation) arrive() error {
	source := s.arrivals.top()
	c := &call{stream: &s.streams[source.stream], arrived: source.next, event: len(s.events)}
	if source.advance() {
		s.arrivals.sink()
	} else {
		s.arrivals.pop()
	}
	s.rows.at(c.arrived, c.stream.row).Offered++
	if s.options.Events {
		s.events = append(s.events, Event{T: seconds(c.arrived), Resource: c.stream.resource})
	}
	if s.pending++; s.pending > MaxPending {
		return fmt.Errorf("more than %d calls wait or are served: lower the rates, maxWait or serviceTime", MaxPending)
	}
	// Its own context: the deadline of the run is one of another time.
	c.arrival = s.engine.Arrive(context.Background(), c.stream.resource, func() { s.wake(c) }, c.stream.options...)
	return s.proceed(c)
}

// wake notes that the call is to be proceeded with.
func (s *simulation) wake(c *call) {
	if !c.woken {
		c.woken = true
		s.woken = append(s.woken, c)
	}
}

// proceed lets the call go on as far as it can at this instant.
func (s *simulation) proceed(c *call) error {
	if c.arrival == nil { // woken once more by the turn that it has taken
		return nil
	}
	after, done := c.arrival.Proceed()
	switch {
	case done:
		return s.finish(c)
	case after > 0:
		c.turn = s.agenda.add(entry{at: s.now + after, kind: turnFalls, call: c})
	default:
		c.turn = 0
	}
	return nil
}

// finish accounts for what became of the call.
func (s *simulation) finish(c *call) error {
	guard, err := c.arrival.Result()
	c.arrival, c.turn = nil, 0
	var blocked *core.BlockError
	if err != nil && !errors.As(err, &blocked) {
		return fmt.Errorf("a call of %q: %w", c.stream.resource, err)
	}
	wait := s.now - c.arrived
	if s.options.Events {
		s.events[c.event].decide(wait, blocked)
	}
	if blocked != nil {
		s.pending--
		s.rows.at(c.arrived, c.stream.row).Blocked++
		return nil
	}
	if row := s.rows.at(s.now, c.stream.row); row != nil {
		row.pass(wait)
	}
	c.guard = guard
	s.agenda.add(entry{at: s.now + c.stream.serviceTime, kind: callEnds, call: c})
	return nil
}

// seconds returns the number of seconds that is nearest to the time, which
// [time.Duration.Seconds] does not always.
func seconds(d time.Duration) float64 { return float64(d) / float64(time.Second) }

// decide fills in what became of the call.
func (e *Event) decide(wait time.Duration, blocked *core.BlockError) {
	e.Outcome, e.Wait = Pass, seconds(wait)
	if blocked != nil {
		e.Outcome, e.Rule, e.Kind = Block, blocked.Rule, string(blocked.Kind)
	}
}
