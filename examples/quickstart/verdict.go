package main

import (
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/penstock-go/penstock/breaker"
	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/stat"
)

// verdict compares what was seen with what the rules say, in words.
type verdict struct {
	out           io.Writer
	wrong, untold int
}

// finding is one claim about the rules, and what was seen.
type finding struct {
	claim string // what the rules say
	seen  string

	// holds says that what holds on any machine was seen, such as a limit. onTime says that
	// what holds if the load comes as it should was seen, such as that a limit is used.
	holds, onTime bool

	busy bool // the machine had other things to do, so that onTime says nothing
}

// say prints a finding: the claim only if it was seen to be true.
func (v *verdict) say(f finding) {
	switch {
	case f.holds && f.onTime:
		fmt.Fprintf(v.out, "  ✓ %s: %s\n", f.claim, f.seen)
	case f.holds && f.busy:
		v.untold++
		fmt.Fprintf(v.out, "  – seen: %s; the machine was too busy to tell whether %s\n", f.seen, f.claim)
	default:
		v.wrong++
		fmt.Fprintf(v.out, "  ✗ seen: %s; but it should be that %s\n", f.seen, f.claim)
	}
}

// share of what a limit allows that must have got through: the load of this
// show comes in small portions.
const share = 0.9

// judge prints the findings. It returns how many do not agree with the rules, and how many
// cannot be told because the machine was busy.
func (r *record) judge(out io.Writer) (wrong, untold int) {
	v := &verdict{out: out}
	fmt.Fprintln(out, "\nWhat was seen:")
	r.judgeWarmUp(v)
	r.judgeLimit(v)
	r.judgeQueue(v)
	r.judgeBreaker(v)
	r.judgeClients(v)
	return v.wrong, v.untold
}

// wasBusy says whether the machine was busy in any second from one on.
func (r *record) wasBusy(from int) bool { return slices.Contains(r.busy[from:], true) }

// isUsed says whether a limit was used in all seconds of a range in which the machine was
// not busy.
func (r *record) isUsed(passed []float64, from, until int, limit float64) bool {
	for second := from; second < until; second++ {
		if passed[second] < share*limit && !r.busy[second] {
			return false
		}
	}
	return true
}

func (r *record) judgeWarmUp(v *verdict) {
	passed := counts(r.seconds[browse])
	expected := warmUp(browseLimit, browsePeriod, coldFactor, duration)
	over, under := 0, 0
	for second, limit := range expected {
		switch {
		case passed[second] > limit+1: // with less load it is colder, never warmer
			over++
		case passed[second] < share*limit:
			under++
		}
	}
	v.say(finding{
		claim: fmt.Sprintf("%s warms up by the formula: %.0f in the first second, %.0f in the last", browse, expected[0], expected[duration-1]),
		seen:  fmt.Sprintf("%.0f and %.0f (%d of %d seconds off)", passed[0], passed[duration-1], over+under, duration),
		holds: over == 0, onTime: under == 0, busy: r.wasBusy(0),
	})
}

// warmUp returns the calls that pass in each second at a cold start under full
// load, by the formula of the warm-up bucket.
func warmUp(limit float64, period time.Duration, coldFactor float64, seconds int) (passed []float64) {
	warning := period.Seconds() * limit / (coldFactor - 1)
	full := warning + 2*period.Seconds()*limit/(1+coldFactor)
	slope := (coldFactor - 1) / limit / (full - warning)
	stored := full
	for range seconds {
		allowed := limit
		if stored >= warning {
			allowed = 1 / ((stored-warning)*slope + 1/limit)
		} else {
			stored += limit
		}
		passed = append(passed, allowed)
		stored = max(0, stored-allowed)
	}
	return passed
}

func (r *record) judgeLimit(v *verdict) {
	passed := counts(r.seconds[create])
	// The calls of the window in which the rule changed count on.
	put, first := r.push[0], min(r.push[1]+1, duration)
	before, after := passed[:put], passed[first:]
	v.say(finding{
		claim: fmt.Sprintf("%s passes at most %d in a second, and nearly as many", create, createLimit),
		seen:  fmt.Sprintf("%.0f to %.0f", slices.Min(before), slices.Max(before)),
		holds: slices.Max(before) <= createLimit, onTime: slices.Min(before) >= share*createLimit, busy: r.isUsed(passed, 0, put, createLimit),
	})
	f := finding{
		claim: fmt.Sprintf("the rule pushed through etcd lets at most %d pass, and nearly as many", createLimitLate),
		seen:  fmt.Sprintf("in force after %.1f ms", milliseconds(r.pushed)),
		holds: true, busy: r.wasBusy(put),
	}
	if len(after) > 1 {
		f.seen += fmt.Sprintf(", and from then on %.0f to %.0f", slices.Min(after[1:]), slices.Max(after))
		f.holds, f.onTime = slices.Max(after) <= createLimitLate, slices.Min(after[1:]) >= share*createLimitLate
		f.busy = r.isUsed(passed, first+1, duration, createLimitLate)
	}
	v.say(f)
}

func (r *record) judgeQueue(v *verdict) {
	const gap = time.Second / reserveLimit
	passed, busy := counts(r.seconds[reserve]), r.wasBusy(0)
	v.say(finding{
		claim: fmt.Sprintf("%s passes at most %d in a second, and one on the border", reserve, reserveLimit),
		seen:  fmt.Sprintf("%.0f", slices.Max(passed)),
		holds: slices.Max(passed) <= reserveLimit+1, onTime: true,
	})
	slices.Sort(r.gaps)
	median := time.Duration(0)
	if len(r.gaps) > 0 {
		median = r.gaps[len(r.gaps)/2]
	}
	v.say(finding{
		claim: fmt.Sprintf("its calls come ten at once and leave evenly, every %.1f ms", milliseconds(gap)),
		seen:  fmt.Sprintf("the median gap is %.1f ms", milliseconds(median)),
		holds: true, onTime: median > gap*8/10 && median < gap*12/10, busy: busy,
	})
	waits := r.totals[reserve]
	mean := waits.WaitTime / time.Duration(max(1, waits.Waited))
	v.say(finding{
		claim: "calls wait there, and none is refused",
		seen:  fmt.Sprintf("%d waited, %.0f ms in the mean, and %d were refused", waits.Waited, milliseconds(mean), waits.Blocked),
		holds: true, onTime: waits.Blocked == 0 && waits.Waited > 0, busy: busy,
	})
}

// slack is how much later than the rule says something may have happened: calls come
// every 20 ms.
const slack = 1500 * time.Millisecond

func (r *record) judgeBreaker(v *verdict) {
	opened := slices.IndexFunc(r.states, func(c core.StateChange) bool { return c.To == breaker.Open })
	closed := slices.IndexFunc(r.states, func(c core.StateChange) bool { return c.To == breaker.Closed })
	busy := r.wasBusy(breakAt)
	if opened < 0 || closed < opened {
		v.say(finding{
			claim: fmt.Sprintf("%s opens and closes again", payRule), seen: fmt.Sprintf("its states changed %d times", len(r.states)),
			holds: true, busy: busy,
		})
		return
	}
	after := r.states[opened].At.Sub(r.broke)
	v.say(finding{
		claim: fmt.Sprintf("%s opens once the payment service has broken, within its window of %v", payRule, payWindow),
		seen:  fmt.Sprintf("after %.1f s", after.Seconds()),
		holds: true, onTime: after > 0 && after < payWindow+slack, busy: busy,
	})

	probings := 0
	for _, change := range r.states {
		if change.To == breaker.HalfOpen {
			probings++
		}
	}
	passed, refused := r.between(r.states[opened].At, r.states[closed].At)
	v.say(finding{
		claim: fmt.Sprintf("while it is not closed only probes pass, %d each time that it probes", payProbes),
		seen:  fmt.Sprintf("it probed %d times, %d calls passed and %d were refused", probings, passed, refused),
		holds: passed <= payProbes*probings, onTime: refused > 0, busy: busy,
	})

	after = r.states[closed].At.Sub(r.healed)
	last := counts(r.seconds[pay])[duration-1]
	v.say(finding{
		claim: fmt.Sprintf("it closes when the service has healed, which it probes at least every %v, and stays closed", payMaxOpen),
		seen:  fmt.Sprintf("after %.1f s; %.0f calls passed in the last second", after.Seconds(), last),
		holds: true, busy: busy,
		onTime: after > 0 && after < payMaxOpen+slack && last > 0 && r.states[len(r.states)-1].To == breaker.Closed,
	})
}

// between counts the payments in the whole seconds from one instant to another.
func (r *record) between(from, until clock.Instant) (passed, refused int) {
	for _, second := range r.seconds[pay] {
		if second.Start >= from && second.Start.Add(time.Second) <= until {
			passed += int(second.Passed)
			refused += int(second.Blocked)
		}
	}
	return passed, refused
}

// judgeClients compares the engine's counts with those of its clients.
func (r *record) judgeClients(v *verdict) {
	for _, s := range r.streams {
		trouble := s.trouble.Load()
		passed, refused := s.passed.Load(), s.refused.Load()
		engine := r.totals[s.resource]
		f := finding{
			claim: fmt.Sprintf("clients of %s and the engine count the same", s.resource),
			seen: fmt.Sprintf("of %d calls %d were answered and %d refused, the engine has counted %d and %d",
				s.offered.Load(), passed, refused, engine.Passed, engine.Blocked),
			holds: true, busy: r.wasBusy(0),
			onTime: uint64(passed) == engine.Passed && uint64(refused) == engine.Blocked && engine.InFlight == 0,
		}
		if trouble != nil { // on a busy machine answers come too late
			f.seen, f.onTime = fmt.Sprintf("%s, and of one this came: %v", f.seen, *trouble), false
		} else {
			f.holds = f.onTime
		}
		v.say(f)
	}
	v.say(finding{
		claim: "Prometheus finds series at /metrics", seen: fmt.Sprintf("%d", r.scraped), holds: r.scraped > 0, onTime: true,
	})
}

func counts(seconds []stat.Second) (passed []float64) {
	for _, s := range seconds {
		passed = append(passed, float64(s.Passed))
	}
	return passed
}
