// Package load calls limiters from many goroutines and records when calls passed.
package load

import (
	"cmp"
	"slices"
	"sync"
	"time"

	"github.com/penstock-go/penstock/clock"
)

// Pass is a call that passed, at some time from Before to After.
type Pass struct{ Before, After clock.Instant }

// Shape says when a load calls: given the time since the start of the load, it returns
// how long the load pauses, 0 if it does not. It is called concurrently.
type Shape func(elapsed time.Duration) (pause time.Duration)

// Steady is a load that never pauses.
func Steady(time.Duration) time.Duration { return 0 }

// Bursts is a load of a few short bursts with pauses between them. They come where a
// window of one second may let too much pass: just before and just after the
// boundaries of buckets of half a second, of a tenth, and of the calendar's second.
func Bursts(elapsed time.Duration) time.Duration {
	const cycle, length = 4 * time.Second, 20 * time.Millisecond
	at := elapsed % cycle
	for _, begin := range []time.Duration{480, 1000, 1400, 2980, 3000} {
		begin *= time.Millisecond
		switch {
		case at < begin:
			return begin - at
		case at < begin+length:
			return 0
		}
	}
	return cycle - at
}

// Run calls try from several goroutines, from the start of the next second of the
// calendar, for the duration. It returns what passed in that time, sorted by the end.
func Run(c clock.Clock, goroutines int, duration time.Duration, shape Shape, try func(call int) bool) []Pass {
	start := nextSecond(c)
	passes := make([][]Pass, goroutines)
	var running sync.WaitGroup
	for i := range passes {
		running.Go(func() { passes[i] = callRepeatedly(c, start, duration, shape, try) })
	}
	running.Wait()
	all := slices.Concat(passes...)
	slices.SortFunc(all, func(a, b Pass) int { return cmp.Compare(a.After, b.After) })
	return all
}

func callRepeatedly(c clock.Clock, start clock.Instant, duration time.Duration, shape Shape, try func(call int) bool) (passes []Pass) {
	for before := c.Now(); before.Sub(start) < duration; before = c.Now() {
		if pause := shape(before.Sub(start)); pause > 0 {
			time.Sleep(pause)
			continue
		}
		passed := try(0)
		if after := c.Now(); passed && after.Sub(start) < duration {
			passes = append(passes, Pass{before, after})
		}
	}
	return passes
}

// nextSecond waits for the next second of the calendar and returns it.
func nextSecond(c clock.Clock) clock.Instant {
	second := c.Now().Time().Truncate(time.Second).Add(time.Second)
	time.Sleep(c.Until(second))
	return clock.Instant(second.UnixNano())
}
