package kindtest

import (
	"fmt"
	"math"
	"runtime"
	"strconv"
	"testing"
	"time"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/internal/optional"
	"github.com/penstock-go/penstock/rule"
)

func soManyPass(f *fixture) {
	l := f.limiter()
	if f.of.Passes == All {
		if got := len(f.exhaust(l, 1, 1000)); got < 1000 {
			f.Errorf("the %dth call does not pass", got+1)
		}
		return
	}
	f.expect(l, 1, f.of.Passes, "of a new limiter")
	if _, decision := f.acquire(l, f.call(1)); decision == rule.Pass {
		f.Errorf("a call passes after one was refused")
	}
}

func valuesAreToldApart(f *fixture) {
	f.limited()
	if len(f.of.Rule.Attributes()) == 0 {
		f.Skip("the rule looks at no attribute")
	}
	l := f.limiter()
	f.expect(l, 1, f.of.Passes, "of the first value")
	f.expect(l, 2, f.of.Passes, "of the second value")
}

// refusalSaysWhenToRetry compares what a refusal says with RetryAfter, and asks again after that.
func refusalSaysWhenToRetry(f *fixture) {
	if f.of.Passes == All {
		f.Skip("the rule refuses no call")
	}
	l := f.limiter()
	f.exhaust(l, 1, f.of.Passes+1)
	c := f.call(1)
	ticket, decision := f.acquire(l, c)
	if decision != rule.Block {
		f.Skip("calls wait")
	}
	after := l.RetryAfter(c)
	if after < 0 {
		f.Errorf("RetryAfter is %v", after)
	}
	if ticket != 0 && ticket.RetryTime() != after {
		f.Errorf("the ticket of a refused call says %v, RetryAfter at the same instant %v", ticket.RetryTime(), after)
	}
	if after <= 0 || after >= rule.Forbidden {
		return
	}
	f.now = f.now.Add(after)
	if _, decision := f.acquire(l, f.call(1)); decision != rule.Pass {
		f.Errorf("a call was to pass after %v if nobody else came, and does not", after)
	}
}

// lateInstantsLetNoMorePass asks at an instant that is over, between calls that come now.
func lateInstantsLetNoMorePass(f *fixture) {
	l := f.limiter()
	most := max(1, f.of.Passes)
	f.exhaust(l, 1, most)
	late := f.now
	for _, later := range []time.Duration{time.Nanosecond, time.Second, 25 * time.Hour} {
		f.now = late.Add(later)
		f.exhaust(l, 1, most+1)
		if len(f.exhaust(f.limiter(), 1, most+1)) > most {
			continue // at that time of day the rule lets all calls pass
		}
		for range 3 {
			c := f.call(1)
			c.Now = late
			_, _ = f.acquire(l, c)
			if _, decision := f.acquire(l, f.call(1)); decision == rule.Pass && f.of.Passes != All {
				f.Fatalf("a call that comes %v late lets more pass than the rule does", later)
			}
		}
	}
}

func givenBackIsAsIfItHadNeverBeen(f *fixture) {
	l := f.limiter()
	before := l.Status(f.now)
	for _, p := range rule.Priorities() {
		f.passAndGiveBack(l, p)
	}
	after := l.Status(f.now)
	if before.State != after.State {
		f.Errorf("the state was %q, and is %q when all is given back", before.State, after.State)
	}
	if before.Quota != nil && after.Quota != nil && before.Quota.Remaining != after.Quota.Remaining {
		f.Errorf("%d remained, and %d do when all is given back", before.Quota.Remaining, after.Quota.Remaining)
	}
	if f.of.Passes > 0 {
		f.giveBack(l, f.expect(l, 1, f.of.Passes, "once all was given back"))
	}
	f.forget()
	if !l.Idle(f.now) {
		f.Errorf("a limiter that has got back all that it gave is not idle when its time has passed, as a new one is")
	}
}

// passAndGiveBack makes calls of a priority that are given back at once. No counter counts them, if all pass.
func (f *fixture) passAndGiveBack(l rule.Limiter, p rule.Priority) {
	before := l.Status(f.now).Gauges
	for range 3*max(f.of.Passes, 0) + 100 {
		c := f.call(1)
		c.SetCaller(p, false)
		ticket, decision := f.acquire(l, c)
		if decision != rule.Pass {
			if f.of.Passes != 0 && p == rule.PriorityNormal {
				f.Fatalf("calls that are given back at once are refused")
			}
			return
		}
		l.GiveBack(f.now, ticket, 1)
	}
	after := l.Status(f.now).Gauges
	for i, gauge := range f.options.Kind.Gauges() {
		if gauge.Counter && i < min(len(before), len(after)) && before[i] != after[i] {
			f.Errorf("the gauge %s counts calls that were given back: it was %v, and is %v", gauge.Name, before[i], after[i])
		}
	}
}

// ticketsGiveBackWhatTheyStandFor gives back some of what was taken, in another order.
func ticketsGiveBackWhatTheyStandFor(f *fixture) {
	f.limited()
	l := f.limiter()
	tickets := f.expect(l, 1, f.of.Passes, "of a new limiter")
	others := f.exhaust(l, 2, f.of.Passes) // of another value, if the rule tells them apart
	if f.of.Passes > 1 {
		f.giveBack(l, tickets[1:2])
		f.expect(l, 1, 1, "with one ticket given back")
	}
	f.giveBack(l, tickets[:1])
	f.expect(l, 1, 1, "with the first ticket given back")
	f.giveBack(l, others)
	if len(others) > 0 {
		f.expect(l, 1, 0, "with tickets of another value given back")
	}
}

// givenBackLateFreesNothingOfOthers gives back what was taken so long ago that others have passed in its place.
func givenBackLateFreesNothingOfOthers(f *fixture) {
	f.limited()
	if f.of.Again <= 0 || f.of.Again == rule.Never {
		f.Skip("no time gives back what was taken")
	}
	l := f.limiter()
	early := f.expect(l, 1, f.of.Passes, "of a new limiter")
	f.now = f.now.Add(f.of.Again)
	f.expect(l, 1, f.of.Passes, fmt.Sprintf("%v later", f.of.Again))
	f.giveBack(l, early)
	f.expect(l, 1, 0, fmt.Sprintf("with what was given back that had passed %v before", f.of.Again))
}

// refundGivesBackNoMoreThanWasTaken gives back tokens without tickets.
func refundGivesBackNoMoreThanWasTaken(f *fixture) {
	f.limited()
	l := f.limiter()
	refunder, ok := l.(optional.Refunder)
	if !ok {
		f.Skip("it gives nothing back without a ticket")
	}
	refund := func(n int, tokens int32) {
		c := f.call(n)
		c.Tokens = tokens
		refunder.Refund(c)
	}
	refund(1, math.MaxInt32)
	f.expect(l, 1, f.of.Passes, "when tokens were given back that nobody had taken")
	refund(1, 1)
	if again := len(f.exhaust(l, 1, f.of.Passes+1)); again > 1 {
		f.Errorf("%d calls pass when one token is given back", again)
	}
	refund(1, math.MaxInt32)
	if again := len(f.exhaust(l, 1, f.of.Passes+1)); again > f.of.Passes {
		f.Errorf("more than %d calls pass when all is given back, and more", f.of.Passes)
	}
}

func endsMakeRoom(f *fixture) {
	f.limited()
	if f.of.Again == rule.Never {
		f.Skip("it is not known when calls pass again")
	}
	l := f.limiter()
	for range 5 {
		f.end(l, f.expect(l, 1, f.of.Passes, "once the calls before have ended"))
		f.now = f.now.Add(f.of.Again)
	}
}

// callsAllocateNothing measures calls that pass, end, are given back and refused.
func callsAllocateNothing(f *fixture) {
	if raceEnabled {
		f.Skip("the race detector allocates")
	}
	l := f.limiter()
	c := f.call(1)
	if f.of.Passes != 0 {
		if n := testing.AllocsPerRun(100, func() {
			if ticket, decision := l.Acquire(c); decision == rule.Pass {
				l.GiveBack(c.Now, ticket, 1)
			}
		}); n > 0 {
			f.Errorf("a call that passes and is given back allocates %v times", n)
		}
	}
	if finisher, ok := l.(rule.Finisher); ok {
		if n := testing.AllocsPerRun(100, func() {
			if ticket, decision := l.Acquire(c); decision == rule.Pass {
				finisher.Done(ticket, rule.Exit{Now: c.Now, Start: c.Now})
			}
		}); n > 0 {
			f.Errorf("a call that passes and ends allocates %v times", n)
		}
	}
	if f.of.Passes != All {
		f.exhaust(l, 1, f.of.Passes+1)
		if n := testing.AllocsPerRun(100, func() { _, _ = l.Acquire(c) }); n > 0 {
			f.Errorf("a call that does not pass allocates %v times", n)
		}
	}
}

// stateIsBounded counts what the second half of a million values takes in memory, of fewer in short tests.
func stateIsBounded(f *fixture) {
	if len(f.of.Rule.Attributes()) == 0 {
		f.Skip("the rule looks at no attribute")
	}
	const values = 400_000
	const most = values * 4
	l := f.limiter()
	var half uint64
	for n := range values {
		if n == values/2 {
			half = heap()
		}
		c := f.call(1)
		c.Attribute = rule.String("value-" + strconv.Itoa(n))
		if ticket, decision := f.acquire(l, c); decision == rule.Pass && n%2 == 0 {
			f.end(l, []rule.Ticket{ticket})
		}
	}
	if grown := int64(heap()) - int64(half); grown > most {
		f.Errorf("%d more values of an attribute take %d bytes of memory: clients choose them, and the state must be bounded", values/2, grown)
	}
	runtime.KeepAlive(l)
}

// heap returns how many bytes are in use.
func heap() uint64 {
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return stats.HeapAlloc
}

func forcedStatesHold(f *fixture) {
	l, ok := f.limiter().(rule.Controllable)
	if !ok {
		f.Skip("states cannot be forced")
	}
	for _, state := range f.options.Kind.Controls() {
		l.Control(f.now, state)
		if got := l.Status(f.now).State; got != state {
			f.Errorf("the state is %q, though %q is forced", got, state)
		}
		f.now = f.now.Add(time.Hour)
		if got := l.Status(f.now).State; got != state {
			f.Errorf("the state is %q an hour after %q was forced", got, state)
		}
		l.Control(f.now, "")
		env := f.env()
		env.Forced = state
		if got := f.of.Rule.Clone().NewLimiter(env).Status(f.now).State; got != state {
			f.Errorf("a new limiter begins in the state %q, though %q is forced", got, state)
		}
	}
	if got, free := l.Status(f.now).State, f.limiter().Status(f.now).State; got != free {
		f.Errorf("the state is %q once no state is forced, and that of a new limiter %q", got, free)
	}
}

// extremesPanicNowhere asks about calls as no sound program makes them.
func extremesPanicNowhere(f *fixture) {
	parts := [rule.MaxKeys]rule.Attribute{rule.Int(1), rule.String("")}
	for _, a := range []rule.Attribute{
		{}, rule.String(""), rule.Int(math.MinInt64), rule.Bool(true), rule.Composite(&parts, 2), f.attribute(1),
	} {
		for _, now := range []clock.Instant{0, 1, f.now, math.MaxInt64 / 2} {
			for _, tokens := range []int32{1, math.MaxInt32} {
				f.noPanic("a call with "+a.GoString(), func() {
					l := f.limiter()
					c := f.call(1)
					c.Now, c.Tokens, c.Attribute = now, tokens, a
					for range 2 {
						if ticket, decision := l.Acquire(c); decision == rule.Pass {
							l.GiveBack(now, ticket, tokens)
						}
					}
					_, _, _ = l.RetryAfter(c), l.Status(now), l.Idle(now)
					if reader, ok := l.(rule.QuotaReader); ok {
						_ = reader.QuotaOf(c)
					}
				})
			}
		}
	}
}
