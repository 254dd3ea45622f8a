package simulate_test

import (
	"math"
	"math/big"
	"strconv"

	"github.com/penstock-go/penstock/flow"
)

// newSchedule returns the schedule of a rule.
func newSchedule(rule flow.Rule) schedule {
	switch {
	case rule.Limit == 0:
		return closedSchedule{}
	case rule.Algorithm == flow.Throttle && rule.WarmUp.Period > 0:
		return &warmThrottle{sentinelBucket: newSentinelBucket(rule), maxWait: int64(rule.MaxWait), last: math.MinInt64 / 2}
	case rule.Algorithm == flow.Throttle:
		return &throttle{scale: scaleOf(rule), last: math.MinInt64 / 2}
	case rule.WarmUp.Period > 0:
		return newWarmingBucket(rule)
	}
	s := scaleOf(rule)
	burst := rule.Burst
	if burst == 0 {
		burst = max(1, rule.Limit)
	}
	full := int64(math.Round(burst * float64(s.token)))
	if rule.Overdraft {
		return &smoothBursty{scale: s, burst: full, stored: full}
	}
	return &tokenBucket{scale: s, burst: full, balance: full}
}

// scale measures tokens by the time that they take to come, in units in which
// both a nanosecond and a token are whole numbers.
type scale struct{ nanosecond, token int64 }

func scaleOf(rule flow.Rule) scale {
	limit, _ := new(big.Rat).SetString(strconv.FormatFloat(rule.Limit, 'f', -1, 64))
	return scale{nanosecond: limit.Num().Int64(), token: int64(rule.Window) * limit.Denom().Int64()}
}

// closedSchedule lets nothing pass.
type closedSchedule struct{}

func (closedSchedule) slot(int64, int64) (int64, bool) { return 0, false }
func (closedSchedule) grant(int64, int64)              {}
func (closedSchedule) clone() schedule                 { return closedSchedule{} }

// throttle keeps slots apart by what the later one takes. Slots are rounded up to
// the nanosecond; the excess is carried over in units.
type throttle struct {
	scale
	last, excess int64
	next         int64 // the excess of the slot asked for last
}

func (p *throttle) slot(since, tokens int64) (int64, bool) {
	exact := tokens*p.token - p.excess
	apart := (exact + p.nanosecond - 1) / p.nanosecond
	p.next = apart*p.nanosecond - exact
	if p.last+apart <= since {
		p.next = 0
		return since, true
	}
	return p.last + apart, true
}
func (p *throttle) grant(slot, _ int64) { p.last, p.excess = slot, p.next }
func (p *throttle) clone() schedule     { c := *p; return &c }

// tokenBucket fills while time passes.
type tokenBucket struct {
	scale
	burst, balance int64 // units
	at             int64
	full           int64 // when a call last found it full
}

func (p *tokenBucket) filled(now int64) int64 {
	return min(p.burst, p.balance+max(0, now-p.at)*p.nanosecond)
}

func (p *tokenBucket) slot(since, tokens int64) (int64, bool) {
	since = max(since, p.at)
	missing := tokens*p.token - p.filled(since)
	return since + max(0, missing)/p.nanosecond, tokens*p.token <= p.burst
}

func (p *tokenBucket) grant(slot, tokens int64) {
	if p.filled(slot) == p.burst {
		p.full = slot
	}
	p.balance, p.at = p.filled(slot)-tokens*p.token, slot
}

// takeBack returns tokens that would not have overflowed since.
func (p *tokenBucket) takeBack(slot, tokens int64) {
	if slot >= p.full {
		p.balance += tokens * p.token
	}
}
func (p *tokenBucket) clone() schedule { c := *p; return &c }

// smoothBursty is Guava's: a call goes when nothing is owed, and what it takes
// beyond the stored tokens is owed by the next.
type smoothBursty struct {
	scale
	burst, stored int64 // units
	free          int64 // when the next call is free to go, in units
	full          int64 // when a call last found it full
}

func (p *smoothBursty) slot(since, _ int64) (int64, bool) {
	return max(since, p.free/p.nanosecond), true
}

func (p *smoothBursty) grant(slot, tokens int64) {
	if now := slot * p.nanosecond; now > p.free {
		if p.stored, p.free = min(p.burst, p.stored+now-p.free), now; p.stored == p.burst {
			p.full = slot
		}
	}
	used := min(tokens*p.token, p.stored)
	p.stored -= used
	p.free += tokens*p.token - used
}

// takeBack returns tokens that would not have overflowed since.
func (p *smoothBursty) takeBack(slot, tokens int64) {
	if slot >= p.full {
		p.free -= tokens * p.token
	}
}
func (p *smoothBursty) clone() schedule { c := *p; return &c }

// warmingBucket is Guava's SmoothWarmingUp: stored tokens cost more than fresh ones.
// Times are in seconds.
type warmingBucket struct {
	stable, threshold, maximum, slope, coolDown float64
	stored, free                                float64
}

func newWarmingBucket(rule flow.Rule) *warmingBucket {
	period := rule.WarmUp.Period.Seconds()
	stable := rule.Window.Seconds() / rule.Limit
	cold := stable * rule.WarmUp.ColdFactor
	p := &warmingBucket{stable: stable, threshold: 0.5 * period / stable}
	p.maximum = p.threshold + 2*period/(stable+cold)
	p.slope = (cold - stable) / (p.maximum - p.threshold)
	p.coolDown = period / p.maximum
	p.stored = p.maximum
	return p
}

func (p *warmingBucket) slot(since, _ int64) (int64, bool) {
	return max(since, int64(p.free*1e9+0.01)), true
}

// costOf integrates the interval over the uppermost stored tokens.
func (p *warmingBucket) costOf(tokens float64) float64 {
	sloped := min(tokens, max(0, p.stored-p.threshold))
	top := p.stable + (p.stored-p.threshold)*p.slope
	return tokens*p.stable + sloped*(top-p.stable+top-sloped*p.slope-p.stable)/2
}

func (p *warmingBucket) grant(slot, tokens int64) {
	if now := float64(slot) / 1e9; now > p.free {
		p.stored, p.free = min(p.maximum, p.stored+(now-p.free)/p.coolDown), now
	}
	used := min(float64(tokens), p.stored)
	p.free += p.costOf(used) + (float64(tokens)-used)*p.stable
	p.stored -= used
}
func (p *warmingBucket) clone() schedule { c := *p; return &c }
