package adaptive

import (
	"math"
	"time"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/rule"
)

// bbrHold is how long calls are still limited after the CPU was busy last.
const bbrHold = time.Second

// bbrControl limits calls under way, while the CPU is busy and for a second after, to what
// the service could do at once in the last ten seconds, see capacity.
type bbrControl struct {
	rule     Rule
	capacity capacity
	limit    uint32        // what it is while the CPU is busy; 0 if that is not known
	baseline float64       // seconds
	until    clock.Instant // when calls stop being limited
}

func newBBR(r Rule, env rule.Env) rule.Limiter {
	return newShedLimiter(r, env, &bbrControl{rule: r, baseline: math.NaN(), until: env.Now})
}

func (b *bbrControl) adopt(r Rule) { b.rule = r }

func (b *bbrControl) update(now clock.Instant, l *shedLimiter, i *interval) verdict {
	b.capacity.add(now, i)
	b.limit, b.baseline = 0, math.NaN()
	if calls, seconds, ok := b.capacity.estimate(now); ok {
		b.limit, b.baseline = b.rule.clampLimit(math.Floor(calls+0.5)+1), seconds
	}
	over, unknown := worst(l.signals)
	l.state.unknown = unknown
	if over > 1 {
		b.until = now.Add(bbrHold)
	}
	if b.limit > 0 && now < b.until {
		return verdict{b.limit, math.Inf(1)}
	}
	return verdict{noLimit, math.Inf(1)}
}

func (b *bbrControl) gauges() (limit, baseline float64) {
	if b.limit == 0 {
		return math.NaN(), b.baseline
	}
	return float64(b.limit), b.baseline
}

// clampLimit returns a limit as near as the rule allows.
func (r *Rule) clampLimit(limit float64) uint32 {
	return uint32(max(float64(r.MinLimit), min(limit, float64(r.MaxLimit))))
}

// worst returns the highest of the signals' shares of their thresholds, and how many
// signals cannot be read: they count for nothing.
func worst(signals []signalThreshold) (excess float64, unknown int) {
	for i := range signals {
		if share, ok := signals[i].excess(); ok {
			excess = max(excess, share)
		} else {
			unknown++
		}
	}
	return excess, unknown
}
