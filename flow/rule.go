package flow

import "time"

// Control says what becomes of a call that comes too early.
type Control string

// The ways to control a flow.
const (
	// Reject refuses what exceeds the ceiling of the sliding window.
	Reject Control = "reject"
	// Throttle queues calls and lets them go evenly spaced, first come, first
	// served: the leaky bucket as a queue.
	Throttle Control = "throttle"
)

// Algorithm says how calls are counted against the limit.
type Algorithm string

// SlidingWindow counts the calls of the last window, bucket by bucket. It is
// the only algorithm of this version.
const SlidingWindow Algorithm = "slidingWindow"

// What a rule's fields may hold and what they are when left out.
const (
	DefaultWindow     = time.Second
	DefaultBuckets    = 10
	DefaultColdFactor = 3.0
	DefaultStep       = time.Second

	MaxLimit   = 1e9 // tokens per window
	MinWindow  = 10 * time.Millisecond
	MaxWindow  = 24 * time.Hour
	MaxBuckets = 1000
	MinBucket  = time.Millisecond // the shortest bucket of a window
	MaxMaxWait = 24 * time.Hour
	MaxPeriod  = 24 * time.Hour

	MaxColdFactor = 1000.0
)

// Rule is one rate ceiling on one resource. It is a plain value: copies share
// nothing, and two rules are the same rule when they are equal.
type Rule struct {
	// Name identifies the rule in errors, logs and metrics, and over reloads:
	// a rule that keeps its name and resource keeps its state. Unique among
	// flow rules. Defaults to the resource.
	Name string

	// Resource is the exact name of the guarded resource.
	Resource string

	// Limit is how many tokens may pass in one window. A call takes one token
	// unless it says otherwise. It may be fractional: 2.5 lets 5 calls through
	// in 2 windows, 0.5 one in 2 windows. 0 blocks all. At most [MaxLimit].
	Limit float64

	// Window is the time that Limit speaks of. Defaults to one second; from
	// [MinWindow] to [MaxWindow].
	Window time.Duration

	// Algorithm says how calls are counted. Defaults to [SlidingWindow].
	Algorithm Algorithm

	// Buckets is how many parts the sliding window has: more are smoother and
	// cost more memory. Defaults to 10; each at least [MinBucket] long. Reject
	// only.
	Buckets int

	// Strict makes the limit hold over every interval of the window's length,
	// aligned to buckets or not. It costs up to 1/(Buckets+1) of the
	// throughput under overload. Reject only.
	Strict bool

	// Control says what becomes of a call that comes too early. Defaults to
	// [Reject].
	Control Control

	// MaxWait is the longest that a call may wait for its turn. Throttle only;
	// the default, zero, lets no call wait.
	MaxWait time.Duration

	// WarmUp lowers the ceiling of a cold resource. The zero value is off.
	WarmUp WarmUp
}

// WarmUp makes the ceiling of a cold resource rise from limit/ColdFactor to
// the limit, within about Period of full load. See the package warmup.
type WarmUp struct {
	// Period is how long a cold resource takes to become warm under full load.
	// Zero turns warm-up off.
	Period time.Duration

	// ColdFactor is how much lower than the limit the ceiling of a stone-cold
	// resource is. Greater than 1, at most [MaxColdFactor]; defaults to 3.
	ColdFactor float64

	// Step is how often the ceiling is computed anew. Defaults to one second.
	Step time.Duration
}
