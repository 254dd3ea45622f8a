package adaptive

import (
	"math"
	"sync/atomic"
	"time"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/rule"
)

// gradientLimiter counts the calls under way.
type gradientLimiter struct{ underWay *atomic.Int64 }

func newGradient(Rule, rule.Env) rule.Limiter { return gradientLimiter{new(atomic.Int64)} }

func (l gradientLimiter) strategy() Strategy { return Gradient }

func (l gradientLimiter) adopt(Rule, rule.Env) rule.Limiter { return l }

// Acquire lets the call pass.
func (l gradientLimiter) Acquire(rule.Call) (rule.Ticket, rule.Decision) {
	l.underWay.Add(1)
	return 0, rule.Pass
}

// GiveBack undoes an Acquire.
func (l gradientLimiter) GiveBack(clock.Instant, rule.Ticket, int32) { l.underWay.Add(-1) }

// Done counts the end of the call.
func (l gradientLimiter) Done(rule.Ticket, rule.Exit) { l.underWay.Add(-1) }

// RetryAfter is unknown.
func (l gradientLimiter) RetryAfter(rule.Call) time.Duration { return 0 }

// Status returns the gauges.
func (l gradientLimiter) Status(clock.Instant) rule.Status {
	return rule.Status{Gauges: []float64{math.NaN(), float64(l.underWay.Load())}}
}

// Idle says whether no call is under way.
func (l gradientLimiter) Idle(clock.Instant) bool { return l.underWay.Load() == 0 }
