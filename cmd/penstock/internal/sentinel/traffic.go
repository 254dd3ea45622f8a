package sentinel

import (
	"cmp"
	"math"
	"regexp"
	"time"

	"github.com/penstock-go/penstock/flow"
)

// traffic is what a rule says, in whatever dialect it says it.
type traffic struct {
	name       string // "" for none of its own
	pattern    string // instead of the resource; "" for none
	yields     bool   // to the rules that name a resource, where the pattern matches that
	threshold  limit
	interval   time.Duration // of the threshold
	buckets    int           // that the interval is counted in
	throttle   bool
	needsOne   bool // also to throttle: no call passes while the ceiling is below 1
	maxWait    time.Duration
	warmUp     bool
	period     time.Duration
	coldFactor int // 0 for the default
	related    string
	origin     string
}

// limit is a threshold and the name of its field.
type limit struct {
	field string
	value float64
}

func milliseconds(n int) time.Duration { return time.Duration(n) * time.Millisecond }

func seconds(n int) time.Duration { return time.Duration(n) * time.Second }

// identifier matches ids that tell a reader something, unlike mere numbers.
var identifier = regexp.MustCompile(`^[\w.:/-]{0,128}[A-Za-z][\w.:/-]{0,128}$`)

// rule returns the rule of Penstock that means the same.
func (t traffic) rule(o *object) flow.Rule {
	rule := flow.Rule{
		Resource: o.resource, Limit: t.threshold.value, Window: t.interval, Related: t.related, Origin: t.origin,
	}
	if identifier.MatchString(t.name) {
		rule.Name = t.name
	}
	if t.pattern != "" {
		rule.Resource, rule.Match = "", "~"+t.pattern
	}
	switch {
	case t.throttle:
		rule.Algorithm, rule.MaxWait = flow.Throttle, t.maxWait
	case t.buckets == 1:
		rule.Algorithm = flow.FixedWindow
	default:
		rule.Buckets = t.buckets
	}
	if t.warmUp {
		rule.WarmUp = flow.WarmUp{Period: t.period, ColdFactor: float64(t.coldFactor)}
	}
	return rule
}

// judge tells what Sentinel makes of the rule that no rule here can be, or that
// will be otherwise.
func (t traffic) judge(o *object) {
	if t.warmUp && (t.period == 0 || t.coldFactor == 1) {
		o.drop(o.at("warmUpPeriodSec"), "Sentinel ignores a rule that warms up without warmUpPeriodSec, or with warmUpColdFactor 1")
		return
	}
	t.judgeFraction(o)
}

// judgeFraction tells what becomes of thresholds and ceilings that are no whole
// numbers. Sentinel cuts the fraction off where it counts.
func (t traffic) judgeFraction(o *object) {
	limit, whole := t.threshold.value, math.Floor(t.threshold.value)
	coldest := limit
	if t.warmUp {
		coldest /= cmp.Or(float64(t.coldFactor), flow.DefaultColdFactor)
	}
	at := o.at(t.threshold.field)
	switch counted := !t.throttle || t.needsOne; {
	case limit == 0 || t.throttle && coldest >= 1:
	case coldest < 1 && t.warmUp && counted:
		o.differ(at, "Sentinel lets no call pass while the ceiling is below 1, and so never warms up; here the fractions add up")
	case coldest < 1 && t.throttle && counted:
		o.differ(at, "Sentinel blocks every call for a threshold below 1 that throttles; here %v pass in %v", limit, t.interval)
	case !t.throttle && whole != limit:
		o.differ(at, "Sentinel lets %v pass in %v; here the fraction adds up until it is one call more", whole, t.interval)
	}
}
