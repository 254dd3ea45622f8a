package breaker

import (
	"slices"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/rule"
)

// newProbes returns so many free places for probes.
func newProbes(places int) []clock.Instant {
	return slices.Repeat([]clock.Instant{noProbe}, places)
}

// probe lets a call pass if it is among the first while the breaker is half-open.
func (b *breaker) probe(now clock.Instant) (rule.Ticket, rule.Decision) {
	b.lastProbe = max(b.lastProbe, now)
	if b.underWay+b.endedWell >= b.current.Load().probes {
		return 0, rule.Block
	}
	place := slices.Index(b.probes, noProbe)
	b.probes[place] = now
	b.underWay++
	b.refuse()
	return probeTicket(b.present(), place), rule.Pass
}

// endProbe frees the place of a probe and judges the probing.
func (b *breaker) endProbe(t rule.Ticket, now clock.Instant, o outcome) {
	b.probes[t&codeMask-1] = noProbe
	b.underWay--
	b.lastProbe = max(b.lastProbe, now)
	switch o {
	case bad:
		b.reopen(now)
		return
	case good:
		b.endedWell++
	}
	b.refuse()
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

// timeOut opens a half-open breaker of which a probe has timed out, at that time.
func (b *breaker) timeOut(now clock.Instant) {
	if b.present().code() != halfOpen {
		return
	}
	if due := b.due(); due <= now {
		b.reopen(due)
	}
}

// due returns when the first of the probes that are under way times out.
func (b *breaker) due() clock.Instant {
	if b.underWay == 0 {
		return always
	}
	first := always
	for _, passed := range b.probes {
		if passed != noProbe {
			first = min(first, passed)
		}
	}
	return max(first.Add(b.current.Load().probeTimeout), b.ruled)
}

// reopen opens the breaker after it has probed, for longer than before.
func (b *breaker) reopen(at clock.Instant) {
	if l := b.current.Load(); l.openTime(b.doublings) < l.maxOpenFor {
		b.doublings++
	}
	b.enter(open, at)
}
