package adaptive

import (
	"math"
	"sync/atomic"
	"time"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/rule"
)

// thresholdLimiter counts the calls under way.
type thresholdLimiter struct{ underWay *atomic.Int64 }

func newThreshold(Rule, rule.Env) rule.Limiter { return thresholdLimiter{new(atomic.Int64)} }

func (l thresholdLimiter) strategy() Strategy { return Threshold }

func (l thresholdLimiter) adopt(Rule, rule.Env) rule.Limiter { return l }

// Acquire lets the call pass.
func (l thresholdLimiter) Acquire(rule.Call) (rule.Ticket, rule.Decision) {
	l.underWay.Add(1)
	return 0, rule.Pass
}

// GiveBack undoes an Acquire.
func (l thresholdLimiter) GiveBack(clock.Instant, rule.Ticket, int32) { l.underWay.Add(-1) }

// Done counts the end of the call.
func (l thresholdLimiter) Done(rule.Ticket, rule.Exit) { l.underWay.Add(-1) }

// RetryAfter is unknown.
func (l thresholdLimiter) RetryAfter(rule.Call) time.Duration { return 0 }

// Status returns the gauges.
func (l thresholdLimiter) Status(clock.Instant) rule.Status {
	return rule.Status{Gauges: []float64{math.NaN(), float64(l.underWay.Load())}}
}

// Idle says whether no call is under way.
func (l thresholdLimiter) Idle(clock.Instant) bool { return l.underWay.Load() == 0 }
