package sharing

import (
	"math"
	"time"

	"github.com/penstock-go/penstock/clock"
)

// average is tokens per second of late: an exponential moving average.
type average float64

// add counts tokens that came since it was counted last, some time ago.
func (a *average) add(tokens int64, elapsed, memory time.Duration) {
	x := max(0, elapsed).Seconds() / memory.Seconds()
	weight := -math.Expm1(-x)
	switch {
	case x > 0 && x < 0.5:
		*a += average((float64(tokens)/elapsed.Seconds() - float64(*a)) * weight)
	default: // after a quiet time, they have come just now
		*a += average(float64(tokens)/memory.Seconds() - float64(*a)*weight)
	}
	*a = max(0, *a)
}

// perSecond is the average; next to nothing is nothing.
func (a average) perSecond() float64 {
	if a < 1e-6 {
		return 0
	}
	return float64(a)
}

// localBucket decides while the backend does not answer. It starts empty.
type localBucket struct {
	rate  float64 // tokens per second
	most  float64 // tokens
	level float64
}

// newLocalBucket returns a bucket that keeps what flows in in 100 ms, of a few calls per second
// in twice that time, since those do not come evenly; at least one token.
func newLocalBucket(rate float64) localBucket {
	inflow := rate / 10
	return localBucket{rate: rate, most: max(1, inflow+min(inflow, 4))}
}

// unlimitedBucket returns a bucket that lets everything pass.
func unlimitedBucket() localBucket {
	return localBucket{rate: unlimitedRate, most: unlimited, level: unlimited}
}

func (l *localBucket) flow(elapsed time.Duration) {
	l.level = min(l.most, l.level+l.rate*max(0, elapsed).Seconds())
}

func (l *localBucket) tokens() int64 { return int64(max(0, l.level+1e-9)) }

// next returns when there is a token, 0 if that is not known.
func (l *localBucket) next(now clock.Instant) clock.Instant {
	if l.rate <= 0 {
		return 0
	}
	return now.Add(max(0, seconds((1-l.level)/l.rate)))
}

// isUnlimited says whether the bucket lets everything pass.
func (l *localBucket) isUnlimited() bool { return l.most >= unlimited }

// passes returns the tokens per second that the bucket lets pass: infinite if all.
func (l *localBucket) passes() float64 {
	if l.isUnlimited() {
		return math.Inf(1)
	}
	return l.rate
}

// seconds is a time of so many seconds, at most some hundred years.
func seconds(s float64) time.Duration { return time.Duration(min(max(s, -1e9)*1e9, math.MaxInt64/2)) }

// nextTick returns the first tick that is not before an instant.
func nextTick(at clock.Instant) clock.Instant {
	return (at + clock.Instant(tick) - 1) / clock.Instant(tick) * clock.Instant(tick)
}
