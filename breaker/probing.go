package breaker

import (
	"slices"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/rule"
)

// newProbes returns a table with that many free places for probes.
func newProbes(places int) []clock.Instant {
	return slices.Repeat([]clock.Instant{noProbe}, places)
}

// probe lets a call pass if a half-open breaker has a place for a probe.
func (b *breaker) probe(now clock.Instant) (rule.Ticket, rule.Decision) {
	b.lastProbe = max(b.lastProbe, now)
	if b.underWay+b.endedWell >= b.current.Load().probes {
		return 0, rule.Block
	}
	place := slices.Index(b.probes, noProbe)
	b.probes[place] = now
	b.underWay++
	b.updateRefusal()
	return probeTicket(b.present(), place), rule.Pass
}

// endProbe frees the place of a probe, and closes or opens the breaker if that decides.
func (b *breaker) endProbe(t rule.Ticket, now clock.Instant, o outcome) {
	b.probes[placeOf(t)] = noProbe
	b.underWay--
	b.lastProbe = max(b.lastProbe, now)
	switch o {
	case bad:
		b.reopen(now)
		return
	case good:
		b.endedWell++
	}
	b.updateRefusal()
	b.closeIfProbed(now)
}

func (b *breaker) giveBack(t rule.Ticket, now clock.Instant) {
	b.mu.Lock()
	defer b.unlock()
	b.timeOut(now - 1)
	if isOf(t, b.present()) {
		b.endProbe(t, now, unknown)
	}
}

// closeIfProbed closes the breaker if enough probes have passed and all have ended
// well.
func (b *breaker) closeIfProbed(now clock.Instant) {
	if b.underWay == 0 && b.endedWell >= b.current.Load().probes {
		b.enter(closed, now)
	}
}

// timeOut opens a half-open breaker at the instant at which a probe timed out, if that
// is not after now.
func (b *breaker) timeOut(now clock.Instant) {
	if b.present().code() != halfOpen {
		return
	}
	if due := b.due(); due <= now {
		b.reopen(due)
	}
}

// due returns when the first of the probes under way times out. A version of the rule
// does not make them time out before it came into force.
func (b *breaker) due() clock.Instant {
	if b.underWay == 0 {
		return future
	}
	first := future
	for _, passed := range b.probes {
		if passed != noProbe {
			first = min(first, passed)
		}
	}
	return max(first.Add(b.current.Load().probeTimeout), b.inForceAt)
}

// reopen opens the breaker after a failed probing, and doubles the open time.
func (b *breaker) reopen(at clock.Instant) {
	if l := b.current.Load(); l.openTime(b.doublings) < l.maxOpenFor {
		b.doublings++
	}
	b.enter(open, at)
}
