package flow

// limiterKind says what enforces a rule. When a rule is changed, the limiter that it
// has goes on as long as this stays the same; else another one follows it.
type limiterKind uint8

const (
	windowLimiter   limiterKind = iota // a window: rules with a sliding or a fixed window
	throttleLimiter                    // a queue whose calls are evenly spaced
	bucketLimiter                      // a queue with a token bucket
	balanceLimiter                     // a prepaidLimiter
)

// String returns what calls take tokens from.
func (k limiterKind) String() string {
	switch k {
	case windowLimiter:
		return "a window"
	case balanceLimiter:
		return "a balance"
	}
	return "a bucket"
}

// limiterKind returns what enforces the rule.
func (r *Rule) limiterKind() limiterKind {
	switch r.Algorithm {
	case Throttle:
		return throttleLimiter
	case TokenBucket:
		return bucketLimiter
	case Prepaid:
		return balanceLimiter
	}
	return windowLimiter
}
