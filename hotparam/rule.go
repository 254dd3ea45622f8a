package hotparam

import (
	"cmp"
	"time"

	"github.com/penstock-go/penstock/fleet"
	"github.com/penstock-go/penstock/internal/settings"
	"github.com/penstock-go/penstock/rule"
)

// Algorithm says how the calls of a value are counted against the limit.
type Algorithm string

// The algorithms.
const (
	// TokenBucket keeps what a value does not use, up to Burst tokens, for bursts. A
	// value starts with a full bucket.
	TokenBucket Algorithm = "tokenBucket"
	// SlidingWindow counts the calls of the last window, in ten aligned buckets.
	SlidingWindow Algorithm = "slidingWindow"
	// FixedWindow counts the calls of a window of the calendar: 12:00 to 12:01, or a month. It is
	// the default of rules with a [Rule.Calendar].
	FixedWindow Algorithm = "fixedWindow"
	// Throttle spaces the calls of a value evenly. With MaxWait a call waits until it
	// may pass.
	Throttle Algorithm = "throttle"
	// Prepaid is a balance of each value, of which calls take and nothing flows back: the limit is
	// what it has at first, and whoever may recharges it, see core.Engine.Recharge. It has no window.
	// With a limit of 0, only values whose balance was recharged take space.
	Prepaid Algorithm = "prepaid"
)

// The defaults and the ranges of a rule's fields.
const (
	defaultWindow  = time.Second
	usualMaxValues = 100_000

	MaxLimit       = 1_000_000_000 // tokens per window
	minLimit       = 1e-6          // tokens per window, unless it is 0
	maxConcurrency = 1_000_000
	minMaxAge      = 10 * time.Millisecond
	maxMaxAge      = 7 * 24 * time.Hour
	minWindow      = time.Millisecond
	minSliding     = 10 * time.Millisecond // the shortest sliding window
	maxWindow      = 24 * time.Hour
	maxMaxWait     = 24 * time.Hour
	minMaxValues   = 100
	maxMaxValues   = 10_000_000
	maxEntries     = 1000 // of Values
	maxPatterns    = 100  // among them
	maxLimits      = 31   // different limits among them, unless a window or concurrency counts
	maxAfter       = 1_000_000_000
	minPenalty     = time.Millisecond // the shortest For

	// Buckets is how many buckets a sliding window has, and the window of a penalty.
	// It moves on by one at a time.
	buckets = 10
)

// Rule is a limit for each value of an attribute, such as each user or each client
// address. It is a plain value: copies share nothing, and two rules are the same rule
// when they are equal.
type Rule struct {
	// Name identifies the rule in errors, logs and metrics, and over reloads: a rule
	// that keeps its name and resource keeps the state of its values. Unique among
	// hotParam rules. Defaults to the resource, or to the pattern.
	Name string

	// Resource is the exact name of the guarded resource. A rule has either a Resource
	// or a Match.
	Resource string

	// Match guards every resource whose name matches the pattern: a glob, or after a
	// "~" a regular expression. See the package match.
	Match string

	// Except are names of resources, or patterns of names, that the rule is not for
	// though they match. At most [rule.MaxExcept]. Match only.
	Except rule.Strings

	// Shared makes all resources that match count the calls of a value together, rather
	// than each its own. It is "perResource: false" in documents. Match only.
	Shared bool

	// Param is the key of the attribute, such as "user". With several keys the value is
	// composite: each combination has a limit of its own, and a call that lacks one of
	// them has no value. "ip" stands for what identifies a client, which is the network
	// of an IPv6 address: see [rule.KeyIPPrefix]. At most [rule.MaxKeys]. Required.
	Param rule.Strings

	// Limit is how many tokens each value may take in one window. A call takes one
	// token unless it says otherwise. 0 blocks all; otherwise from 1e-6 to
	// [MaxLimit]. It may be fractional, but not of a [SlidingWindow], a [FixedWindow] or a [Prepaid]
	// balance, whose calls take from the Limit until it is recharged.
	Limit float64

	// Concurrency is how many calls of each value may be under way at once, in place of
	// Limit: from 1 to 1,000,000. A call takes one place, whatever its tokens.
	Concurrency int

	// MaxAge is how long a call may hold its place. After it, at the latest a seventh later, the
	// place counts as given back, though the call has not ended: it leaked, or hangs. When it does
	// end, nothing is given back any more. It is for calls that begin while the rule has it; calls
	// that are meant to last must be shorter. The default, zero, lets calls hold their places until
	// they end. From 10 ms to 7 days. Concurrency only.
	MaxAge time.Duration

	// Window is the time that Limit is for. Defaults to one second; from 1 ms to
	// 24 hours. A [SlidingWindow] is at least 10 ms long and a multiple of ten
	// nanoseconds, and so is a [FixedWindow], which goes by the wall clock if it is an hour or
	// more. Not with Concurrency.
	Window time.Duration

	// Calendar makes the window one of the calendar, such as a month, in place of Window: a
	// [FixedWindow]. The wall clock says when it ends. An instance that restarts counts from 0.
	Calendar rule.Calendar

	// Algorithm says how calls are counted. Defaults to [TokenBucket], with a Calendar to
	// [FixedWindow]. Not with Concurrency.
	Algorithm Algorithm

	// Burst is how many tokens the bucket of a value holds, and has at the start. A
	// call that takes more is always refused. Defaults to the limit, at least 1. With
	// Values zero stays zero: each limit is its own burst then, while a burst that is
	// given is that of all values. From 1 to [MaxLimit]. [TokenBucket] only.
	Burst float64

	// MaxWait is the longest that a call may wait. The default, zero, lets no call wait.
	// At most 24 hours. [Throttle] only.
	MaxWait time.Duration

	// MaxValues is how many values have a state of their own at the same time, over all
	// resources of the rule. The state of a value is forgotten only when it is as that
	// of a new one. Values that find no place share states, which is stricter and never
	// looser; together, those that come from one network may use as much as some values may,
	// and have some of the last places.
	// The table is for 100,000 at first, and for as many as this when the first
	// value finds one of the last places only. Defaults to what 500 new values a second take for as long as one
	// needs to be as new again, at least 100,000 and at most what 64 MiB hold; with
	// Concurrency or ScopeFleet to 100,000. From 100 to 10,000,000.
	MaxValues int

	// Values has other limits, or with Concurrency other numbers of calls, for some
	// values. A key is a value, or a pattern of texts, see the package match. Values come
	// before patterns; of several patterns that match, the first one counts. The text
	// "7" and the number 7 differ. A composite value is written as its parts with
	// slashes between them, as in "acme/*"; each part is a text, which stands for a
	// number or a boolean that is written like it, too, or a pattern of texts; "*" is
	// for all values of the part. At most 1,000 entries, 100 of them
	// patterns or composite, with at most 31 different limits.
	Values rule.NumberMap

	// Penalty refuses a value outright for a while after it was refused too often. The
	// zero value is off.
	Penalty Penalty

	// Missing says what happens to a call without the attribute. Defaults to
	// [rule.MissingPass].
	Missing rule.Missing

	// Mask says how status shows values. The default shows them as they are.
	Mask rule.Mask

	// Scope says whether a value has its limit on each instance of the service, the default,
	// or on all instances together: [rule.ScopeFleet]. An engine without a backend for its fleet,
	// see core.Config, takes each limit for one of the instance.
	Scope rule.Scope

	// Fleet says how instances share the limits of values: a [TokenBucket] or a [SlidingWindow] in
	// ModeLease, the default, where a sliding window is a bucket that holds a tenth of the limit,
	// at least one token; or in ModeAsk. A shadow rule decides as with ModeLease: it does not wait
	// for an answer. Penalties are those of each instance. ScopeFleet only.
	Fleet rule.Fleet

	// Origin restricts the rule to calls of that caller; [rule.OtherOrigins] to those
	// of callers that no rule on the resource names, unnamed ones included. Left out,
	// the rule is for all calls.
	Origin string

	// OnExceed says what becomes of a call that is over the limit: it is refused, the default, or
	// demoted. A demoted call passes, takes no tokens, and has the lowest priority for all rules
	// after this one, which is asked before rules that look at priorities. No call may wait for such
	// a rule, be it for its turn or for the answer of a fleet.
	OnExceed rule.OnExceed

	// Counts says which calls take tokens: all that pass, the default, or only those that fail, or
	// those that end well. A call that passes holds its tokens while it is under way, so that no more
	// than the limit are ever taken, however many calls come at once. What is not counted is given back
	// when the call ends, as of the instant at which it was taken: counts are of calls by when they
	// came. A call is refused if nothing is left beside what others hold. No call waits for such a rule.
	Counts rule.Counts

	// WarnAt is the share of the limit from which on the rule warns: greater than 0, at most 1. There is
	// one event and one line of the log in a window, and for a limit of each value one for each value
	// of the window, up to about a thousand of them. Of a sliding window it is one in each time of its
	// length. The default, zero, never warns. Windows only; of those of the whole fleet by
	// [fleet.ModeAsk] only.
	WarnAt float64

	// Shadow makes the rule decide and count, but let every call through.
	Shadow bool
}

// Penalty refuses all calls of a value for a time after many of them were refused.
// Either all of its fields are set or none.
type Penalty struct {
	// After is how many refusals within Within bring the penalty, from 1 to a billion.
	After int

	// Within is the time whose refusals count, in ten equal buckets that are aligned to
	// the Unix epoch: the present one and the nine before. From 10 ms to
	// 24 hours, and a multiple of ten nanoseconds.
	Within time.Duration

	// For is how long the value is refused, from the refusal that brings the penalty.
	// Refusals meanwhile do not count, and counting starts anew afterwards. From
	// 1 ms to 24 hours.
	For time.Duration
}

func withDefaults(r *Rule) {
	r.Missing = cmp.Or(r.Missing, rule.MissingPass)
	switch {
	case r.Concurrency != 0:
	case r.Algorithm == Prepaid:
		if isOfFleet(r) {
			r.Fleet.OnOutage = cmp.Or(r.Fleet.OnOutage, fleet.OutageClosed)
		}
	case r.Calendar.IsSet():
		r.Algorithm = cmp.Or(r.Algorithm, FixedWindow)
	default:
		r.Window = cmp.Or(r.Window, defaultWindow)
		r.Algorithm = cmp.Or(r.Algorithm, TokenBucket)
	}
	if r.OnExceed == rule.ExceedRefuse {
		r.OnExceed = ""
	}
	if r.Counts == rule.CountsCalls {
		r.Counts = ""
	}
	settings.SetFleetDefaults(&r.Scope, &r.Fleet, r.defaultMode())
	if r.Concurrency != 0 {
		r.MaxValues = cmp.Or(r.MaxValues, usualMaxValues)
		return
	}
	if r.Algorithm == TokenBucket && r.Values.Len() == 0 { // else each limit is its own burst
		r.Burst = cmp.Or(r.Burst, defaultBurst(r.Limit))
	}
	r.MaxValues = cmp.Or(r.MaxValues, r.defaultMaxValues())
}

// defaultBurst is the limit, or 1 where no call could pass otherwise.
func defaultBurst(limit float64) float64 {
	if limit > 1 && limit <= MaxLimit {
		return limit
	}
	return 1
}
