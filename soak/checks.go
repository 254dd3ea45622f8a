package main

import (
	"time"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/core"
)

func (s *soak) subjects() []*subject { return []*subject{s.main, s.crowded} }

// checkPromises checks the calls that passed before an instant against every promise.
func (s *soak) checkPromises(until clock.Instant) {
	isCold := func(end clock.Instant) bool {
		elapsed := end.Sub(s.started)
		return isActive(elapsed) && elapsed%pausePeriod <= time.Second
	}
	for _, e := range s.subjects() {
		for _, p := range e.promises {
			p.check(until, isCold, s.findings)
		}
	}
}

// checkRunning checks engines while calls are made.
func (s *soak) checkRunning() {
	for _, e := range s.subjects() {
		for _, r := range e.Snapshot().Resources {
			if r.InFlight < 0 || r.Waiting < 0 {
				s.findings.add("%s has %d calls under way, and %d waiting", r.Name, r.InFlight, r.Waiting)
			}
		}
	}
}

// checkIdle checks engines while no calls are made: their statistics must equal the
// soak test's own counts.
func (s *soak) checkIdle() {
	for _, e := range s.subjects() {
		found := map[string]core.ResourceSnapshot{}
		var passed, blocked uint64
		for _, r := range e.Snapshot().Resources {
			found[r.Name] = r
			passed, blocked = passed+r.Passed, blocked+r.Blocked
			if r.InFlight != 0 || r.Waiting != 0 || r.Completed != r.Passed {
				s.findings.add("%s is at rest: %d calls under way, %d waiting, %d passed and %d completed",
					r.Name, r.InFlight, r.Waiting, r.Passed, r.Completed)
			}
		}
		var sum counts
		for _, t := range e.targets {
			sum.add(t.counts())
			if !t.many() {
				t.checkStatistics(found[t.name])
				t.checkMinute()
			}
		}
		if e.evicts && (passed > sum.passed || blocked > sum.blocked) || !e.evicts && (passed != sum.passed || blocked != sum.blocked) {
			s.findings.add("%d passed and %d blocked in all, and not %d and %d", passed, blocked, sum.passed, sum.blocked)
		}
		if observed := e.refusals.Load(); observed != sum.blocked {
			s.findings.add("the observer has received %d refusals, and not %d", observed, sum.blocked)
		}
	}
}

// checkStatistics compares the statistics of a resource with the results of the calls.
func (t *target) checkStatistics(r core.ResourceSnapshot) {
	want, w := t.counts(), t.engine.findings
	if r.Passed != want.passed || r.Blocked != want.blocked || r.Failed != want.failed {
		w.add("%s: %d passed, %d blocked and %d failed by the statistics, and not %+v", t.name, r.Passed, r.Blocked, r.Failed, want)
	}
	if want.passed+want.blocked+want.gaveUp+want.invalid != want.calls {
		w.add("%s: calls do not add up: %+v", t.name, want)
	}
	for _, got := range r.Rules {
		if refusals := t.refusals[got.Name]; refusals != nil && refusals.Load() != got.Blocked {
			w.add("%s: %q refused %d calls by the statistics, and not %d", t.name, got.Name, got.Blocked, refusals.Load())
		}
		if got.Name == "shadow" && got.WouldBlock != t.wouldBlock.Load() {
			w.add("%s: a shadow blocks %d calls by the statistics, and not %d", t.name, got.WouldBlock, t.wouldBlock.Load())
		}
	}
}

// checkMinute compares the last minute second by second. A call that began in one
// second and ended in another may count in either.
func (t *target) checkMinute() {
	minute := t.engine.Resource(t.name).Minute()
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, got := range minute {
		want := t.seconds[int64(got.Start)/int64(time.Second)]
		if want == nil {
			want = new(second)
		}
		if got.Passed < want.certain || got.Passed > want.possible {
			t.engine.findings.add("%s: %d passed in the second of %v by the statistics, and not from %d to %d",
				t.name, got.Passed, got.Start.Time(), want.certain, want.possible)
		}
	}
}

// checkTotals checks that everything has happened, except in a short run, which may
// be too short for that on a busy machine.
func (s *soak) checkTotals() {
	if s.clock.Now().Sub(s.started) < 10*time.Second {
		return
	}
	for _, e := range s.subjects() {
		for _, t := range e.targets {
			if n := t.counts(); n.calls == 0 || n.passed == 0 && t.name != "closed" {
				s.findings.add("%s: %d calls, %d passed: nothing was tested", t.name, n.calls, n.passed)
			}
		}
	}
	for what, n := range map[string]uint64{
		"reloads": s.reloads.Load(), "documents": s.writes.Load(), "engines": s.engines.Load(),
		"calls of other kinds": s.kindCalls.Load(), "sets in force": s.main.swaps.Load(),
	} {
		if n == 0 {
			s.findings.add("no %s: nothing was tested", what)
		}
	}
}
