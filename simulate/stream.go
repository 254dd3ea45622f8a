package simulate

import (
	"slices"
	"time"

	"github.com/penstock-go/penstock/core"
)

// stream is a [Stream] at work: what its calls have in common.
type stream struct {
	resource string
	row      int     // of its resource within a second
	stages   []stage // that its calls go through
	dealer   dealer
	options  []core.Option  // the same for all calls
	nested   []core.Option  // of what they ask of servers that have a guard
	tokens   int            // that a call takes
	costs    costs          // that calls settle at their end
	shared   []*sharedLimit // that are for its calls
	priority string
	attrs    []attribute
	timeout  time.Duration
	retries  int
	delay    time.Duration // of retries
	phases   []phase       // those that are left, the present one first; the last is endless
}

// phase is a part of a stream with what is in force in it.
type phase struct {
	until       time.Duration
	serviceTime time.Duration
	fails       share
}

func newStream(load Load, index int, rows *rows, instances int) stream {
	of := load.Streams[index]
	s := stream{
		resource: of.Resource,
		row:      rows.indexOf(of.Resource),
		dealer:   newDealer(load, index, instances),
		options:  commonOptions(of),
		nested:   commonOptions(Stream{Priority: of.Priority}),
		tokens:   tokensOf(of),
		costs:    newCosts(load, index),
		priority: of.Priority.String(),
		attrs:    newAttributes(load, index),
		timeout:  of.Timeout,
		retries:  of.Retries,
		delay:    of.RetryDelay,
		phases:   newPhases(of),
	}
	return s
}

// newPhases returns the phases of a stream. After them comes one with what the
// stream itself says.
func newPhases(of Stream) []phase {
	var list []phase
	for _, p := range append(slices.Clip(of.Phases), Phase{}) {
		next := phase{until: p.Until, serviceTime: of.ServiceTime, fails: newShare(of.Fails)}
		if p.Until == 0 {
			next.until = endless
		}
		if p.ServiceTime != nil {
			next.serviceTime = *p.ServiceTime
		}
		if p.Fails != nil {
			next.fails = newShare(*p.Fails)
		}
		list = append(list, next)
	}
	return list
}

// phaseAt returns the phase that a time belongs to. Times must not go back.
func (s *stream) phaseAt(t time.Duration) phase {
	for t >= s.phases[0].until {
		s.phases = s.phases[1:]
	}
	return s.phases[0]
}
