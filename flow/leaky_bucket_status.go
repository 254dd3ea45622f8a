package flow

import (
	"math"
	"time"

	"github.com/penstock-go/penstock/clock"
)

// forecast is a copy of a throttle that goes on as if no call came, to look ahead with.
type forecast struct {
	leakyBucket
	waiting []*waiter // the calls that still wait, in the order in which they pass
	behind  int64     // tokens of those behind the first
	maxWait time.Duration
}

// maxLookahead bounds how many calls and steps of a warm-up a forecast goes through to
// find when more calls can pass.
const maxLookahead = 1000

// endOfTime is later than every instant.
const endOfTime = clock.Instant(math.MaxInt64)

func (s *leakyBucket) status(waiters *waiterList, now clock.Instant, maxWait time.Duration) (limit float64, remaining int64, reset time.Duration) {
	state := s.warmUp // a copy
	if limit = state.queueLimit(s.compiled, now); limit == 0 {
		return 0, 0, 0
	}
	o := forecast{leakyBucket: *s, waiting: waiters.inOrder(), maxWait: maxWait}
	if len(o.waiting) > 0 {
		o.behind = waiters.tokens() - int64(o.waiting[0].tokens)
	}
	remaining = o.remaining(now)
	return limit, remaining, o.reset(now, remaining)
}

// arrivals are calls of one token that come at one instant, and when each of them would
// pass.
type arrivals struct {
	first rounded
	each  float64 // nanoseconds
	free  bool    // the first goes at once, so that the second is the first to wait
}

func (o *forecast) passTimes(now clock.Instant) arrivals {
	if len(o.waiting) > 0 {
		each := o.each(o.lastPass.at)
		first := o.plannedPass.after(each * float64(o.behind+1)).notBefore(now)
		return arrivals{first, each, false}
	}
	each := o.each(max(o.lastPass.at, now))
	first := o.lastPass.after(each).notBefore(now)
	return arrivals{first, each, first.at == now}
}

// each returns the time that a token takes at the limit of an instant, in nanoseconds.
func (o *forecast) each(at clock.Instant) float64 {
	state := o.warmUp // a copy: no call comes at that instant
	return min(o.compiled.cost(1, state.queueLimit(o.compiled, at)), float64(forever))
}

// at returns when the call passes that has so many before it.
func (t arrivals) at(before int64) clock.Instant {
	if t.free && before > 0 {
		return t.first.after(t.each).after(t.each * float64(before-1)).at
	}
	return t.first.after(t.each * float64(before)).at
}

// remaining returns how many calls of one token that came at now would pass in time.
func (o *forecast) remaining(now clock.Instant) int64 {
	t, latest := o.passTimes(now), now.Add(o.maxWait)
	if t.first.at > latest {
		return 0
	}
	last := int64(math.Floor(float64(latest.Sub(t.first.at)) / t.each))
	for t.at(last) > latest {
		last--
	}
	for t.at(last+1) <= latest {
		last++
	}
	return last + 1
}

// reset returns how long after now more than so many calls would pass in time, 0 if
// never.
func (o *forecast) reset(now clock.Instant, remaining int64) time.Duration {
	at := now
	for range maxLookahead {
		t, event := o.passTimes(at), o.event(at)
		if more := t.at(remaining).Add(-o.maxWait); more <= t.first.at && !t.free && more < event {
			return more.Sub(now)
		}
		if event == endOfTime {
			return 0
		}
		at = event
		o.advance(at)
		if o.remaining(at) > remaining {
			return at.Sub(now)
		}
		const cooling = 3 // steps after which what has passed makes it no warmer
		if t.free && o.compiled.curve.Step(at)-o.compiled.curve.Step(max(now, o.lastPass.at)) > cooling {
			return 0
		}
	}
	return 0
}

// event returns when the plan may change after an instant: when the head passes, or
// when the next step begins. Without a warm-up it does not change.
func (o *forecast) event(at clock.Instant) clock.Instant {
	switch {
	case !o.compiled.warmsUp():
		return endOfTime
	case len(o.waiting) > 0:
		return o.plannedPass.at
	}
	return o.compiled.curve.StepStart(o.compiled.curve.Step(max(o.lastPass.at, at)) + 1)
}

// advance lets the waiting calls pass whose time has come by an instant, see
// queue.advance.
func (o *forecast) advance(at clock.Instant) {
	for len(o.waiting) > 0 && o.plannedPass.at <= at {
		passAt := o.plannedPass.at
		o.grant(passAt, passAt, o.waiting[0].tokens)
		for o.leave(); len(o.waiting) > 0; o.leave() {
			head := o.waiting[0]
			next, ok := o.next(max(passAt, head.arrived), head.tokens)
			if ok && next.Sub(head.arrived) <= o.maxWait {
				break
			}
		}
	}
}

// leave takes the first call out of the queue.
func (o *forecast) leave() {
	if o.waiting = o.waiting[1:]; len(o.waiting) > 0 {
		o.behind -= int64(o.waiting[0].tokens)
	}
}
