package outgoing

import (
	"sync/atomic"
	"time"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/internal/splitmix"
	"github.com/penstock-go/penstock/rule"
)

// target is what a throttle knows of one target.
type target struct {
	name      string
	throttled *Error

	window window
	called atomic.Int64 // number of the bucket of the window in which a call came last

	random atomic.Uint64                      // state of SplitMix64
	probe  atomic.Int64                       // instant of the next probe
	paused [rule.PriorityLevels]atomic.Uint64 // by level: a pause; never goes back
	told   atomic.Pointer[Error]              // the refusal of a paused call that was made last

	pausedCalls atomic.Uint64 // refused because of a pause
}

// allow decides on a call, with the multiplier of its level.
func (t *target) allow(now clock.Instant, level int, k float64) *Error {
	if p := pause(t.paused[level].Load()); p != 0 {
		if left := p.left(now); left > 0 && t.chance(p.refusal(now)) {
			t.pausedCalls.Add(1)
			return t.refusePaused(left)
		}
	}
	t.window.advance(now)
	if open := t.window.open.Load(); t.called.Load() != open {
		t.called.Store(open)
	}
	share := t.window.refusal(k)
	if share == 0 || !t.chance(min(share, maxRefusal)) || t.isProbe(now) {
		return nil
	}
	t.window.refused.Add(1)
	return t.throttled
}

// chance returns true with a probability.
func (t *target) chance(p float64) bool {
	return p >= 1 || unit(splitmix.Mix(t.random.Add(splitmix.Increment))) < p
}

// isProbe returns true for one call a probeInterval.
func (t *target) isProbe(now clock.Instant) bool {
	due := t.probe.Load()
	return int64(now) >= due && t.probe.CompareAndSwap(due, int64(now.Add(probeInterval)))
}

// pause refuses calls of a level and lower ones for some time. What the target has answered
// before says nothing about the time after the pause, and is forgotten.
func (t *target) pause(now clock.Instant, level int, length time.Duration) {
	p := uint64(newPause(now, length))
	for l := range level + 1 {
		for {
			present := t.paused[l].Load()
			if present >= p || t.paused[l].CompareAndSwap(present, p) {
				break
			}
		}
	}
	t.window.forget()
}

// pausedFor returns how long it takes until calls of all levels pass.
func (t *target) pausedFor(now clock.Instant) time.Duration {
	return pause(t.paused[0].Load()).left(now) // the lowest level is paused the longest
}

// refusePaused returns the refusal of a call. One that was made before is used again if it
// says the same.
func (t *target) refusePaused(left time.Duration) *Error {
	left = roundUp(left)
	if told := t.told.Load(); told != nil && told.RetryAfter == left {
		return told
	}
	told := newError(ErrPaused, "pause", t.name, left)
	t.told.Store(told)
	return told
}
