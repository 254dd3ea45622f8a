package adaptive

import (
	"math"
	"sync/atomic"
	"time"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/rule"
)

// latencyLimiter counts the calls under way.
type latencyLimiter struct{ underWay *atomic.Int64 }

func newLatency(Rule, rule.Env) rule.Limiter { return latencyLimiter{new(atomic.Int64)} }

func (l latencyLimiter) strategy() Strategy { return Latency }

func (l latencyLimiter) adopt(Rule, rule.Env) rule.Limiter { return l }

// Acquire lets the call pass.
func (l latencyLimiter) Acquire(rule.Call) (rule.Ticket, rule.Decision) {
	l.underWay.Add(1)
	return 0, rule.Pass
}

// GiveBack undoes an Acquire.
func (l latencyLimiter) GiveBack(clock.Instant, rule.Ticket, int32) { l.underWay.Add(-1) }

// Done counts the end of the call.
func (l latencyLimiter) Done(rule.Ticket, rule.Exit) { l.underWay.Add(-1) }

// RetryAfter is unknown.
func (l latencyLimiter) RetryAfter(rule.Call) time.Duration { return 0 }

// Status returns the gauges.
func (l latencyLimiter) Status(clock.Instant) rule.Status {
	return rule.Status{Gauges: []float64{math.NaN(), float64(l.underWay.Load())}}
}

// Idle says whether no call is under way.
func (l latencyLimiter) Idle(clock.Instant) bool { return l.underWay.Load() == 0 }
