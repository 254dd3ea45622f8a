package adaptive

import (
	"math"
	"time"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/rule"
)

// thresholdControl sheds calls while a value is above its threshold:
//
//   - CPU, memory, scheduler delay, mean response time: it finds the rate of calls at which
//     none of them is, see shedRate;
//   - load: calls under way are limited to what the service can do at once, see capacity. A
//     load average tells of the last minute, too late to find a rate by it;
//   - concurrency and the rate are limits that always hold.
type thresholdControl struct {
	rule     Rule
	capacity capacity
	took     responseTimes
	rate     shedRate
	limit    uint32 // that is in force, or noLimit
}

func newThreshold(r Rule, env rule.Env) rule.Limiter {
	return newShedLimiter(r, env, &thresholdControl{
		rule: r, limit: noLimit, rate: shedRate{rate: math.Inf(1), moved: env.Now},
	})
}

func (t *thresholdControl) adopt(r Rule) { t.rule = r }

func (t *thresholdControl) update(now clock.Instant, l *shedLimiter, i *interval) verdict {
	s := l.state
	s.failedFrom.Store(-1) // how calls end does not matter
	t.capacity.add(now, i)
	t.took.add(now, i)
	t.limit = noLimit
	if t.rule.Concurrency > 0 {
		t.limit = uint32(t.rule.Concurrency)
	}
	excess := t.readSignals(now, l)
	took := t.took.mean(now)
	if t.rule.AvgRT > 0 {
		excess = max(excess, float64(took)/float64(t.rule.AvgRT))
	}
	if i.length > 0 {
		recent := &s.recent
		if t.rate.move(now, measure{
			excess: excess, took: took, span: i.length, arriving: recent.arrivalRate(),
			passing: recent.admitted / recent.seconds, good: recent.good / recent.seconds,
		}) {
			t.took.clear()
		}
	}
	v := verdict{t.limit, t.rate.rate}
	if qps := math.Floor(t.rule.QPS); qps > 0 {
		v.rate = min(v.rate, qps*headroom(qps))
	}
	return v
}

// readSignals returns the highest of the signals' shares of their thresholds, but for the
// load, by which it limits the calls under way.
func (t *thresholdControl) readSignals(now clock.Instant, l *shedLimiter) (excess float64) {
	l.state.unknown = 0
	for n := range l.signals {
		signal := &l.signals[n]
		share, ok := signal.excess()
		switch {
		case !ok:
			l.state.unknown++
		case signal.signal != rule.SignalLoad:
			excess = max(excess, share)
		case share > 1:
			t.limit = min(t.limit, t.capacityLimit(now))
		}
	}
	return excess
}

// capacityLimit returns how many calls may be under way while the load is too high.
func (t *thresholdControl) capacityLimit(now clock.Instant) uint32 {
	limit, _, ok := t.capacity.limit(now)
	if !ok {
		return noLimit
	}
	return uint32(max(DefaultMinLimit, min(limit, MaxLimit)))
}

func (t *thresholdControl) gauges() (limit, baseline float64) {
	if t.limit == noLimit {
		return math.NaN(), math.NaN()
	}
	return float64(t.limit), math.NaN()
}

// responseTimesLeast is how many calls have to end in a second for their mean to count.
const responseTimesLeast = 5

// responseTimes are those of the last second, in ten parts.
type responseTimes struct {
	parts [10]responseTimesPart
	last  int
}

type responseTimesPart struct {
	until       clock.Instant
	calls, took float64
}

func (r *responseTimes) add(now clock.Instant, i *interval) {
	if i.counted > 0 {
		r.last = (r.last + 1) % len(r.parts)
		r.parts[r.last] = responseTimesPart{now, i.counted, i.took}
	}
}

func (r *responseTimes) clear() { *r = responseTimes{} }

// mean returns the mean; 0 if too few calls have ended for one.
func (r *responseTimes) mean(now clock.Instant) time.Duration {
	var calls, took float64
	for i := range r.parts {
		if p := &r.parts[i]; p.calls > 0 && now.Sub(p.until) < time.Second {
			calls += p.calls
			took += p.took
		}
	}
	if calls < responseTimesLeast {
		return 0
	}
	return time.Duration(took / calls)
}
