package exchange

import (
	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/fleet"
)

// Limits are the limits of an instance, as its exchange knows them. The mutex is held in all calls.
type Limits interface {
	// Next returns when the first of them is to be looked at, and Woken the same of those that calls have woken
	// since that was told.
	Next(now clock.Instant) clock.Instant
	Woken(now clock.Instant) clock.Instant

	// BeginOutages has all decide by themselves: the backend does not answer. StayOut says that it does not
	// answer what was sent since, either, and BackIsUp that it answers again.
	BeginOutages(now clock.Instant)
	StayOut(now clock.Instant)
	BackIsUp(now clock.Instant)

	// Probe calls ask with limits of as many servers as possible.
	Probe(ask func(fleet.Operation, fleet.Terms))

	// Announce returns what the instance announces, and whether all instances are to be told to it.
	Announce(now clock.Instant) (uses []fleet.Use, withInstances bool)

	// Divide takes the answer, and returns when to announce the instance again. Undivided says that there is none.
	Divide(now clock.Instant, known fleet.Fleet) clock.Instant
	Undivided(now clock.Instant)
}
