package isolation

import (
	"cmp"
	"time"

	"github.com/penstock-go/penstock/fleet"
	"github.com/penstock-go/penstock/internal/settings"
	"github.com/penstock-go/penstock/rule"
)

// Order says which of the waiting calls of one priority gets the next place.
type Order string

// The orders.
const (
	// FIFO serves the call that has waited longest. A call that finds the queue full is
	// refused, unless a less important one waits.
	FIFO Order = "fifo"

	// LIFO serves the newest call: under overload the callers of the oldest ones have
	// mostly given up. A call that finds the queue full takes the space of the oldest
	// one of the lowest priority that waits, unless that is higher than its own.
	LIFO Order = "lifo"
)

// WeightBy says what the tenants of a rule with FairBy get shares of.
type WeightBy string

// What they can get shares of.
const (
	// ByTime counts how long the calls of a tenant have their places: a tenant with calls that
	// take long gets fewer of them through.
	ByTime WeightBy = "time"

	// ByCalls counts the calls.
	ByCalls WeightBy = "calls"
)

// Ranges and defaults of the fields of a [Rule].
const (
	maxLimit        = 1_000_000
	maxMaxWait      = 24 * time.Hour
	defaultMaxQueue = 1000
	maxMaxQueue     = 1_000_000
	minMaxAge       = 10 * time.Millisecond
	maxMaxAge       = 7 * 24 * time.Hour

	minNewcomersQueue     = 64  // the least MaxQueue with [rule.NewcomersHalf]
	defaultNewcomersQueue = 256 // the least MaxQueue for which that is the default
)

// Rule limits how many calls of a resource are under way at once. It is a plain
// value: copies share nothing, and two rules are the same rule when they are equal.
type Rule struct {
	// Name identifies the rule in errors, logs and metrics. A rule that keeps its
	// name and its target keeps its calls under way over reloads. Unique among
	// isolation rules. Defaults to the resource, or to the pattern.
	Name string

	// Resource is the exact name of the guarded resource. A rule has either a
	// Resource or a Match.
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

	// Limit is how many calls may be under way at once. A call takes one place,
	// whatever its tokens. From 0, which blocks all, to 1,000,000.
	Limit int

	// MaxWait is the longest that a call may wait for a place, counted from when it
	// began to wait for this or for another rule. The default, zero, lets no call
	// wait. At most 24 hours.
	MaxWait time.Duration

	// MaxQueue is how many calls may wait at once. When a reload lowers it, those that
	// wait go on waiting, unless the order is [LIFO]: then the oldest ones, the least
	// important first, are refused when the next call joins. Defaults to
	// 1,000; from 1 to a million. Only with MaxWait.
	MaxQueue int

	// Order says which of the waiting calls of one priority gets the next place. Defaults
	// to [FIFO]. Only with MaxWait.
	Order Order

	// FairBy is the key of the attribute that tells tenants apart, such as "tenant"; several keys
	// are a composite one. Of the calls of one priority that wait, each tenant gets its share of
	// the places, however many others wait: the next place goes to the oldest call of the tenant
	// that has had least of late, and a call that finds the queue full takes the space of the newest
	// one of the tenant that has most waiting, unless its own has as many. Calls that lack
	// an attribute are one tenant. At most [rule.MaxKeys]. Only with MaxWait, and not with [LIFO].
	FairBy rule.Strings

	// Weights says which tenants get more or less than others, as 2 is twice as much as 1, which is
	// the weight of all others. A key is a value of the attribute; of a composite one its parts
	// with slashes between them. At most 1,000, from 0.01 to 1,000, of which
	// 32 may differ. Only with FairBy.
	Weights rule.NumberMap

	// WeightBy says what tenants get shares of. Defaults to [ByTime]. Only with FairBy.
	WeightBy WeightBy

	// Newcomers says what tenants get that are not known: whoever invents a new name for each call would
	// have as many shares as calls. Known is who has a weight, whoever passes while no call waits (one
	// in eight to one in 64 of these calls is looked at), and whoever is served while at most 32 unknown
	// ones wait, until ten minutes after its last call that was looked at; and the calls without the
	// attribute. It has an effect while more unknown tenants wait at a priority than 32, than an
	// eighth of MaxQueue, and than twice the known ones. Defaults to [rule.NewcomersHalf] if MaxQueue is at
	// least 256, else to [rule.NewcomersEqual]. Only with FairBy.
	Newcomers rule.Newcomers

	// Mask says how status shows tenants. The default shows them as they are. Only with FairBy.
	Mask rule.Mask

	// MaxAge is how long a call may hold its place. After it, at the latest a thirty-second
	// later, the place counts as given back, though the call has not ended: it leaked, or hangs.
	// When it does end, nothing is given back any more. Calls that are meant to last must be
	// shorter than that. The default, zero, lets calls hold their places until they end. From
	// 10 ms to 7 days.
	MaxAge time.Duration

	// Scope says whether the limit is for this instance of the service, the default, or one
	// for all of them together. That needs a backend, see core.Config.Fleet; without one the
	// limit is for this instance.
	Scope rule.Scope

	// Fleet says how all instances share the limit, by [fleet.ModeLease] only, and what happens
	// while the backend does not answer. Only with [rule.ScopeFleet].
	Fleet rule.Fleet

	// Origin restricts the rule to calls of that caller; [rule.OtherOrigins] to those
	// of callers that no rule on the resource names, unnamed ones included. Left out,
	// the rule is for all calls.
	Origin string

	// Shadow makes the rule decide and count, but let every call through. No call
	// waits for it: one that would have to wait counts as one that would be refused.
	Shadow bool
}

func withDefaults(r *Rule) {
	if r.MaxWait != 0 {
		r.MaxQueue = cmp.Or(r.MaxQueue, defaultMaxQueue)
		r.Order = cmp.Or(r.Order, FIFO)
	}
	if r.isFair() {
		r.WeightBy = cmp.Or(r.WeightBy, ByTime)
		r.Newcomers = cmp.Or(r.Newcomers, r.defaultNewcomers())
	}
	settings.SetFleetDefaults(&r.Scope, &r.Fleet, fleet.ModeLease)
}

// validate returns the mistakes in the fields that only this kind has.
func validate(r *Rule) []rule.Fault {
	var f rule.Faults
	r.validateFleet(&f)
	if !rule.Within(r.Limit, 0, maxLimit) {
		f.Add("limit", "is %d: must be from 0 (blocks all) to %d calls under way", r.Limit, maxLimit)
	}
	if !rule.Within(r.MaxWait, 0, maxMaxWait) {
		f.Add("maxWait", "is %v: must be from 0s (no waiting) to %v", r.MaxWait, maxMaxWait)
	}
	if r.MaxAge != 0 && !rule.Within(r.MaxAge, minMaxAge, maxMaxAge) {
		f.Add("maxAge", "is %v: must be from %v to %v, or left out", r.MaxAge, minMaxAge, maxMaxAge)
	}
	if r.MaxWait == 0 {
		const noEffect = "has no effect without maxWait: remove it or set maxWait"
		if r.MaxQueue != 0 {
			f.Add("maxQueue", noEffect)
		}
		if r.Order != "" {
			f.Add("order", noEffect)
		}
		if r.isFair() {
			f.Add("fairBy", noEffect)
		}
		r.validateFairness(&f)
		return f
	}
	if !rule.Within(r.MaxQueue, 1, maxMaxQueue) {
		f.Add("maxQueue", "is %d: must be from 1 to %d waiting calls", r.MaxQueue, maxMaxQueue)
	}
	if r.Order != FIFO && r.Order != LIFO {
		f.Add("order", "is %q: must be %q or %q", r.Order, FIFO, LIFO)
	}
	r.validateFairness(&f)
	return f
}
