package flow

// Limiter tells what enforces a rule. When a rule is changed, the limiter that it
// has goes on as long as it stays the same; else another one follows it, see
// [Predecessor].
type Limiter uint8

// The limiters.
const (
	// WindowLimiter is a [Window]: rules with a sliding or a fixed window.
	WindowLimiter Limiter = iota
	// ThrottleLimiter is a [Queue] whose turns are evenly spaced.
	ThrottleLimiter
	// BucketLimiter is a [Queue] whose turns are those of a token bucket.
	BucketLimiter
)

// Limiter returns what enforces the rule.
func (r Rule) Limiter() Limiter {
	switch r.Algorithm {
	case Throttle:
		return ThrottleLimiter
	case TokenBucket:
		return BucketLimiter
	}
	return WindowLimiter
}
