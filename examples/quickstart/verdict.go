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
	out   io.Writer
	wrong int
}

// say prints one finding.
func (v *verdict) say(right bool, format string, args ...any) {
	mark := "✓"
	if !right {
		mark = "✗"
		v.wrong++
	}
	fmt.Fprintf(v.out, "  %s %s\n", mark, fmt.Sprintf(format, args...))
}

// share of what a limit allows that must have got through: the load of this
// show comes in small portions from a machine that has other things to do.
const share = 0.9

// judge prints the findings and returns how many do not agree with the rules.
func (r *record) judge(out io.Writer) (wrong int) {
	v := &verdict{out: out}
	fmt.Fprintln(out, "\nWhat was seen:")
	r.judgeWarmUp(v)
	r.judgeLimit(v)
	r.judgeQueue(v)
	r.judgeBreaker(v)
	r.judgeClients(v)
	return v.wrong
}

func (r *record) judgeWarmUp(v *verdict) {
	passed := counts(r.seconds[browse])
	expected := warmUp(browseLimit, browsePeriod, coldFactor, duration)
	off := 0
	for second, limit := range expected {
		if passed[second] > limit+1 || passed[second] < share*limit {
			off++
		}
	}
	v.say(off == 0, "%s warmed up: %.0f in the first second, %.0f in the last; the formula says %.0f and %.0f (%d of %d seconds off)",
		browse, passed[0], passed[duration-1], expected[0], expected[duration-1], off, duration)
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
	before, after := passed[:pushAt], passed[pushAt+1:]
	v.say(slices.Max(before) <= createLimit && slices.Min(before) >= share*createLimit,
		"%s never passed more than %d in a second, nor less than %.0f: seen %.0f to %.0f",
		create, createLimit, share*createLimit, slices.Min(before), slices.Max(before))
	v.say(slices.Max(after) <= createLimitLate && slices.Min(after[1:]) >= share*createLimitLate,
		"the rule pushed through etcd was in force after %.1f ms; from then on at most %d passed: seen %.0f to %.0f",
		milliseconds(r.pushed), createLimitLate, slices.Min(after[1:]), slices.Max(after))
}

func (r *record) judgeQueue(v *verdict) {
	const gap = time.Second / reserveLimit
	passed := counts(r.seconds[reserve])
	v.say(slices.Max(passed) <= reserveLimit+1, "%s passed at most %d in a second, and one on the border: seen %.0f",
		reserve, reserveLimit, slices.Max(passed))
	slices.Sort(r.gaps)
	median := r.gaps[len(r.gaps)/2]
	v.say(median > gap*8/10 && median < gap*12/10,
		"its calls came ten at once and left evenly: the median gap is %.1f ms, the rule says %.1f ms",
		milliseconds(median), milliseconds(gap))
	waits := r.totals[reserve]
	mean := waits.WaitTime / time.Duration(max(1, waits.Waited))
	v.say(waits.Blocked == 0 && waits.Waited > 0, "%d of them waited, %.0f ms in the mean, and none was refused",
		waits.Waited, milliseconds(mean))
}

// slack is how much later than the rule says something may have happened: calls come
// every 20 ms, from a machine that has other things to do.
const slack = 1500 * time.Millisecond

func (r *record) judgeBreaker(v *verdict) {
	opened := slices.IndexFunc(r.states, func(c core.StateChange) bool { return c.To == breaker.Open })
	closed := slices.IndexFunc(r.states, func(c core.StateChange) bool { return c.To == breaker.Closed })
	if opened < 0 || closed < opened {
		v.say(false, "%s did not open and close again: its states changed %d times", payRule, len(r.states))
		return
	}
	after := r.states[opened].At.Sub(r.broke)
	v.say(after > 0 && after < payWindow+slack, "%s opened %.1f s after the payment service broke; the window is %v",
		payRule, after.Seconds(), payWindow)

	probings := 0
	for _, change := range r.states {
		if change.To == breaker.HalfOpen {
			probings++
		}
	}
	passed, refused := r.between(r.states[opened].At, r.states[closed].At)
	v.say(passed <= payProbes*probings && refused > 0,
		"while it was not closed, %d calls passed and %d were refused; it probed %d times, the rule allows %d probes each",
		passed, refused, probings, payProbes)

	after = r.states[closed].At.Sub(r.healed)
	last := counts(r.seconds[pay])[duration-1]
	v.say(after > 0 && after < payMaxOpen+slack && last > 0 && r.states[len(r.states)-1].To == breaker.Closed,
		"it closed %.1f s after the service had healed; the rule probes at least every %v; %.0f calls passed in the last second",
		after.Seconds(), payMaxOpen, last)
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
		if trouble := s.trouble.Load(); trouble != nil {
			v.say(false, "a call went wrong: %v", *trouble)
		}
		passed, refused := s.passed.Load(), s.refused.Load()
		engine := r.totals[s.resource]
		v.say(uint64(passed) == engine.Passed && uint64(refused) == engine.Blocked && engine.InFlight == 0,
			"%s: clients made %d calls, %d were answered and %d refused; the engine counted the same",
			s.resource, s.offered.Load(), passed, refused)
	}
	v.say(r.scraped > 0, "Prometheus finds %d series at /metrics", r.scraped)
}

func counts(seconds []stat.Second) (passed []float64) {
	for _, s := range seconds {
		passed = append(passed, float64(s.Passed))
	}
	return passed
}
