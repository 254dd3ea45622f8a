package breaker

import (
	"slices"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/rule"
)

// probePlace is the place of a probe of a half-open breaker.
type probePlace struct {
	state     probeState
	longLived bool
	passed    clock.Instant // when the probe passed
}

type probeState uint8

const (
	probeFree     probeState = iota
	probeUnderWay            // a probe has it
	probeTimedOut            // a probe has it that has counted as bad before its end
)

// probe lets a call pass if a half-open breaker has a place for a probe.
func (b *breaker) probe(c rule.Call) (rule.Ticket, rule.Decision) {
	b.lastProbe = max(b.lastProbe, c.Now)
	if !b.isPlaceFree() {
		return 0, rule.Block
	}
	place := slices.IndexFunc(b.probes, func(p probePlace) bool { return p.state == probeFree })
	b.probes[place] = probePlace{probeUnderWay, c.LongLived(), c.Now}
	b.underWay++
	b.updateRefusal()
	return probeTicket(b.present(), place), rule.Pass
}

func (b *breaker) isPlaceFree() bool {
	return b.underWay+b.endedWell+b.endedBadly < b.current.Load().probes
}

// endProbe frees the place of a probe, and closes or opens the breaker if that decides.
func (b *breaker) endProbe(t rule.Ticket, now clock.Instant, o outcome) {
	place := &b.probes[placeOf(t)]
	isOver := place.state == probeTimedOut
	*place = probePlace{}
	if isOver {
		return // it has counted
	}
	b.underWay--
	b.lastProbe = max(b.lastProbe, now)
	switch o {
	case bad:
		b.endedBadly++
	case good:
		b.endedWell++
	}
	b.judgeProbes(now)
}

func (b *breaker) giveBack(t rule.Ticket, now clock.Instant) {
	b.mu.Lock()
	defer b.unlock()
	b.timeOut(now - 1)
	if isOf(t, b.present()) {
		b.endProbe(t, now, unknown)
	}
}

// judgeProbes opens the breaker if enough probes were bad, and closes it if so many were good that all
// others might be bad. Nothing else can come of the probing then. Of a rule that had more probes
// before, all who were let through are judged.
func (b *breaker) judgeProbes(now clock.Instant) {
	l := b.current.Load()
	probes := max(l.probes, b.underWay+b.endedWell+b.endedBadly)
	switch {
	case l.failsProbing(b.endedBadly, probes):
		b.reopen(now)
	case !l.failsProbing(probes-b.endedWell, probes):
		b.enter(closed, now)
	default:
		b.updateRefusal()
	}
}

// timeOut counts, at their instants, what has become bad before its end by now: calls of a closed
// breaker that are slow, and probes of a half-open one that are slow or have timed out.
func (b *breaker) timeOut(now clock.Instant) {
	if b.present().code() == closed {
		b.countSlow(now)
	}
	for b.present().code() == halfOpen {
		first, due := b.nextProbe()
		if due > now {
			return
		}
		b.probes[first].state = probeTimedOut
		b.underWay--
		b.endedBadly++
		b.judgeProbes(due)
	}
}

// nextProbe returns which of the probes under way counts as bad first unless it ends, and when. A
// version of the rule has none count before it came into force.
func (b *breaker) nextProbe() (place int, due clock.Instant) {
	l := b.current.Load()
	due = future
	for i, p := range b.probes {
		if p.state != probeUnderWay {
			continue
		}
		over := p.passed.Add(l.probeTimeout)
		if l.slowAfter > 0 && !p.longLived {
			over = min(over, l.slowAt(p.passed))
		}
		if over < due {
			place, due = i, over
		}
	}
	if due != future {
		due = max(due, b.inForceAt)
	}
	return place, due
}

// reopen opens the breaker after a failed probing, and doubles the open time.
func (b *breaker) reopen(at clock.Instant) {
	if l := b.current.Load(); l.openTime(b.doublings) < l.maxOpenFor {
		b.doublings++
	}
	b.enter(open, at)
}
