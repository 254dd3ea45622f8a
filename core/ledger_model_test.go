package core_test

import (
	"fmt"
	"math"
	"time"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/flow"
)

// ledgerKey is what has a limit of its own: one life of a rule, on one
// resource, or on "" for all together.
type ledgerKey struct {
	rule     string
	life     int
	resource string
}

// ledger is what passed under a limit.
type ledger struct {
	passes  []ledgerPass
	changed int           // how many passed before the rule was last changed
	vague   clock.Instant // until then what it holds cannot be told exactly
}

type ledgerPass struct {
	at     clock.Instant
	tokens int
	only   bool // the call had no other queue to wait in
}

// holds says whether what passed at an instant is in the window of a rule at now.
func holds(r flow.Rule, at, now clock.Instant) bool {
	parts := max(1, r.Buckets)
	length, span := int64(r.Window)/int64(parts), int64(parts)
	if r.Strict {
		span++
	}
	return int64(at)/length > int64(now)/length-span
}

// held returns how many tokens the window of a rule holds at now.
func (l *ledger) held(r flow.Rule, now clock.Instant) (tokens int) {
	for _, p := range l.passes {
		if holds(r, p.at, now) {
			tokens += p.tokens
		}
	}
	return tokens
}

// exact says whether the model can tell what a window rule must answer.
func (l *ledger) exact(r flow.Rule, now clock.Instant) bool {
	return limiterOf(r) == byWindow && r.WarmUp.Period == 0 &&
		r.Limit == math.Trunc(r.Limit) && now >= l.vague
}

// full says whether a window must refuse a call, as far as it is exact.
func (l *ledger) full(r flow.Rule, now clock.Instant, n int) bool {
	return float64(l.held(r, now)+n) > r.Limit
}

// breach tells how a call of n tokens that passes at now breaks the promise of
// the rule; "" when it does not.
func (l *ledger) breach(r flow.Rule, now clock.Instant, n int, only bool) string {
	switch limiterOf(r) {
	case byWindow:
		most := math.Ceil(r.Limit)
		if most > 0 && r.Limit != math.Trunc(r.Limit) && r.Related != "" {
			most = math.Inf(1)
		}
		if held := l.held(r, now); float64(held+n) > most {
			return fmt.Sprintf("%d tokens pass beside %d in a window of %v", n, held, r.Limit)
		}
	case byThrottle:
		if r.Limit == 0 && only {
			return "a throttle of 0 lets a call pass"
		}
		if only && len(l.passes) > l.changed {
			before := l.passes[len(l.passes)-1]
			gap := time.Duration(float64(n) * float64(r.Window) / r.Limit)
			if before.only && now.Sub(before.at) < gap-1 && !forgotten(r, before.at, now) {
				return fmt.Sprintf("a gap of %v, not %v", now.Sub(before.at), gap)
			}
		}
	case byBucket:
		if only {
			return l.overdrawn(r, now, n)
		}
	}
	return ""
}

// forgotten says whether a throttle of one resource may be forgotten together with
// it, so that what it remembers of a call at an instant does not hold any more for
// one that takes more than the limit.
func forgotten(r flow.Rule, at, now clock.Instant) bool {
	return r.Match != "" && !r.Shared && now.Sub(at) >= max(r.Window, time.Minute)
}

// overdrawn looks for an interval, ending now, in which more passed than the
// bucket held and what flowed in.
func (l *ledger) overdrawn(r flow.Rule, now clock.Instant, n int) string {
	if r.Limit == 0 {
		return "a bucket with a limit of 0 lets a call pass"
	}
	rate, tokens, burst := r.Limit/float64(r.Window), float64(n), r.Burst
	if r.WarmUp.Period > 0 || r.Overdraft {
		tokens = 0 // the last call may be larger than what is left
	}
	for i := len(l.passes) - 1; i >= l.changed; i-- {
		p := l.passes[i]
		tokens += float64(p.tokens)
		if !p.only {
			return "" // it had another queue: calls pass later than planned
		}
		if most := burst + rate*float64(now.Sub(p.at)); tokens > most+1e-6+2*rate {
			return fmt.Sprintf("%v tokens in %v, where %v are due", tokens, now.Sub(p.at), most)
		}
	}
	return ""
}
