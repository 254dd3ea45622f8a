package adaptive

import (
	"math"
	"sync/atomic"
	"time"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/rule"
)

// bbrLimiter counts the calls under way.
type bbrLimiter struct{ underWay *atomic.Int64 }

func newBBR(Rule, rule.Env) rule.Limiter { return bbrLimiter{new(atomic.Int64)} }

func (l bbrLimiter) strategy() Strategy { return BBR }

func (l bbrLimiter) adopt(Rule, rule.Env) rule.Limiter { return l }

// Acquire lets the call pass.
func (l bbrLimiter) Acquire(rule.Call) (rule.Ticket, rule.Decision) {
	l.underWay.Add(1)
	return 0, rule.Pass
}

// GiveBack undoes an Acquire.
func (l bbrLimiter) GiveBack(clock.Instant, rule.Ticket, int32) { l.underWay.Add(-1) }

// Done counts the end of the call.
func (l bbrLimiter) Done(rule.Ticket, rule.Exit) { l.underWay.Add(-1) }

// RetryAfter is unknown.
func (l bbrLimiter) RetryAfter(rule.Call) time.Duration { return 0 }

// Status returns the gauges.
func (l bbrLimiter) Status(clock.Instant) rule.Status {
	return rule.Status{Gauges: []float64{math.NaN(), float64(l.underWay.Load())}}
}

// Idle says whether no call is under way.
func (l bbrLimiter) Idle(clock.Instant) bool { return l.underWay.Load() == 0 }
