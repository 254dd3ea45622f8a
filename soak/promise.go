package main

import (
	"math"
	"sync"
	"time"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/flow"
)

// historyLength is for how many milliseconds a promise keeps its counts.
const historyLength = 1 << 14

// promise checks the limit of a rule by the calls that passed, as seen by the callers:
// all they know is that a call passed at some time between its begin and its end. A
// call counts for an interval only if it began and ended in it, so no finding is
// false, whatever the scheduler does.
//
// There are two kinds of promise. Either no window that begins at a multiple of step
// has more tokens than limit; or no interval of t milliseconds has more than
// burst + rate·t. The tokens that passed in the interval from s to e are at least
// those of calls that ended before e, minus those of calls that began before s. So
// two sums suffice.
type promise struct {
	name        string
	description string // description of the rule
	origin      string // of the calls that count; "" for all
	key         string // name of the rule

	window, step int64 // milliseconds
	limit        float64
	rate, burst  float64
	coldLimit    float64 // of the first second after a pause, if the rule warms up

	mu                sync.Mutex
	checkedUntil      int64                 // the millisecond up to which everything was checked
	began, ended      [historyLength]uint32 // tokens by millisecond
	sumEnded          int64                 // tokens of calls that ended before checkedUntil
	sumBegan          int64                 // tokens of calls that began before checkedUntil - window
	least             float64               // lowest value of sumBegan - rate·s for all s up to checkedUntil
	fullest           float64               // highest share of the limit that was used
	passed, unchecked uint64                // tokens, and those recorded too late to be checked
}

// newPromise returns the promise of a rule if no call takes more tokens than most.
func newPromise(r flow.Rule, most int, from clock.Instant) *promise {
	r = flow.Kind().WithDefaults(r)
	p := &promise{name: r.Resource + r.Match, key: r.Name, origin: r.Origin, checkedUntil: millisecond(from)}
	perMillisecond := r.Limit * float64(time.Millisecond) / float64(r.Window)
	switch {
	case r.Algorithm != flow.Throttle && r.Algorithm != flow.TokenBucket:
		p.limit, p.window = math.Ceil(r.Limit), r.Window.Milliseconds()
		p.step = p.window / int64(max(1, r.Buckets))
		if r.Strict {
			p.step = 1
		}
		if r.WarmUp.Period > 0 {
			p.coldLimit = math.Ceil(r.Limit / 2)
		}
	case r.Algorithm == flow.Throttle, r.WarmUp.Period > 0:
		p.rate, p.burst = perMillisecond, float64(most)
	case r.Overdraft:
		p.rate, p.burst = perMillisecond, r.Burst+float64(most)
	default:
		p.rate, p.burst = perMillisecond, r.Burst
	}
	p.least = -p.rate * float64(p.checkedUntil)
	p.description = describe(r)
	return p
}

func millisecond(at clock.Instant) int64 { return int64(at) / int64(time.Millisecond) }

// add counts tokens that passed between two instants.
func (p *promise) add(before, after clock.Instant, tokens int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.passed += uint64(tokens)
	b, a := millisecond(before), millisecond(after)
	if b < p.checkedUntil || a >= p.checkedUntil+historyLength-p.window-1 {
		p.unchecked += uint64(tokens)
		return
	}
	p.began[b%historyLength] += uint32(tokens)
	p.ended[a%historyLength] += uint32(tokens)
}

// certain returns how many tokens certainly passed in the interval, as far as their
// counts are still kept. It is for windows.
func (p *promise) certain(from, to clock.Instant) (tokens int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	first, end := millisecond(from+clock.Instant(time.Millisecond)-1), millisecond(to)
	if first < p.checkedUntil-p.window {
		return 0
	}
	tokens = p.sumEnded - p.sumBegan
	for m := p.checkedUntil; m < end; m++ {
		tokens += int64(p.ended[m%historyLength])
	}
	for m := p.checkedUntil - p.window; m < first; m++ {
		tokens -= int64(p.began[m%historyLength])
	}
	return tokens
}
