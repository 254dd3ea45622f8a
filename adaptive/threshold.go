package adaptive

import (
	"math"
	"time"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/rule"
)

const (
	// While a value is above its threshold, calls that pass become fewer every
	// thresholdStep, by the ratio of the threshold to the value, within these bounds.
	thresholdStep  = 500 * time.Millisecond
	thresholdMost  = 0.97
	thresholdLeast = 0.5

	// While all values are below this share of their thresholds, calls that pass become
	// more by a factor. In between nothing changes.
	thresholdCalm  = 0.9
	thresholdRaise = 1.1

	maxDelayOfStep = 2 * time.Second
)

// thresholdControl sheds calls while a value is above its threshold. It finds the rate of
// calls at which no value is.
type thresholdControl struct {
	rule     Rule
	capacity capacity
	took     responseTimes
	limit    uint32        // that is in force, or noLimit
	rate     float64       // calls in a second that may pass, or +Inf
	moved    clock.Instant // when the rate was changed last
}

func newThreshold(r Rule, env rule.Env) rule.Limiter {
	return newShedLimiter(r, env, &thresholdControl{rule: r, limit: noLimit, rate: math.Inf(1), moved: env.Now})
}

func (t *thresholdControl) adopt(r Rule) { t.rule = r }

func (t *thresholdControl) update(now clock.Instant, l *shedLimiter, i *interval) verdict {
	t.capacity.add(now, i)
	t.took.add(now, i)
	traffic := &l.state.recent
	t.limit = noLimit
	if t.rule.Concurrency > 0 {
		t.limit = uint32(t.rule.Concurrency)
	}
	excess, unknown := 0.0, 0
	for n := range l.signals {
		signal := &l.signals[n]
		share, ok := signal.excess()
		switch {
		case !ok:
			unknown++
		case signal.signal != rule.SignalLoad:
			excess = max(excess, share)
		case share > 1:
			t.limit = min(t.limit, t.capacityLimit(now))
		}
	}
	l.state.unknown = unknown
	l.state.failedFrom.Store(-1) // how calls ended does not matter
	mean := t.took.mean(now)
	if t.rule.AvgRT > 0 {
		excess = max(excess, mean/float64(t.rule.AvgRT))
	}
	if i.length > 0 {
		t.moveRate(now, excess, mean, traffic)
	}
	v := verdict{t.limit, t.rate}
	if qps := headroom * math.Floor(t.rule.QPS); qps > 0 {
		v.rate = min(v.rate, qps)
	}
	return v
}

// capacityLimit returns how many calls may be under way while the load is too high.
func (t *thresholdControl) capacityLimit(now clock.Instant) uint32 {
	calls, _, ok := t.capacity.estimate(now)
	if !ok {
		return noLimit
	}
	return uint32(max(2, min(math.Floor(calls+0.5)+1, MaxLimit)))
}

// moveRate changes the rate by how far the worst of the values is above its threshold.
func (t *thresholdControl) moveRate(now clock.Instant, excess, mean float64, recent *traffic) {
	delay := thresholdStep + time.Duration(min(mean, float64(maxDelayOfStep)))
	waited := now.Sub(t.moved)
	switch unlimited := math.IsInf(t.rate, 1); {
	case excess > 1 && unlimited:
		t.rate = min(recent.admitted, max(recent.ended, 1)) / recent.seconds
		t.lower(now, excess)
	case excess > 1 && waited >= delay:
		t.rate = min(t.rate, recent.admitted/recent.seconds)
		t.lower(now, excess)
	case excess < thresholdCalm && !unlimited && waited >= thresholdStep:
		t.moved = now
		t.rate *= thresholdRaise
	}
	arrivals := recent.arrivalRate()
	if t.rate = max(t.rate, leastShare*arrivals); excess < thresholdCalm && t.rate > 2*arrivals {
		t.rate = math.Inf(1)
	}
}

func (t *thresholdControl) lower(now clock.Instant, excess float64) {
	t.rate *= max(thresholdLeast, min(1/excess, thresholdMost))
	t.moved = now
	t.took.clear()
}

func (t *thresholdControl) gauges() (limit, baseline float64) {
	if t.limit == noLimit {
		return math.NaN(), math.NaN()
	}
	return float64(t.limit), math.NaN()
}

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

// mean returns the mean in ns, 0 if no call has ended.
func (r *responseTimes) mean(now clock.Instant) float64 {
	var calls, took float64
	for i := range r.parts {
		if p := &r.parts[i]; p.calls > 0 && now.Sub(p.until) < time.Second {
			calls += p.calls
			took += p.took
		}
	}
	if calls == 0 {
		return 0
	}
	return took / calls
}
