package adaptive

import (
	"math"
	"time"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/rule"
)

// thresholdControl sheds calls while a value is above its threshold:
//
//   - CPU, memory, scheduler delay: it finds the rate of calls at which none of them is, see
//     shedRate;
//   - mean response time: calls under way are limited, see responseLimit;
//   - load: calls under way are limited to what the service can do at once, see capacity. A
//     load average tells of the last minute, too late to find a rate by it;
//   - concurrency and the rate are limits that always hold.
type thresholdControl struct {
	rule     Rule
	capacity capacity
	took     responseTimes
	response responseLimit
	rate     shedRate
	limit    uint32 // that is in force, or noLimit
}

func newThreshold(r *Rule, env rule.Env) rule.Limiter {
	return newShedLimiter(r, env, &thresholdControl{
		rule: *r, limit: noLimit, response: responseLimit{limit: math.Inf(1)},
		rate: shedRate{rate: math.Inf(1), moved: env.Now},
	})
}

func (t *thresholdControl) adopt(r *Rule) { t.rule = *r }

func (t *thresholdControl) update(now clock.Instant, l *shedLimiter, i *interval) verdict {
	s := l.state
	t.capacity.add(now, i)
	t.took.add(now, i)
	t.limit = noLimit
	if t.rule.Concurrency > 0 {
		t.limit = uint32(t.rule.Concurrency)
	}
	excess := t.readSignals(now, l)
	t.response.update(now, t.rule.AvgRT, &t.took, i)
	if limit := t.response.limit; !math.IsInf(limit, 1) {
		t.limit = min(t.limit, uint32(limit+0.5))
	}
	took := t.took.mean(now)
	if i.length > 0 {
		recent := &s.recent
		t.rate.move(now, measure{
			excess: excess, took: took, span: i.length, arriving: recent.arrivalRate(),
			passing: recent.admitted / recent.seconds, good: recent.good / recent.seconds,
		})
	}
	return verdict{limit: t.limit, rate: t.rate.rate, qps: t.rule.QPS, next: t.response.next(t.rule.AvgRT)}
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
	limit, ok := t.capacity.limit(now)
	if !ok {
		return noLimit
	}
	return uint32(max(defaultMinLimit, min(limit, maxLimit)))
}

func (t *thresholdControl) inForce() float64 {
	if t.limit == noLimit {
		return math.NaN()
	}
	return float64(t.limit)
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
	length      time.Duration
	calls, took float64
}

func (r *responseTimes) add(now clock.Instant, i *interval) {
	if r.parts[r.last].length >= updateEvery {
		r.last = (r.last + 1) % len(r.parts)
		r.parts[r.last] = responseTimesPart{}
	}
	p := &r.parts[r.last]
	p.until, p.length = now, p.length+i.length
	p.calls, p.took = p.calls+i.counted, p.took+i.took
}

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

// rate returns how many calls ended in a second.
func (r *responseTimes) rate(now clock.Instant) float64 {
	var calls float64
	oldest := now
	for i := range r.parts {
		if p := &r.parts[i]; p.calls > 0 && now.Sub(p.until) < time.Second {
			calls += p.calls
			oldest = min(oldest, p.until.Add(-p.length))
		}
	}
	if now <= oldest {
		return 0
	}
	return calls / now.Sub(oldest).Seconds()
}
