package flow

import (
	"math"
	"time"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/internal/calendar"
	"github.com/penstock-go/penstock/internal/openwindow"
	"github.com/penstock-go/penstock/internal/warmup"
)

// compiledRule is a compiled version of a rule: the rule, and what limiters compute from
// it. It never changes. A changed rule is compiled again, and its limiter goes over to
// the result. It is 64 bytes, one line of the processor's cache: ten thousand may be compiled at once.
type compiledRule struct {
	rule     *Rule // never changes, and may be that which others have too
	version  uint64
	follower *follower           // nil if the limit does not move
	windows  *openwindow.Windows // nil unless they follow the calendar

	most     int64         // the tokens of the largest call that can ever pass a window
	bucket   time.Duration // windows: the length of a bucket, about that if it is one of the calendar; queues: see window
	span     int32         // windows: the number of buckets that the limit holds over; queues: 0
	revision uint32        // of the version, if the limit moves; see follower

	*warmUpCurves // nil unless the rule warms up
}

// warmUpCurves are how the limit of a rule rises.
type warmUpCurves struct {
	curve warmup.Curve     // windows and throttle
	costs warmup.CostCurve // token bucket
}

// compile compiles a rule that is valid and complete, which it keeps and which never changes.
// Limiters tell versions of their rule apart by version: the higher one is newer.
func compile(rule *Rule, version uint64) *compiledRule {
	window := rule.Calendar.Length(rule.Window)
	r := &compiledRule{rule: rule, version: version, windows: openwindow.New(rule.calendar()), bucket: window}
	if rule.limiterKind() == windowLimiter {
		parts := max(1, rule.Buckets) // a fixed window is not parted
		r.bucket, r.span = window/time.Duration(parts), int32(parts)
		if rule.Strict {
			// An unaligned interval touches one bucket more than its length has.
			r.span++
		}
	}
	r.compileLimit()
	if rule.Follow != (Follow{}) {
		r = r.withSource(&signalSource{follow: rule.Follow, written: rule.Limit})
	}
	return r
}

// calendar returns the calendar that the windows of the rule follow, nil if they are measured. A
// fixed window that is long follows it, too, unless its limit rises or is carried over.
func (r *Rule) calendar() *calendar.Calendar {
	isLong := r.Algorithm == FixedWindow && r.Window >= openwindow.Shortest
	if isLong && r.Limit == math.Trunc(r.Limit) && r.WarmUp == (WarmUp{}) && !isOfFleet(r) {
		return calendar.Every(r.Window)
	}
	return r.Calendar.Compile()
}

// window returns the time that the limit is for, about that if it is one of the calendar.
func (r *compiledRule) window() time.Duration {
	if r.span == 0 {
		return r.bucket
	}
	return r.rule.Calendar.Length(r.rule.Window)
}

// windowAt returns the length of the window that is open at now.
func (r *compiledRule) windowAt(now clock.Instant) time.Duration {
	if r.windows == nil {
		return r.rule.Window
	}
	return r.windows.LengthAt(now)
}

// compileLimit computes what depends on the limit.
func (r *compiledRule) compileLimit() {
	whole, fraction := split(r.rule.Limit)
	if r.most = whole; fraction > 0 {
		r.most++
	}
	if r.rule.WarmUp.Period > 0 {
		r.compileWarmUp()
	}
}

func (r *compiledRule) compileWarmUp() {
	r.warmUpCurves = new(warmUpCurves)
	w, perSecond := r.rule.WarmUp, r.rule.Limit/r.window().Seconds()
	switch r.rule.limiterKind() {
	case bucketLimiter:
		r.costs = warmup.NewCostCurve(perSecond, w.Period, w.ColdFactor)
	case throttleLimiter:
		r.curve = warmup.NewCurve(perSecond, w.Period, w.ColdFactor, w.Step).JudgedByCalls()
	case windowLimiter:
		r.curve = warmup.NewCurve(r.rule.Limit/r.spanLength().Seconds(), w.Period, w.ColdFactor, w.Step).
			JudgedOver(r.spanLength())
	}
}

// outlastsStep says whether the window of a rule that warms up is longer than a step.
func (r *compiledRule) outlastsStep() bool { return r.warmsUp() && r.spanLength() > r.rule.WarmUp.Step }

// spanLength returns the time in which no more than the limit passes a window.
func (r *compiledRule) spanLength() time.Duration { return time.Duration(r.span) * r.bucket }

// sameBuckets says whether both versions of a rule have the same buckets.
func (r *compiledRule) sameBuckets(other *compiledRule) bool {
	if r.windows == nil || other.windows == nil {
		return r.windows == other.windows && r.bucket == other.bucket && r.span == other.span
	}
	return r.bucket == other.bucket && r.span == other.span && r.rule.Calendar == other.rule.Calendar
}

func (r *compiledRule) bucketOf(now clock.Instant) int64 {
	if r.windows != nil {
		return r.windows.Number(now)
	}
	return int64(now) / int64(r.bucket)
}

func (r *compiledRule) bucketStart(bucket int64) clock.Instant {
	if r.windows != nil {
		return r.windows.Start(bucket)
	}
	return clock.Instant(bucket * int64(r.bucket))
}

// bucketEnd returns the last instant of a bucket.
func (r *compiledRule) bucketEnd(bucket int64) clock.Instant { return r.bucketStart(bucket+1) - 1 }

func (r *compiledRule) warmsUp() bool { return r.warmUpCurves != nil }

// cost returns the time that n tokens take at a limit in tokens per window, in
// nanoseconds.
func (r *compiledRule) cost(n int64, limit float64) float64 {
	return float64(n) * float64(r.window()) / limit
}

// perNanosecond returns the limit in tokens per nanosecond: 0 for the limit 0 alone.
func (r *compiledRule) perNanosecond() float64 {
	if rate := r.rule.Limit / float64(r.window()); rate > 0 || r.rule.Limit <= 0 {
		return rate
	}
	return math.SmallestNonzeroFloat64
}

// forever is a cost beyond every MaxWait that can still be added to an instant.
const forever = 100 * 365 * 24 * time.Hour

// beforeAll is the instant at which a call is taken to have passed that came before the
// first one.
const beforeAll = clock.Instant(-2 * forever)

// split splits a limit into whole tokens and the fraction of one. Beside whole tokens, a
// fraction that may come of rounding is none.
func split(limit float64) (whole int64, fraction float64) {
	floor := math.Floor(limit + roundingError)
	if fraction = limit - floor; floor > 0 && fraction <= roundingError {
		fraction = 0
	}
	return int64(floor), fraction
}

// roundingError is how far a sum of fractions may fall short of a whole token.
const roundingError = 1e-9
