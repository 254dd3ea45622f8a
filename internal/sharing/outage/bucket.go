package outage

import (
	"math"
	"time"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/internal/sharing/usage"
)

// Bucket decides while the backend does not answer. It starts empty.
type Bucket struct {
	Rate  float64 // tokens per second
	Most  float64 // tokens
	Level float64
}

// newBucket returns a bucket that keeps what flows in in 100 ms, of a few calls per second
// in twice that time, since those do not come evenly; at least one token.
func newBucket(rate float64) Bucket {
	inflow := rate / 10
	return Bucket{Rate: rate, Most: max(1, inflow+min(inflow, 4))}
}

// UnlimitedBucket returns a bucket that lets everything pass.
func UnlimitedBucket() Bucket {
	return Bucket{Rate: UnlimitedRate, Most: unlimited, Level: unlimited}
}

func (l *Bucket) flow(elapsed time.Duration) {
	l.Level = min(l.Most, l.Level+l.Rate*max(0, elapsed).Seconds())
}

func (l *Bucket) Tokens() int64 { return int64(max(0, l.Level+1e-9)) }

// next returns when there is a token, 0 if that is not known.
func (l *Bucket) next(now clock.Instant) clock.Instant {
	if l.Rate <= 0 {
		return 0
	}
	return now.Add(max(0, usage.Seconds((1-l.Level)/l.Rate)))
}

// IsUnlimited says whether the bucket lets everything pass.
func (l *Bucket) IsUnlimited() bool { return l.Most >= unlimited }

// Passes returns the tokens per second that the bucket lets pass: infinite if all.
func (l *Bucket) Passes() float64 {
	if l.IsUnlimited() {
		return math.Inf(1)
	}
	return l.Rate
}
