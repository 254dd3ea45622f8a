package convert

import (
	"time"

	"github.com/penstock-go/penstock/cmd/penstock/internal/wording"
)

// convertGoFlow converts a flow rule of sentinel-golang 1.
func convertGoFlow(o *object, to *batch) {
	r := flowRule{
		name:      nameOf(o),
		threshold: limit{"threshold", o.number("threshold", 0)},
		interval:  time.Second, buckets: 2, needsOne: true,
		maxWait:    milliseconds(o.whole("maxQueueingTimeMs", 0)),
		period:     seconds(o.whole("warmUpPeriodSec", 0)),
		coldFactor: o.whole("warmUpColdFactor", 0),
	}
	switch o.whole("tokenCalculateStrategy", 0) {
	case 0:
	case 1:
		r.warmUp = true
	case 2:
		dropMemoryAdaptive(o)
	default:
		o.unknown("tokenCalculateStrategy")
	}
	switch o.whole("controlBehavior", 0) {
	case 0:
	case 1:
		r.throttle = true
	default:
		o.unknown("controlBehavior")
	}
	readRelation(o, &r, "relationStrategy")
	readInterval(o, &r)
	readGoRegex(o, &r)
	r.convert(o, to)
}

// dropMemoryAdaptive leaves out a rule whose threshold follows the bytes of memory in use,
// and says what to write: limits here follow shares of what the process may use, which the
// rule does not tell.
func dropMemoryAdaptive(o *object) {
	most, least := o.whole("lowMemUsageThreshold", 0), o.whole("highMemUsageThreshold", 0)
	from, to := o.whole("memLowWaterMarkBytes", 0), o.whole("memHighWaterMarkBytes", 0)
	if least <= 0 || most <= least || from <= 0 || to <= from {
		o.drop(o.at("tokenCalculateStrategy"), "Sentinel ignores a rule of tokenCalculateStrategy 2 unless lowMemUsageThreshold is "+
			"above highMemUsageThreshold, memHighWaterMarkBytes above memLowWaterMarkBytes, and all are above 0")
		return
	}
	o.drop(o.at("tokenCalculateStrategy"), "its threshold follows the bytes of memory in use (tokenCalculateStrategy 2), here a limit "+
		"follows the share of what the process may use: write limit: %d with follow: {signal: memory, from: %d/M, to: %d/M, least: %d}, "+
		"each /M worked out, where M is the bytes that it may use", most, from, to, least)
}

// readInterval reads the window and divides it into buckets as Sentinel does: the
// statistics of a resource have buckets of half a second for ten seconds, and a window
// that is not made of those is counted as a single bucket.
func readInterval(o *object, r *flowRule) {
	const bucket, most = 500, 10_000
	ms := o.whole("statIntervalInMs", 0)
	if ms == 0 {
		return
	}
	r.interval, r.buckets = milliseconds(ms), 1
	if ms >= bucket && ms <= most && ms%bucket == 0 {
		r.buckets = ms / bucket
	}
	if r.warmUp && r.interval != time.Second {
		o.differ(o.at("statIntervalInMs"),
			"Sentinel warms up as though the threshold were per second; here it is per %v there, too", r.interval)
	}
	if shared := most%ms == 0 && ms%bucket == 0; r.related != "" && !r.throttle && !shared {
		o.differ(o.at("statIntervalInMs"),
			"Sentinel counts the calls of the guarded resource for this interval; here those of %s are counted", wording.Quote(r.related))
	}
}

// readGoRegex reads a field that came after sentinel-golang 1.0.4.
func readGoRegex(o *object, r *flowRule) {
	if o.flag("regex") {
		r.match = "~" + o.resource
		o.differ(o.at("regex"), "in sentinel-golang the counter of a pattern sees no calls; here each resource that matches has the limit")
	}
}

// convertGo06Flow converts a flow rule of sentinel-golang 0.6.1 and 0.6.2, which has the
// fields of version 1 and the metric type and the count of version 0.
func convertGo06Flow(o *object, to *batch) {
	r := flowRule{
		threshold: limit{"count", o.number("count", 0)},
		interval:  time.Second, buckets: 2,
		maxWait:    milliseconds(o.whole("maxQueueingTimeMs", 0)),
		period:     seconds(o.whole("warmUpPeriodSec", 0)),
		coldFactor: o.whole("warmUpColdFactor", 0),
	}
	switch o.whole("tokenCalculateStrategy", 0) {
	case 0:
	case 1:
		r.warmUp = true
	default:
		o.unknown("tokenCalculateStrategy")
	}
	switch o.whole("controlBehavior", 0) {
	case 0:
	case 1:
		r.throttle = true
	default:
		o.unknown("controlBehavior")
	}
	r.concurrency = readGrade(o, "metricType", 0) && !r.throttle // Sentinel throttles the rate in any case
	if r.concurrency && r.warmUp {
		o.drop(o.at("tokenCalculateStrategy"), "its limit of the calls under way warms up (tokenCalculateStrategy 1), which no rule here does: "+
			"choose a fixed limit")
	}
	readRelation(o, &r, "relationStrategy")
	r.convert(o, to)
}
