package flow

import (
	"math"
	"time"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/warmup"
)

// Terms are a compiled rule: the rule and what limiters compute from it. They never
// change. A changed rule is compiled again, and the same limiter goes over to the result.
type Terms struct {
	rule    Rule
	version uint64

	seconds float64       // the window, in seconds
	most    int64         // the tokens of the largest call that can ever pass a window
	bucket  time.Duration // windows: the length of a bucket
	span    int           // windows: the number of buckets that the limit holds over

	// Of a rule that warms up:
	curve warmup.Curve     // windows and throttle
	costs warmup.CostCurve // token bucket
}

// Compile compiles a rule, which must be valid and complete. A limiter tells versions of
// its rule apart by version: the higher one is newer.
func Compile(rule Rule, version uint64) *Terms {
	t := &Terms{rule: rule, version: version, seconds: rule.Window.Seconds()}
	t.most = int64(math.Ceil(rule.Limit - roundingError))
	if rule.limiterKind() == windowLimiter {
		parts := max(1, rule.Buckets) // a fixed window is not parted
		t.bucket, t.span = rule.Window/time.Duration(parts), parts
		if rule.Strict {
			// An unaligned interval touches one bucket more than its length has.
			t.span++
		}
	}
	if t.warmsUp() {
		t.compileWarmUp()
	}
	return t
}

func (t *Terms) compileWarmUp() {
	w, perSecond := t.rule.WarmUp, t.rule.Limit/t.seconds
	switch t.rule.limiterKind() {
	case bucketLimiter:
		t.costs = warmup.NewCostCurve(perSecond, w.Period, w.ColdFactor)
	case throttleLimiter:
		t.curve = warmup.NewCurve(perSecond, w.Period, w.ColdFactor, w.Step).JudgedByCalls()
	case windowLimiter:
		t.curve = warmup.NewCurve(t.rule.Limit/t.spanLength().Seconds(), w.Period, w.ColdFactor, w.Step).
			JudgedOver(t.spanLength())
	}
}

// outlastsStep says whether the window of a rule that warms up is longer than a step.
func (t *Terms) outlastsStep() bool { return t.warmsUp() && t.spanLength() > t.rule.WarmUp.Step }

// spanLength returns the time in which no more than the limit passes a window.
func (t *Terms) spanLength() time.Duration { return time.Duration(t.span) * t.bucket }

// Rule returns the rule that was compiled.
func (t *Terms) Rule() Rule { return t.rule }

// Name returns the name of the rule.
func (t *Terms) Name() string { return t.rule.Name }

// Same says whether both were compiled from the same rule.
func (t *Terms) Same(other *Terms) bool { return t.rule == other.rule }

// CanFollow says whether a limiter of the present version can go on with this one: both
// count the same calls, by the same kind of limiter.
func (t *Terms) CanFollow(present *Terms) bool {
	return t.CountsLike(present) && t.rule.limiterKind() == present.rule.limiterKind()
}

// CountsLike says whether this version of the rule counts the same calls as the present
// one, be it by another kind of limiter, see [predecessor].
func (t *Terms) CountsLike(present *Terms) bool {
	from, to := &present.rule, &t.rule
	return from.Resource == to.Resource && from.Match == to.Match &&
		from.Shared == to.Shared && from.Related == to.Related
}

func (t *Terms) warmsUp() bool { return t.rule.WarmUp.Period > 0 }

// cost returns the time that n tokens take at a ceiling in tokens per window, in
// nanoseconds.
func (t *Terms) cost(n int64, ceiling float64) float64 {
	return float64(n) * t.seconds * 1e9 / ceiling
}

// perNanosecond returns the limit in tokens per nanosecond.
func (t *Terms) perNanosecond() float64 { return t.rule.Limit / t.seconds / 1e9 }

// forever is a cost beyond every MaxWait that can still be added to an instant.
const forever = 100 * 365 * 24 * time.Hour

// longAgo is the turn before the first one.
const longAgo = clock.Instant(-2 * forever)
