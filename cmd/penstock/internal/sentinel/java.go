package sentinel

import (
	"time"

	"github.com/penstock-go/penstock/cmd/penstock/internal/wording"
	"github.com/penstock-go/penstock/flow"
)

// readJava reads a rule of Sentinel for Java, which sentinel-golang 0.1 read,
// too. What is missing has the value that a new FlowRule has.
func readJava(o *object) traffic {
	t := readCount(o)
	t.period = seconds(o.whole("warmUpPeriodSec", 10))
	t.maxWait = milliseconds(o.whole("maxQueueingTimeMs", 500))
	readGrade(o, "grade", 1)
	readRelation(o, &t, "strategy")
	readOrigin(o, &t, "limitApp")
	if t.throttle && t.maxWait == 0 {
		o.drop(o.at("maxQueueingTimeMs"), "Sentinel ignores a rule that queues with maxQueueingTimeMs 0: give it a time or remove the rule")
	}
	if o.flag("regex") {
		t.pattern = "^(?:" + o.resource + ")$" // the whole name has to match
		t.yields = true
		if t.warmUp || t.throttle {
			o.drop(o.at("controlBehavior"), "Sentinel ignores a rule with regex whose controlBehavior is not 0: remove the one or the other")
		}
	}
	return t
}

// readOldGo reads a rule of sentinel-golang 0.
func readOldGo(o *object) traffic {
	t := readCount(o)
	t.period = seconds(o.whole("warmUpPeriodSec", 0))
	t.coldFactor = o.whole("warmUpColdFactor", 0)
	t.maxWait = milliseconds(o.whole("maxQueueingTimeMs", 0))
	readGrade(o, "metricType", 0)
	readRelation(o, &t, "relationStrategy")
	readOrigin(o, &t, "limitOrigin")
	return t
}

// readCount reads what Java and sentinel-golang 0 have in common.
func readCount(o *object) traffic {
	t := traffic{threshold: limit{"count", o.number("count", 0)}, interval: time.Second, buckets: 2}
	switch o.whole("controlBehavior", 0) {
	case 0:
	case 1:
		t.warmUp = true
	case 2:
		t.throttle = true
	case 3:
		t.warmUp, t.throttle = true, true
	default:
		o.unknown("controlBehavior")
	}
	if o.flag("clusterMode") {
		o.drop(o.at("clusterMode"), "it is a limit of the whole cluster (clusterMode), and rules here are of one process: "+
			"write a rule with the share of one instance")
	}
	return t
}

func readGrade(o *object, field string, otherwise int) {
	switch o.whole(field, otherwise) {
	case 0:
		o.drop(o.at(field), "it limits the calls that run at the same time (%s 0), and rules here limit the calls in a time", field)
	case 1:
	default:
		o.unknown(field)
	}
}

// readRelation reads what calls the rule counts.
func readRelation(o *object, t *traffic, field string) {
	other := o.text("refResource")
	named := o.has("refResource") && o.find("refResource").node.value != ""
	switch relation := o.whole(field, 0); {
	case relation == 0:
	case relation == 2 && field == "strategy":
		o.drop(o.at(field), "it counts the calls that come by the entrance %s (strategy 2, chain), which rules here do not tell apart: "+
			"give the callers an origin, perhaps", wording.Quote(other))
	case relation != 1:
		o.unknown(field)
	case !named:
		o.drop(o.at(field), "Sentinel ignores a rule on a related resource without refResource: name it or remove the rule")
	case t.throttle:
		o.drop(o.at(field), "a queue counts nothing, so that the related resource %s has no part in it (%s 1): remove one of the two",
			wording.Quote(other), field)
	default:
		t.related = other
	}
}

// readOrigin reads whose calls the rule is for.
func readOrigin(o *object, t *traffic, field string) {
	const everybody, others = "default", "other"
	switch origin := o.text(field); origin {
	case "", everybody:
	case others:
		t.origin = flow.OtherOrigins
		o.differ(o.at(field), "in Sentinel each caller that no rule names has the limit for itself, and one without a name has none; "+
			"here all of them share it")
	default:
		t.origin = origin
	}
}

// unknown leaves out a rule whose field has a value that Sentinel does not know.
func (o *object) unknown(field string) {
	o.drop(o.at(field), "%s is %v, which Sentinel does not know", field, o.find(field).node)
}
