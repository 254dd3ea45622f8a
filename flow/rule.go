package flow

import (
	"time"

	"github.com/penstock-go/penstock/rule"
)

const kindName rule.Kind = "flow"

// Algorithm says how calls are counted against the limit.
type Algorithm string

// The algorithms.
const (
	// SlidingWindow counts the calls of the last window, bucket by bucket.
	SlidingWindow Algorithm = "slidingWindow"
	// FixedWindow counts the calls of a window of the calendar: 12:00 to 12:01, or a
	// month. It is the default of rules with a [Rule.Calendar]. Around a boundary, twice
	// the limit can pass in the time of one window.
	FixedWindow Algorithm = "fixedWindow"
	// TokenBucket keeps what is not used, up to Burst tokens, for bursts. With
	// MaxWait a call also waits for tokens that are still to flow in.
	TokenBucket Algorithm = "tokenBucket"
	// Throttle spaces calls evenly, first come, first served: the leaky bucket as
	// a queue. With MaxWait a call waits until it may pass.
	Throttle Algorithm = "throttle"
	// Prepaid is a balance, of which calls take and nothing flows back: Limit is what it has at
	// first, and whoever may recharges it, see core.Engine.Recharge. It has no window.
	Prepaid Algorithm = "prepaid"
)

// The defaults and the ranges of a rule's fields.
const (
	defaultWindow     = time.Second
	defaultMaxBuckets = 10
	defaultColdFactor = 3.0
	defaultStep       = time.Second

	MaxLimit       = 1e9 // tokens per window
	minWindow      = 10 * time.Millisecond
	minFixedWindow = time.Millisecond
	maxWindow      = 24 * time.Hour
	maxBuckets     = 1000
	minBucket      = time.Millisecond // the shortest bucket of a window
	maxMaxWait     = 24 * time.Hour
	maxPeriod      = 24 * time.Hour

	maxColdFactor = 1000.0
)

// Rule limits the rate of calls of a resource, or of all resources that match a pattern.
// It is a plain value: copies share nothing, and rules can be compared with ==.
type Rule struct {
	// Name identifies the rule in errors, logs and metrics, and over reloads:
	// a rule that keeps its name and resource keeps what it has counted. Unique among
	// flow rules. Defaults to the resource, or to the pattern.
	Name string

	// Resource is the exact name of the guarded resource. A rule has either a
	// Resource or a Match.
	Resource string

	// Match guards every resource whose name matches the pattern: a glob, or
	// after a "~" a regular expression. See the package match.
	Match string

	// Except are names of resources, or patterns of names, that the rule is not for
	// though they match. At most 100. Match only.
	Except rule.Strings

	// Limit is how many tokens may pass in one window; of a [Prepaid] rule, in all. A call takes one token
	// unless it says otherwise. It may be fractional: 2.5 lets 5 calls through
	// in 2 windows, 0.5 one in 2 windows. 0 blocks all. At most [MaxLimit].
	Limit float64

	// Window is the time that Limit is for. Defaults to one second; from
	// 10 ms to 24 hours, other than a sliding window from
	// 1 ms. A fixed window begins at a multiple of its length since
	// the Unix epoch: one of a day at midnight UTC. If it is an hour or more, of one
	// instance, whole and without a warm-up, it goes by the wall clock, else it is measured. Not with [Prepaid].
	Window time.Duration

	// Calendar makes the window one of the calendar, such as a month, in place of Window. It
	// is a fixed window, whose limit is a whole number, and which cannot warm up. The wall
	// clock says when it ends. An instance that restarts counts from 0.
	Calendar rule.Calendar

	// Algorithm says how calls are counted. Defaults to [SlidingWindow], with a Calendar
	// to [FixedWindow].
	Algorithm Algorithm

	// Buckets is how many parts the sliding window has: more are smoother and
	// cost more memory. Defaults to 10; at most 1000, each at least 1 ms long.
	// Sliding window only.
	Buckets int

	// MaxWait is the longest that a call may wait, at most 24 hours. Throttle
	// and token bucket only; the default, zero, lets no call wait.
	MaxWait time.Duration

	// FairBy is the key of the attribute that tells tenants apart, such as "tenant"; several keys are a
	// composite one. Of the calls of one priority that wait, each tenant gets its share of the limit,
	// however many others wait: the next one to pass is the oldest call of the tenant that has had least
	// of late. Calls that lack an attribute are one tenant. At most [rule.MaxKeys]. Only with MaxWait,
	// and not with [rule.ScopeFleet].
	FairBy rule.Strings

	// Weights says which tenants get more or less than others, as 2 is twice as much as 1, which is the
	// weight of all others. A key is a value of the attribute; of a composite one its parts with slashes
	// between them. At most 1000, from 0.01 to 1000, of which 32 may differ. Only with FairBy.
	Weights rule.NumberMap

	// WeightBy says what tenants get shares of. Defaults to [ByTokens]. Only with FairBy.
	WeightBy WeightBy

	// Newcomers says what tenants get that are not known: whoever invents a new name for each call would
	// have as many shares as calls. Known is who has a weight, whoever passes while no call waits (one
	// in eight to one in 64 of these calls is looked at), and whoever passes after it has waited while at
	// most 32 unknown ones waited, until ten minutes after its last call that was looked at; and the calls
	// without the attribute. It has an effect while more unknown tenants wait at a priority than 32, and
	// than twice the known ones. Defaults to [rule.NewcomersHalf] if 256 tokens or more may wait, as the Limit
	// and MaxWait say, else to [rule.NewcomersEqual]. Only with FairBy.
	Newcomers rule.Newcomers

	// Mask says how status shows tenants. The default shows them as they are. Only with FairBy.
	Mask rule.Mask

	// Burst is how many tokens the bucket holds, and has at the start. Defaults
	// to the limit, at least 1. A call that takes more is always refused, unless
	// Overdraft is set. Token bucket only, and not with WarmUp, which says itself
	// what the bucket holds.
	Burst float64

	// WarmUp lowers the effective limit of a cold resource. The zero value is off.
	WarmUp WarmUp

	// Follow lowers the limit while a signal, such as the memory in use, is high. The
	// zero value is off. What else depends on the limit follows it, but for Burst.
	Follow Follow

	// Origin restricts the rule to calls of that caller, see core.Origin;
	// [rule.OtherOrigins] to those of callers that no rule on the resource names,
	// unnamed ones included. Left out, the rule is for all calls.
	Origin string

	// Related makes the rule count the passes of that resource instead of those
	// of the guarded one: calls are refused while it is busy. Windows only.
	Related string

	// Scope says whether the limit is for this instance of the service, the default, or
	// for all instances together: [rule.ScopeFleet]. An engine without a backend for its fleet,
	// see core.Config, takes each limit for one of the instance.
	Scope rule.Scope

	// Fleet says how instances share the limit. ScopeFleet only. Not every algorithm can be shared
	// in every way:
	//
	//   - ModeLease, the default: all but fixed windows. A sliding window is then a bucket that
	//     holds as many tokens as a bucket of the window, at least one.
	//   - ModeWindow, the default of fixed windows: windows only.
	//   - ModeAsk: all. A shadow rule decides as with ModeLease, or ModeWindow if it has a fixed
	//     window: it does not wait for an answer.
	//   - ModeAsk alone, with OnOutage closed, the default, or open: Prepaid.
	//   - ModeShare: all others; and only there a rule may be Strict, have an Overdraft, WarmUp, Follow
	//     or be Related.
	Fleet rule.Fleet

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
	// [fleet.ModeAsk] or [fleet.ModeWindow].
	WarnAt float64

	// Strict makes the limit hold over every interval of the window's length,
	// aligned to buckets or not. It costs up to 1/(Buckets+1) of the
	// throughput under overload. Sliding window only.
	Strict bool

	// Overdraft lets a call go at once, whatever it takes, when nothing is owed;
	// the calls after it pay. Token bucket only; one that warms up always does.
	Overdraft bool

	// Shared makes all resources that match share one limit, rather than each having its
	// own. It is "perResource: false" in documents. Match only.
	Shared bool

	// Shadow makes the rule decide and count, but let every call through.
	Shadow bool
}

// WeightBy says what the tenants of a rule with FairBy get shares of.
type WeightBy string

// What they can get shares of.
const (
	ByTokens WeightBy = "tokens" // a tenant with calls that take more tokens gets fewer of them through
	ByCalls  WeightBy = "calls"
)

// defaultNewcomersQueue is how many tokens may wait, at the least, for NewcomersHalf to be the default.
const defaultNewcomersQueue = 256

// WarmUp makes the effective limit of a cold resource rise from limit/ColdFactor to the
// limit, within about Period of full load. See the package internal/warmup.
type WarmUp struct {
	// Period is how long a cold resource takes to become warm under full load.
	// Zero turns warm-up off.
	Period time.Duration

	// ColdFactor is how much lower than the limit the effective limit of a cold
	// resource is. Greater than 1, at most 1000; defaults to 3.
	ColdFactor float64

	// Step is how often the effective limit is computed anew. Defaults to one second.
	// Not for token buckets, which compute it for each call.
	Step time.Duration
}

func isOfFleet(r *Rule) bool { return r.Scope == rule.ScopeFleet }
