package sentinel

import (
	"time"

	"github.com/penstock-go/penstock/cmd/penstock/internal/wording"
)

// readGo reads a rule of sentinel-golang 1.
func readGo(o *object) traffic {
	t := traffic{
		threshold: limit{"threshold", o.number("threshold", 0)},
		interval:  time.Second, buckets: 2, needsOne: true,
		maxWait:    milliseconds(o.whole("maxQueueingTimeMs", 0)),
		period:     seconds(o.whole("warmUpPeriodSec", 0)),
		coldFactor: o.whole("warmUpColdFactor", 0),
	}
	if e := o.find("id"); e != nil {
		t.name, _ = e.node.value.(string)
	}
	switch o.whole("tokenCalculateStrategy", 0) {
	case 0:
	case 1:
		t.warmUp = true
	case 2:
		o.drop(o.at("tokenCalculateStrategy"),
			"its threshold follows the memory in use (tokenCalculateStrategy 2), which no rule here does: choose a fixed limit")
	default:
		o.unknown("tokenCalculateStrategy")
	}
	switch o.whole("controlBehavior", 0) {
	case 0:
	case 1:
		t.throttle = true
	default:
		o.unknown("controlBehavior")
	}
	readRelation(o, &t, "relationStrategy")
	readInterval(o, &t)
	readGoRegex(o, &t)
	return t
}

// readInterval reads the window, and parts it as Sentinel does: the statistics
// of a resource have buckets of half a second over ten seconds, and a window that
// is no multiple of those counts in one piece of its own.
func readInterval(o *object, t *traffic) {
	const bucket, most = 500, 10_000
	ms := o.whole("statIntervalInMs", 0)
	if ms == 0 {
		return
	}
	t.interval, t.buckets = milliseconds(ms), 1
	if ms >= bucket && ms <= most && ms%bucket == 0 {
		t.buckets = ms / bucket
	}
	if t.warmUp && t.interval != time.Second {
		o.differ(o.at("statIntervalInMs"),
			"Sentinel warms up as though the threshold were per second; here it is per %v there, too", t.interval)
	}
	if shared := most%ms == 0 && ms%bucket == 0; t.related != "" && !t.throttle && !shared {
		o.differ(o.at("statIntervalInMs"),
			"Sentinel counts the calls of the guarded resource for this interval; here those of %s are counted", wording.Quote(t.related))
	}
}

// readGoRegex reads a field that came after sentinel-golang 1.0.4.
func readGoRegex(o *object, t *traffic) {
	if o.flag("regex") {
		t.pattern = o.resource
		o.differ(o.at("regex"), "in sentinel-golang the counter of a pattern sees no calls; here each resource that matches has the limit")
	}
}
