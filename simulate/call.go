package simulate

import (
	"context"
	"fmt"
	"time"

	"github.com/penstock-go/penstock/core"
)

// call is one call from its arrival to its end.
type call struct {
	arrival  *core.Arrival // until it is decided
	guard    *core.Guard   // while it is under way
	stream   *stream
	instance *instance     // that it goes to
	event    int           // the index of its row among the events, if they are asked for
	timer    uint64        // the number of the event that ends its wait, 0 if none does
	due      time.Duration // when that event is
	woken    bool          // it is among those to proceed with
	fails    bool          // when it ends
	demoted  bool          // by a rule
	cost     int           // that is settled then, -1 for none

	arrived, passed time.Duration // passed: or was refused
	serviceTime     time.Duration // of a call that no server serves

	server     *server       // that it has come to; nil if it visits none
	service    int           // what the server has for it
	next       int           // the index of the stage after that
	nested     bool          // the guard of the server has not decided yet
	inner      *core.Guard   // of what the server is asked, if it has a guard
	workLeft   time.Duration // that the server has not begun, of a call whose service has begun
	waitsSince time.Duration // for a worker

	number  uint64 // within its stream
	retry   int    // 0 for a call that is none
	options []core.Option
	attrs   AttrValues
}

// nextCall returns the call that arrives next.
func (s *simulation) nextCall() *call {
	source := s.arrivals.top()
	c := &call{
		stream: &s.streams[source.stream], arrived: source.next, number: uint64(source.count - 1),
	}
	if source.advance() {
		s.arrivals.sink()
	} else {
		s.arrivals.pop()
	}
	c.options, c.attrs = c.stream.callOptions(c.number)
	c.cost = c.stream.costs.next()
	return c
}

// retry queues another try of a call that was refused or has failed.
func (s *simulation) retry(c *call) {
	at := s.now + c.stream.delay
	if c.retry == c.stream.retries || at >= s.options.Duration {
		return
	}
	s.queue.add(queuedEvent{at: at, kind: retryArrives, call: &call{
		stream: c.stream, arrived: at, number: c.number, retry: c.retry + 1, options: c.options, attrs: c.attrs, cost: c.cost,
	}})
}

// arrive processes the arrival of a call.
func (s *simulation) arrive(c *call) error {
	c.instance = s.instances[c.stream.dealer.deal()]
	phase := c.stream.phaseAt(c.arrived)
	c.serviceTime, c.fails = phase.serviceTime, phase.fails.includes(c.number+uint64(c.retry))
	s.rows.at(c.arrived, c.stream.row).Offered++
	if s.options.Events {
		c.event = len(s.events)
		s.events = append(s.events, Event{}) // its place; report fills it in
	}
	if s.pending++; s.pending > maxPending {
		return fmt.Errorf("more than %d calls wait or are served: lower the rates, maxWait or serviceTime", maxPending)
	}
	// Its own context: the deadline of the run is one of another time.
	c.arrival = new(core.Arrival)
	c.arrival.Arrive(context.Background(), c.instance.engine, c.stream.resource, func() { s.wake(c) }, c.options...)
	return s.proceed(c)
}

// wake notes that the call is to be proceeded with.
func (s *simulation) wake(c *call) {
	if c.woken || s.reading && c.timer != 0 && c.due == s.now {
		return
	}
	c.woken = true
	s.woken = append(s.woken, c)
}

// proceed goes on with a call that is not decided yet, as far as that is possible
// at this instant.
func (s *simulation) proceed(c *call) error {
	if c.arrival == nil { // woken once more by what has decided it
		return nil
	}
	c.timer = 0
	after, done := c.arrival.Proceed()
	s.attend(c.instance)
	switch {
	case done:
		return s.decided(c)
	case after > 0:
		c.due = s.now + after
		c.timer = s.queue.add(queuedEvent{at: c.due, kind: waitOver, call: c})
	}
	return nil
}

// decided records whether the call has passed, and serves it if it has.
func (s *simulation) decided(c *call) error {
	guard, err := c.arrival.Result()
	c.arrival = nil
	if c.nested {
		return s.nestedDecided(c, guard, err)
	}
	blocked, _ := err.(*core.BlockError) //nolint:errorlint // it is never wrapped, and errors.As takes 8 % of a run
	if err != nil && blocked == nil {
		return fmt.Errorf("a call of %q: %w", c.stream.resource, err)
	}
	c.passed = s.now
	s.common.decided(c, blocked)
	if blocked != nil {
		s.pending--
		s.rows.at(c.arrived, c.stream.row).Blocked++
		s.report(c, blocked, false)
		s.retry(c)
		return nil
	}
	c.guard, c.demoted = guard, guard.Demoted()
	s.rows.pass(s.now, c.stream.row, s.now-c.arrived)
	return s.serve(c)
}

// serve begins the work for a call that has passed.
func (s *simulation) serve(c *call) error {
	timeout := c.stream.timeout
	if !c.visit() {
		if timeout > 0 && timeout < c.serviceTime {
			s.queue.add(queuedEvent{at: s.now + timeout, kind: timeoutOver, call: c})
		} else {
			s.queue.add(queuedEvent{at: s.now + c.serviceTime, kind: workEnds, call: c})
		}
		s.rows.beginCall(s.now, c.stream.row, c.hasLength())
		return nil
	}
	if timeout > 0 {
		s.queue.add(queuedEvent{at: s.now + timeout, kind: timeoutOver, call: c})
	}
	s.rows.beginCall(s.now, c.stream.row, c.hasLength())
	return s.comeTo(c)
}

// comeTo has the server that a call has come to accept it, or its guard decide on that.
func (s *simulation) comeTo(c *call) error {
	if c.server.of.Guard == "" {
		return s.beginWork(c.server.accept(s.now, c))
	}
	c.nested = true
	ctx := context.Background()
	if c.guard != nil {
		ctx = c.guard.Context(ctx)
	}
	c.arrival = new(core.Arrival)
	c.arrival.Arrive(ctx, c.instance.engine, c.server.of.Guard, func() { s.wake(c) }, c.stream.nested...)
	return s.proceed(c)
}

// nestedDecided goes on with a call on which the guard of its server has decided.
func (s *simulation) nestedDecided(c *call, guard *core.Guard, refused error) error {
	c.nested = false
	if refused == nil {
		c.inner = guard
		return s.beginWork(c.server.accept(s.now, c))
	}
	s.pending--
	if c.guard != nil {
		s.endCall(c, refused)
	}
	return nil
}

// beginWork lets a worker begin or go on with a call of its server; nil is none.
func (s *simulation) beginWork(c *call) error {
	if c == nil {
		return nil
	}
	took, err := c.server.work(s.now, c)
	if err != nil {
		return err
	}
	s.queue.add(queuedEvent{at: s.now + took, kind: workEnds, call: c})
	return nil
}

// endWork ends the work of a server for a call. The call goes on to the next server, or
// ends unless it timed out before. If it is only its time slice that is over, its worker
// takes the next call.
func (s *simulation) endWork(c *call) error {
	server := c.server
	if c.workLeft > 0 {
		return s.beginWork(server.turn(s.now, c))
	}
	if c.inner != nil {
		c.inner.Exit()
		c.inner = nil
		s.attend(c.instance)
	}
	if c.visit() {
		if err := s.comeTo(c); err != nil {
			return err
		}
	} else {
		s.finish(c)
	}
	if server == nil {
		return nil
	}
	return s.beginWork(server.release(s.now))
}

// finish ends a call for which everything is done, unless it timed out before.
func (s *simulation) finish(c *call) {
	s.pending--
	if c.guard == nil {
		return
	}
	var failure error
	if c.fails {
		failure = errFailed
	}
	s.endCall(c, failure)
}

// timeOut ends a call whose timeout is over, unless it has ended. Only servers go on with
// their work.
func (s *simulation) timeOut(c *call) {
	if c.guard == nil {
		return
	}
	s.endCall(c, errTimedOut)
	if c.server == nil {
		s.pending--
	}
}

// hasLength says whether a call that has passed is under way for a time. One that
// ends when it passes never is.
func (c *call) hasLength() bool { return c.server != nil || c.serviceTime > 0 }

// endCall ends a call that has passed.
func (s *simulation) endCall(c *call, failure error) {
	if c.cost >= 0 {
		c.guard.Settle(c.cost)
	}
	c.guard.Fail(failure)
	c.guard.Exit()
	c.guard = nil
	s.attend(c.instance)
	s.rows.endCall(s.now, c.stream.row, s.now-c.passed, failure != nil, c.hasLength())
	s.report(c, nil, failure != nil)
	if failure != nil {
		s.retry(c)
	}
}

// seconds returns the number of seconds that is nearest to the time, which
// [time.Duration.Seconds] does not always.
func seconds(d time.Duration) float64 { return float64(d) / float64(time.Second) }

// report tells whoever asked for events what became of a call: it was blocked, or it
// has ended now.
func (s *simulation) report(c *call, blocked *core.BlockError, failed bool) {
	if !s.options.Events && s.options.OnEvent == nil {
		return
	}
	e := Event{
		T: seconds(c.arrived), Resource: c.stream.resource, Outcome: Pass, Wait: seconds(c.passed - c.arrived), Failed: failed,
		Value: c.attrs.first(), Attrs: c.attrs, Priority: c.stream.priority, Retry: c.retry,
		Instance: s.label(c.instance),
	}
	if blocked != nil {
		e.Outcome, e.Rule, e.Kind, e.Demoted = Block, blocked.Rule, string(blocked.Kind), blocked.Demoted
	} else {
		e.End, e.Demoted = pointerTo(seconds(s.now)), c.demoted
	}
	if s.options.Events {
		s.events[c.event] = e
	}
	if s.options.OnEvent != nil {
		s.options.OnEvent(e)
	}
}
