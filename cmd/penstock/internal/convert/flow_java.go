package convert

import (
	"time"

	"github.com/penstock-go/penstock/cmd/penstock/internal/wording"
	"github.com/penstock-go/penstock/rule"
)

// convertJavaFlow converts a flow rule of Sentinel for Java, which sentinel-golang 0.1
// read, too. Missing fields have the values of a new FlowRule.
func convertJavaFlow(o *object, to *batch) {
	r := readCount(o)
	r.period = seconds(o.whole("warmUpPeriodSec", 10))
	r.maxWait = milliseconds(o.whole("maxQueueingTimeMs", 500))
	if o.flag("regex") {
		r.match, r.pattern = javaPattern(o.resource)
		if r.warmUp || r.throttle {
			o.drop(o.at("controlBehavior"), "Sentinel ignores a rule with regex whose controlBehavior is not 0: remove the one or the other")
		}
	}
	if r.concurrency = readGrade(o, "grade", 1); r.concurrency {
		r.warmUp, r.throttle = false, false // Sentinel ignores them
	}
	readRelation(o, &r, "strategy")
	readOrigin(o, &r, "limitApp")
	if r.throttle && r.maxWait == 0 {
		o.drop(o.at("maxQueueingTimeMs"), "Sentinel ignores a rule that queues with maxQueueingTimeMs 0: give it a time or remove the rule")
	}
	r.convert(o, to)
}

// javaPattern returns a regular expression that has to match the whole name.
func javaPattern(resource string) (match, pattern string) {
	pattern = "^(?:" + resource + ")$"
	return "~" + pattern, pattern
}

// convertOldGoFlow converts a flow rule of sentinel-golang 0.
func convertOldGoFlow(o *object, to *batch) {
	r := readCount(o)
	r.period = seconds(o.whole("warmUpPeriodSec", 0))
	r.coldFactor = o.whole("warmUpColdFactor", 0)
	r.maxWait = milliseconds(o.whole("maxQueueingTimeMs", 0))
	r.concurrency = readGrade(o, "metricType", 0) && !r.throttle // Sentinel throttles the rate in any case
	if r.concurrency && r.warmUp {
		o.drop(o.at("controlBehavior"), "its limit of the calls under way warms up (controlBehavior 1), which no rule here does: choose a fixed limit")
	}
	readRelation(o, &r, "relationStrategy")
	readOrigin(o, &r, "limitOrigin")
	r.convert(o, to)
}

// readCount reads the fields that Java and sentinel-golang 0 share.
func readCount(o *object) flowRule {
	r := flowRule{threshold: limit{"count", o.number("count", 0)}, interval: time.Second, buckets: 2}
	switch o.whole("controlBehavior", 0) {
	case 0:
	case 1:
		r.warmUp = true
	case 2:
		r.throttle = true
	case 3:
		r.warmUp, r.throttle = true, true
	default:
		o.unknown("controlBehavior")
	}
	dropCluster(o)
	return r
}

// dropCluster leaves out a limit of the whole cluster.
func dropCluster(o *object) {
	if o.flag("clusterMode") {
		o.drop(o.at("clusterMode"), "it is a limit of the whole cluster (clusterMode), which needs a backend here: "+
			"write a rule with scope: fleet")
	}
}

// readGrade reads whether the rule limits the calls under way, and not those in a time.
func readGrade(o *object, field string, byDefault int) (concurrency bool) {
	switch o.whole(field, byDefault) {
	case 0:
		return true
	case 1:
	default:
		o.unknown(field)
	}
	return false
}

// readRelation reads which calls the rule counts.
func readRelation(o *object, r *flowRule, field string) {
	other := o.text("refResource")
	named := o.has("refResource") && o.find("refResource").node.value != ""
	switch relation := o.whole(field, 0); {
	case relation == 0:
	case relation == 2 && field == "strategy":
		o.drop(o.at(field), "it counts the calls that come by the entrance %s (strategy 2, chain), which rules here do not distinguish: "+
			"give the callers an origin, perhaps", wording.Quote(other))
	case relation != 1:
		o.unknown(field)
	case !named:
		o.drop(o.at(field), "Sentinel ignores a rule on a related resource without refResource: name it or remove the rule")
	case r.concurrency:
		o.drop(o.at(field), "it looks at the calls under way on the related resource %s (%s 1), which no rule here does: "+
			"limit that resource itself, perhaps", wording.Quote(other), field)
	case r.throttle:
		o.drop(o.at(field), "a rule that queues does not look at the related resource %s (%s 1): remove one of the two",
			wording.Quote(other), field)
	default:
		r.related = other
	}
}

// readOrigin reads whose calls the rule is for.
func readOrigin(o *object, r *flowRule, field string) {
	const everybody, others = "default", "other"
	switch origin := o.text(field); origin {
	case "", everybody:
	case others:
		r.origin = rule.OtherOrigins
		o.differ(o.at(field), "in Sentinel each caller that no rule names has a limit of its own, and one without a name has none; "+
			"here all of them share one limit")
	default:
		r.origin = origin
	}
}

// unknown leaves out a rule whose field has a value that Sentinel does not know.
func (o *object) unknown(field string) {
	o.drop(o.at(field), "%s is %v, which Sentinel does not know", field, o.find(field).node)
}
