package convert

import (
	"cmp"
	"math"
	"regexp"
	"time"

	"github.com/penstock-go/penstock/flow"
)

// flowRule is a flow rule of Sentinel, of any version.
type flowRule struct {
	name        string // "" if it has none
	match       string // instead of the resource, see [flow.Rule.Match]; "" if it has none
	pattern     string // see [source]
	concurrency bool   // it limits the calls under way
	threshold   limit
	interval    time.Duration // of the threshold
	buckets     int           // of the interval
	throttle    bool
	needsOne    bool // with throttle: no call passes while the effective limit is below 1
	maxWait     time.Duration
	warmUp      bool
	period      time.Duration
	coldFactor  int // 0 for the default
	related     string
	origin      string
}

// limit is a threshold and the name of its field.
type limit struct {
	field string
	value float64
}

func milliseconds(n int) time.Duration { return time.Duration(n) * time.Millisecond }

func seconds(n int) time.Duration { return time.Duration(n) * time.Second }

// identifier matches ids that are meant for people, unlike mere numbers.
var identifier = regexp.MustCompile(`^[\w.:/-]{0,128}[A-Za-z][\w.:/-]{0,128}$`)

// nameOf returns the id of a rule if it is fit for a name, otherwise "".
func nameOf(o *object) string {
	if e := o.find("id"); e != nil {
		if id, ok := e.node.value.(string); ok && identifier.MatchString(id) {
			return id
		}
	}
	return ""
}

// convert adds the rule of Penstock that does the same, unless the rule is left out.
func (r flowRule) convert(o *object, to *batch) {
	if r.concurrency {
		r.convertConcurrency(o, to)
		return
	}
	if !o.dropped {
		r.report(o)
	}
	if !o.dropped {
		to.flow = append(to.flow, converted[flow.Rule]{r.rule(o), o.source(r.pattern)})
	}
}

// target returns the resource or the pattern of the converted rule.
func (r flowRule) target(o *object) (resource, match string) {
	if r.match != "" {
		return "", r.match
	}
	return o.resource, ""
}

func (r flowRule) rule(o *object) flow.Rule {
	rule := flow.Rule{Name: r.name, Limit: r.threshold.value, Window: r.interval, Related: r.related, Origin: r.origin}
	rule.Resource, rule.Match = r.target(o)
	switch {
	case r.throttle:
		rule.Algorithm, rule.MaxWait = flow.Throttle, r.maxWait
	case r.buckets == 1:
		rule.Algorithm = flow.FixedWindow
	default:
		rule.Buckets = r.buckets
	}
	if r.warmUp {
		rule.WarmUp = flow.WarmUp{Period: r.period, ColdFactor: float64(r.coldFactor)}
	}
	return rule
}

// report reports what no rule here can do and what will behave differently.
func (r flowRule) report(o *object) {
	if r.warmUp && (r.period == 0 || r.coldFactor == 1) {
		o.drop(o.at("warmUpPeriodSec"), "Sentinel ignores a rule that warms up without warmUpPeriodSec, or with warmUpColdFactor 1")
		return
	}
	r.reportFraction(o)
}

// reportFraction reports thresholds and effective limits that are not whole numbers.
// Sentinel ignores the fraction.
func (r flowRule) reportFraction(o *object) {
	limit, whole := r.threshold.value, math.Floor(r.threshold.value)
	coldest := limit
	if r.warmUp {
		coldest /= cmp.Or(float64(r.coldFactor), usualColdFactor)
	}
	at := o.at(r.threshold.field)
	switch counted := !r.throttle || r.needsOne; {
	case limit == 0 || r.throttle && coldest >= 1:
	case coldest < 1 && r.warmUp && counted:
		o.differ(at, "Sentinel lets no call pass while the effective limit is below 1, and so never warms up; here the fractions add up")
	case coldest < 1 && r.throttle && counted:
		o.differ(at, "Sentinel blocks every call for a threshold below 1 that throttles; here %v pass in %v", limit, r.interval)
	case !r.throttle && whole != limit:
		o.differ(at, "Sentinel lets %v pass in %v; here the fraction adds up until it is one call more", whole, r.interval)
	}
}
