package main

import (
	"time"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/core"
)

func (s *soak) subjects() []*subject { return []*subject{s.main, s.crowd} }

// judge holds what passed before an instant against every promise.
func (s *soak) judge(until clock.Instant) {
	isCold := func(end clock.Instant) bool {
		elapsed := end.Sub(s.started)
		return awake(elapsed) && elapsed%nap <= time.Second
	}
	for _, e := range s.subjects() {
		for _, p := range e.promises {
			p.judge(until, isCold, s.wrong)
		}
	}
}

// judgeNow looks at engines that are at work.
func (s *soak) judgeNow() {
	for _, e := range s.subjects() {
		for _, r := range e.Snapshot().Resources {
			if r.InFlight < 0 || r.Waiting < 0 {
				s.wrong.add("%s has %d calls under way, and %d waiting", r.Name, r.InFlight, r.Waiting)
			}
		}
	}
}

// judgeRest looks at engines that nobody calls: their statistics are what happened.
func (s *soak) judgeRest() {
	for _, e := range s.subjects() {
		found := map[string]core.ResourceSnapshot{}
		var passed, blocked uint64
		for _, r := range e.Snapshot().Resources {
			found[r.Name] = r
			passed, blocked = passed+r.Passed, blocked+r.Blocked
			if r.InFlight != 0 || r.Waiting != 0 || r.Completed != r.Passed {
				s.wrong.add("%s is at rest: %d calls under way, %d waiting, %d passed and %d completed",
					r.Name, r.InFlight, r.Waiting, r.Passed, r.Completed)
			}
		}
		var sum tally
		for _, t := range e.targets {
			sum.add(t.tally())
			if !t.many() {
				t.judge(found[t.name])
				t.judgeMinute()
			}
		}
		if e.forgets && (passed > sum.passed || blocked > sum.blocked) || !e.forgets && (passed != sum.passed || blocked != sum.blocked) {
			s.wrong.add("%d passed and %d blocked in all, and not %d and %d", passed, blocked, sum.passed, sum.blocked)
		}
		if told := e.refused.Load(); told != sum.blocked {
			s.wrong.add("the observer was told of %d refusals, and not of %d", told, sum.blocked)
		}
	}
}

// judge compares the statistics of a resource with what became of the calls.
func (t *target) judge(r core.ResourceSnapshot) {
	want, w := t.tally(), t.engine.wrong
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

// judgeMinute compares the last minute by the second. Of a call that began in one
// and ended in another it cannot be told which one it is of.
func (t *target) judgeMinute() {
	minute := t.engine.Resource(t.name).Minute()
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, got := range minute {
		want := t.seconds[int64(got.Start)/int64(time.Second)]
		if want == nil {
			want = new(second)
		}
		if got.Passed < want.surely || got.Passed > want.perhaps {
			t.engine.wrong.add("%s: %d passed in the second of %v by the statistics, and not from %d to %d",
				t.name, got.Passed, got.Start.Time(), want.surely, want.perhaps)
		}
	}
}

// judgeTotals sees that everything did happen. In a short run on a busy machine it
// may not.
func (s *soak) judgeTotals() {
	if s.clock.Now().Sub(s.started) < 10*time.Second {
		return
	}
	for _, e := range s.subjects() {
		for _, t := range e.targets {
			if n := t.tally(); n.calls == 0 || n.passed == 0 && t.name != "closed" {
				s.wrong.add("%s: %d calls, %d passed: nothing was tested", t.name, n.calls, n.passed)
			}
		}
	}
	for what, n := range map[string]uint64{
		"reloads": s.reloads.Load(), "documents": s.writes.Load(), "lives of engines": s.lives.Load(), "sets in force": s.main.swaps.Load(),
	} {
		if n == 0 {
			s.wrong.add("no %s: nothing was tested", what)
		}
	}
}
