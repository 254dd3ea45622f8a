package adaptive

import (
	"math"
	"time"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/rule"
)

// bbrCooldown is how long calls are still limited after the CPU was busy last.
const bbrCooldown = time.Second

// bbrRelease is the factor by which the limit grows then with every update, until it is no
// longer needed. If it went at once, all calls that it keeps out would come at once.
const bbrRelease = 1.25

// bbrControl limits calls under way, while the CPU is busy and for a second after, to what
// the service could do at once in the last ten seconds, see capacity.
type bbrControl struct {
	rule     Rule
	capacity capacity
	limit    uint32        // what it is while the CPU is busy
	inForce  float64       // what it is now, or noLimit
	baseline float64       // seconds
	until    clock.Instant // when calls stop being limited
}

func newBBR(r *Rule, env rule.Env) rule.Limiter {
	return newShedLimiter(r, env, &bbrControl{rule: *r, baseline: math.NaN(), until: env.Now, inForce: noLimit})
}

func (b *bbrControl) adopt(r *Rule) { b.rule = *r }

func (b *bbrControl) update(now clock.Instant, l *shedLimiter, i *interval) verdict {
	b.capacity.add(now, i)
	b.limit, b.baseline = b.rule.clampLimit(defaultInitialLimit), math.NaN()
	if limit, seconds, ok := b.capacity.limit(now); ok {
		b.limit, b.baseline = b.rule.clampLimit(limit), seconds
		l.state.failedFrom.Store(int64(seconds * float64(time.Second)))
	}
	over, unknown := worst(l.signals)
	l.state.unknown = unknown
	if over > 1 {
		b.until = now.Add(bbrCooldown)
	}
	switch {
	case now < b.until:
		b.inForce = float64(b.limit)
	case b.inForce < noLimit && i.length > 0:
		if b.inForce *= bbrRelease; b.inForce > 2*i.underWay && b.inForce > float64(b.rule.MaxLimit) {
			b.inForce = noLimit
		}
	}
	return verdict{limit: uint32(min(b.inForce, noLimit)), rate: math.Inf(1)}
}

func (b *bbrControl) gauges() (limit, baseline float64) {
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
