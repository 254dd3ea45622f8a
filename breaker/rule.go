package breaker

import (
	"time"

	"github.com/penstock-go/penstock/rule"
)

// Strategy says which calls are bad, and when there are too many of them.
type Strategy string

// The strategies.
const (
	// SlowRatio opens the breaker when too large a share of the calls is slow, which is
	// longer than [Rule.SlowAfter]. A call that is still under way counts as slow as soon as it
	// has taken longer. Whether they failed does not matter. Long-lived calls, see
	// [rule.Exit], do not count.
	SlowRatio Strategy = "slowRatio"
	// ErrorRatio opens it when too large a share of the calls has failed. How long they
	// took does not matter.
	ErrorRatio Strategy = "errorRatio"
	// ErrorCount opens it when too many calls have failed.
	ErrorCount Strategy = "errorCount"
	// Consecutive opens it when so many calls in a row have failed, however long that takes.
	Consecutive Strategy = "consecutive"
)

// The states of a breaker. [Closed] and [Open] can also be forced.
const (
	// Closed lets all calls pass.
	Closed = "closed"
	// Open refuses all calls.
	Open = "open"
	// HalfOpen lets a few calls pass as probes and refuses all others.
	HalfOpen = "halfOpen"
)

// What a rule's fields may hold and what they are when left out.
const (
	defaultWindow  = 10 * time.Second
	usualMinCalls  = 20
	defaultOpenFor = 5 * time.Second
	defaultProbes  = 5

	minRatio        = 0.001 // the least threshold of a ratio; the most is 1
	maxCalls        = 1_000_000_000
	maxWindowCalls  = 100_000 // an eighth of a byte each
	maxProbes       = 1000
	minWindow       = 10 * time.Millisecond
	minSlowAfter    = time.Microsecond
	minOpenFor      = time.Millisecond
	minProbeTimeout = time.Millisecond
	maxDuration     = 24 * time.Hour // of each of them

	// buckets is how many buckets a window has. It moves on by one at a time.
	buckets = 10
)

// Rule is one circuit breaker on one resource. It is a plain value: copies share
// nothing, and two rules are the same rule when they are equal.
type Rule struct {
	// Name identifies the rule in errors, logs and metrics, and over reloads: a rule
	// that keeps its name and resource keeps its state. Unique among breaker rules.
	// Defaults to the resource, or to the pattern.
	Name string

	// Resource is the exact name of the guarded resource. A rule has either a Resource
	// or a Match.
	Resource string

	// Match guards every resource whose name matches the pattern: a glob, or after a
	// "~" a regular expression. See the package match.
	Match string

	// Except are names of resources, or patterns of names, that the rule is not for
	// though they match. At most 100. Match only.
	Except rule.Strings

	// Shared makes all resources that match have one breaker together, rather than each
	// its own. It is "perResource: false" in documents. Match only.
	Shared bool

	// Strategy says which calls are bad. Defaults to [ErrorRatio].
	Strategy Strategy

	// Threshold opens the breaker: the share of bad calls in the window, from
	// 0.001 to 1, with [ErrorCount] their number, a whole number from 1 to
	// a billion, or with [Consecutive] how many in a row, up to 100,000. Reaching it is enough: 5 bad calls of 10 reach 0.5. The comparison is
	// exact, by the decimal that Threshold is written as. Required.
	Threshold float64

	// SlowAfter is the time beyond which a call is slow, from 1 µs to
	// 24 hours. Required with [SlowRatio]; a mistake with the others.
	SlowAfter time.Duration

	// Window is the time whose calls count. They count when they end, in ten equal
	// buckets that are aligned to the Unix epoch: the present one and the nine before.
	// Defaults to ten seconds; from 10 ms to 24 hours, and a multiple of
	// ten nanoseconds. A mistake with [Consecutive].
	Window time.Duration

	// WindowCalls has the last so many calls count in place of those of a time, in the order
	// in which they end. From 1 to 100,000. It is "window: {calls: 100}" in documents.
	WindowCalls int

	// MinCalls is how many calls the window must have for the breaker to
	// open, from 1 to a billion. Defaults to 20, or to WindowCalls if that is less; with
	// [ErrorCount] to 1, so that the threshold alone decides. A mistake with [Consecutive].
	MinCalls int

	// OpenFor is how long the breaker stays open, from 1 ms to 24 hours.
	// The first call after that is a probe. Defaults to five seconds.
	OpenFor time.Duration

	// MaxOpenFor is the most that OpenFor grows to: after each failed probing the
	// breaker stays open for twice as long as before, until it has closed. From OpenFor
	// to 24 hours. Defaults to OpenFor: then it does not grow.
	MaxOpenFor time.Duration

	// Probes is how many calls pass while the breaker is half-open, and must end well
	// for it to close. Defaults to 5; from 1 to 1,000.
	Probes int

	// ProbeThreshold is the share of the probes that has to be bad for the breaker to open
	// again, from 0.001 to 1. Fewer bad ones do not keep it from closing. It is decided
	// as soon as the probes that have not ended cannot change it. Left out, one bad probe opens it.
	ProbeThreshold float64

	// ProbeTimeout is how long a probe may take. It counts as bad at that instant if it
	// is still under way. Defaults to the window, or to ten seconds if that is no time; from
	// 1 ms to 24 hours.
	ProbeTimeout time.Duration

	// Origin restricts the rule to calls of that caller, see core.Origin;
	// [rule.OtherOrigins] to those of callers that no rule on the resource names,
	// unnamed ones included. Left out, the rule is for all calls.
	Origin string

	// Shadow makes the rule decide and count, but let every call through.
	Shadow bool
}
