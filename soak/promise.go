package main

import (
	"math"
	"sync"
	"time"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/flow"
)

// remembered is how many milliseconds a promise remembers.
const remembered = 1 << 14

// promise is what a rule promises, and what passed under it, as seen by who calls:
// of a call is known that it passed at some moment from its begin to its end. It
// counts for an interval only if it began and ended in it, so that no alarm is
// false, whatever the scheduler does.
//
// A promise is one of two. No window that begins at a multiple of step holds more
// tokens than limit; or no interval of t milliseconds holds more than burst + rate·t.
// Those of calls that passed in the interval from s to e are at least those of calls
// that ended before e, less those of calls that began before s. So two sums suffice.
type promise struct {
	name   string
	words  string // what is promised
	origin string // of whose calls; "" for all
	key    string // the rule

	window, step int64 // milliseconds
	limit        float64
	rate, burst  float64
	coldLimit    float64 // of the first second after a pause, if the rule warms up

	mu            sync.Mutex
	judged        int64              // the millisecond up to which all was judged
	began, ended  [remembered]uint32 // tokens by the millisecond
	sumEnded      int64              // tokens of calls that ended before judged
	sumBegan      int64              // that began before judged - window
	least         float64            // of sumBegan - rate·s, for every s up to judged
	fullest       float64            // share of what was promised
	passed, blind uint64             // tokens, and those that were too late to be judged
}

// newPromise returns what a rule promises when no call takes more tokens than most.
func newPromise(r flow.Rule, most int, from clock.Instant) *promise {
	r = r.WithDefaults()
	p := &promise{name: r.Resource + r.Match, key: r.Name, origin: r.Origin, judged: millisecond(from)}
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
	p.least = -p.rate * float64(p.judged)
	p.words = inWords(r)
	return p
}

func millisecond(at clock.Instant) int64 { return int64(at) / int64(time.Millisecond) }

// add counts tokens that passed between two instants.
func (p *promise) add(before, after clock.Instant, tokens int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.passed += uint64(tokens)
	b, a := millisecond(before), millisecond(after)
	if b < p.judged || a >= p.judged+remembered-p.window-1 {
		p.blind += uint64(tokens)
		return
	}
	p.began[b%remembered] += uint32(tokens)
	p.ended[a%remembered] += uint32(tokens)
}

// surely returns how many tokens passed in the interval for certain, as far as they
// are remembered. It is for windows.
func (p *promise) surely(from, to clock.Instant) (tokens int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	first, end := millisecond(from+clock.Instant(time.Millisecond)-1), millisecond(to)
	if first < p.judged-p.window {
		return 0
	}
	tokens = p.sumEnded - p.sumBegan
	for m := p.judged; m < end; m++ {
		tokens += int64(p.ended[m%remembered])
	}
	for m := p.judged - p.window; m < first; m++ {
		tokens -= int64(p.began[m%remembered])
	}
	return tokens
}
