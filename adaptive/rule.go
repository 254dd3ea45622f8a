package adaptive

import (
	"cmp"
	"time"

	"github.com/penstock-go/penstock/rule"
)

// Strategy is how a rule finds out what the service can do.
type Strategy string

// The strategies.
const (
	// Latency finds the limit on calls under way from response times and throughput.
	Latency Strategy = "latency"
	// Threshold sheds calls while a value is above a threshold.
	Threshold Strategy = "threshold"
)

// What a rule's fields may hold and what they are when left out.
const (
	defaultMaxDelay = 100 * time.Millisecond
	minMaxDelay     = time.Millisecond
	maxMaxDelay     = time.Minute

	defaultMinLimit     = 2
	defaultMaxLimit     = 10_000
	defaultInitialLimit = 20
	maxLimit            = 1_000_000 // of calls under way, in every field about them

	maxLoad           = 1000.0
	maxQPS            = 1e9
	minSchedulerDelay = 10 * time.Microsecond
	minAvgRT          = 10 * time.Microsecond
	MaxDuration       = 24 * time.Hour // of SchedulerDelay and AvgRT

	DefaultInboundName = "inbound" // of a rule for all inbound calls together
	defaultFairBy      = rule.KeyOrigin

	inboundMatch = "*"
)

// Rule refuses calls while a service is overloaded. It is a plain value: copies share
// nothing, and two rules are the same rule when they are equal.
type Rule struct {
	// Name identifies the rule in errors, logs and metrics, and over reloads: a rule
	// that keeps its name and target keeps what it has found out. Unique among adaptive
	// rules. Defaults to the resource or the pattern; for all inbound calls together to
	// [DefaultInboundName].
	Name string

	// Resource is the exact name of the guarded resource. A rule has a Resource, a Match
	// or neither. With neither it is for all inbound calls together: then Match is "*",
	// and Shared and Inbound are true.
	Resource string

	// Match guards every resource whose name matches the pattern: a glob, or after a
	// "~" a regular expression. See the package match.
	Match string

	// Except are names of resources, or patterns of names, that the rule is not for
	// though they match. At most 100. Match only.
	Except rule.Strings

	// Shared makes all resources that match have one limit together, rather than each
	// its own. It is "perResource: false" in documents. Match only.
	Shared bool

	// Inbound restricts the rule to calls that come from outside, see core.Inbound. Other
	// calls pass, and count for nothing.
	Inbound bool

	// Strategy is how the rule finds out what the service can do. Defaults to [Latency].
	Strategy Strategy

	// MaxDelay is the longest that calls are meant to wait at the rule, however long the
	// service takes for them. Defaults to 100 ms; from 1 ms to
	// a minute. Only with [Latency].
	MaxDelay time.Duration

	// MinLimit and MaxLimit bound the limit on calls under way. MinLimit defaults to
	// 2, MaxLimit to 10,000. From 1 to 1,000,000. Not with
	// [Threshold].
	MinLimit, MaxLimit int

	// InitialLimit is the limit before anything is known. Defaults to
	// 20, or the nearest number that MinLimit and MaxLimit allow. Only
	// with [Latency].
	InitialLimit int

	// CPU is the share of the CPU above which calls are shed, from more than 0 to 1: of
	// the container's share, else of the host's processors. The CPU does not count if it
	// is left out.
	CPU float64

	// Load is the load average of the last minute, divided by the number of processors,
	// above which calls are shed. At most 1,000. Only with [Threshold], as all that
	// follow; each does not count if it is left out.
	Load float64

	// Memory is the share of the memory limit above which calls are shed, from more than
	// 0 to 1.
	Memory float64

	// SchedulerDelay is the time that goroutines wait to run, 99th percentile, above which
	// calls are shed, from 10 µs to [MaxDuration].
	SchedulerDelay time.Duration

	// Concurrency is how many calls may be under way at once, from 1 to 1,000,000.
	Concurrency int

	// QPS is how many tokens may pass in a second, which is ten aligned buckets of 100 ms: a
	// call has one token unless it says otherwise. Of a fraction, seconds of the clock have
	// the whole number below it or the one above. From 1 to a billion.
	QPS float64

	// AvgRT is the mean response time, of at least five calls that ended in the last second,
	// above which calls are shed: from then on as few are under way as keep it there. From
	// 10 µs to [MaxDuration].
	AvgRT time.Duration

	// FairBy is the attribute that tells callers apart, see core.String. Where calls of
	// one priority can pass only in part, the same callers are served for a while, rather
	// than each call having the same chance. Defaults to [rule.KeyOrigin].
	FairBy string

	// Origin restricts the rule to calls of that caller, see core.Origin;
	// [rule.OtherOrigins] to those of callers that no rule on the resource names,
	// unnamed ones included. Left out, the rule is for all calls.
	Origin string

	// Shadow makes the rule decide and count, but let every call through. No call waits
	// for it: one that would have to wait counts as one that would be refused.
	Shadow bool
}

func withDefaults(r *Rule) {
	if r.Resource == "" && r.Match == "" {
		r.Match, r.Shared, r.Inbound = inboundMatch, true, true
	}
	if r.Match == inboundMatch && r.Shared && r.Inbound && (r.Name == "" || r.Name == inboundMatch) {
		r.Name = DefaultInboundName
	}
	r.Strategy = cmp.Or(r.Strategy, Latency)
	r.FairBy = cmp.Or(r.FairBy, defaultFairBy)
	if r.Strategy == Latency {
		r.MaxDelay = cmp.Or(r.MaxDelay, defaultMaxDelay)
		setLimits(r, defaultMinLimit, defaultMaxLimit)
		setInitialLimit(r)
	}
}

// setLimits fills in bounds of the limit. Of two that contradict each other the one that
// was given counts.
func setLimits(r *Rule, least, most int) {
	if r.MaxLimit > 0 {
		least = min(least, r.MaxLimit)
	}
	r.MinLimit = cmp.Or(r.MinLimit, least)
	r.MaxLimit = cmp.Or(r.MaxLimit, max(most, min(r.MinLimit, maxLimit)))
}

func setInitialLimit(r *Rule) {
	r.InitialLimit = cmp.Or(r.InitialLimit, min(max(defaultInitialLimit, r.MinLimit), r.MaxLimit))
}
