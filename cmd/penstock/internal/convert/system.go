package convert

import (
	"math"
	"slices"
	"strings"
	"time"

	"github.com/penstock-go/penstock/adaptive"
)

// What all system rules do differently.
const (
	noteShedding = "system rules: while a value is above its threshold, Sentinel refuses every inbound call; here as many are refused " +
		"as need be, those of the lowest priority first"
	noteInboundQPS = "system rules: in Sentinel the last second is 2 buckets; here it is 10, and the limit is exact"
	noteThreads    = "system rules: Sentinel for Java refuses a call when more than maxThread are under way before it; here at most " +
		"maxThread are under way"
	noteBBR = "system rules: with strategy 1 (BBR), sentinel-golang refuses only calls beyond what the service could do at once of late; " +
		"here the rate of calls is lowered until the CPU is below the threshold"
	noteCPUPercent = "system rules: sentinel-golang compares a threshold from 0 to 1 with the CPU usage in percent, and that of the " +
		"machine; here 0.8 is 80 % of what the container may use"
)

// isSystem says whether it is a system rule, which is for no resource.
func isSystem(o *object) bool { return isGoSystem(o) || isJavaSystem(o) }

func isGoSystem(o *object) bool { return o.has("triggerCount") }

func isJavaSystem(o *object) bool {
	return o.has("highestSystemLoad", "highestCpuUsage", "avgRt", "maxThread") ||
		o.has("qps") && !o.has("count", "threshold", "resource")
}

func systemFormatOf(o *object) format {
	if isGoSystem(o) {
		return format{"sentinel-golang", "system rules", "", []string{
			"id", "groupId", "name", "metricType", "triggerCount", "strategy",
		}, convertGoSystem, false}
	}
	return format{"Sentinel for Java", "system rules", "", []string{
		"id", "app", "ip", "port", "gmtCreate", "gmtModified", "resource", "limitApp", "regex",
		"highestSystemLoad", "highestCpuUsage", "qps", "avgRt", "maxThread",
	}, convertJavaSystem, false}
}

// The metric types of sentinel-golang.
const (
	metricLoad = iota
	metricAvgRT
	metricConcurrency
	metricQPS
	metricCPU
)

// convertGoSystem converts a system rule of sentinel-golang, which has one threshold.
func convertGoSystem(o *object, to *batch) {
	const field = "triggerCount"
	metric, threshold := o.whole("metricType", 0), o.number(field, 0)
	r := adaptive.Rule{Name: nameOf(o), Strategy: adaptive.Threshold}
	switch metric {
	case metricLoad:
		o.leaveOutLoad(field, threshold, true)
	case metricAvgRT:
		r.AvgRT = responseTime(o, field, threshold)
	case metricConcurrency:
		r.Concurrency = underWay(o, field, math.Ceil(threshold)) // Sentinel refuses a call when as many are under way
	case metricQPS:
		r.QPS = callsASecond(o, field, math.Ceil(threshold))
	case metricCPU:
		if threshold > 1 {
			o.drop(o.at(field), "Sentinel ignores a CPU usage above 1, and %s is %v: lower it or remove the rule", field, threshold)
		}
		r.CPU = share(o, field, threshold)
		o.note(noteCPUPercent)
		if strategy := o.find("strategy"); strategy != nil {
			if written, _ := numberText(strategy.node); written == "1" {
				o.note(noteBBR)
			}
		}
	default:
		o.unknown("metricType")
	}
	addSystem(o, r, to)
}

// convertJavaSystem converts a SystemRule of Sentinel for Java. A field that is missing or
// negative is not set.
func convertJavaSystem(o *object, to *batch) {
	r := adaptive.Rule{Name: nameOf(o), Strategy: adaptive.Threshold}
	o.entries = slices.DeleteFunc(slices.Clone(o.entries), isNegative)
	if usage := o.number("highestCpuUsage", 0); usage > 1 {
		o.add(LeftOut, o.at("highestCpuUsage"), "highestCpuUsage is %v: Sentinel ignores one above 1", usage)
	} else if o.has("highestCpuUsage") {
		r.CPU = share(o, "highestCpuUsage", usage)
	}
	if o.has("avgRt") {
		r.AvgRT = responseTime(o, "avgRt", o.number("avgRt", 0))
	}
	if o.has("maxThread") {
		r.Concurrency = underWay(o, "maxThread", o.number("maxThread", 0))
		o.note(noteThreads)
	}
	if o.has("qps") {
		r.QPS = callsASecond(o, "qps", math.Floor(o.number("qps", 0)))
	}
	none := r.CPU == 0 && r.AvgRT == 0 && r.Concurrency == 0 && r.QPS == 0
	switch {
	case o.has("highestSystemLoad"):
		o.leaveOutLoad("highestSystemLoad", o.number("highestSystemLoad", 0), none)
	case none && !o.dropped:
		o.drop(o.offset, "Sentinel does nothing for a system rule without a threshold: remove it")
	}
	addSystem(o, r, to)
}

func isNegative(e entry) bool {
	written, ok := numberText(e.node)
	return ok && strings.HasPrefix(written, "-")
}

func addSystem(o *object, r adaptive.Rule, to *batch) {
	if o.dropped {
		return
	}
	o.note(noteShedding)
	if r.QPS > 0 {
		o.note(noteInboundQPS)
	}
	to.adaptive = append(to.adaptive, converted[adaptive.Rule]{r, o.source("")})
}

// leaveOutLoad reports that a load average is not converted, which leaves out the rule if
// it has nothing else.
func (o *object) leaveOutLoad(field string, load float64, alone bool) {
	const message = "%s is %v: here the load average is divided by the number of processors, which the converter does not know: " +
		"write load: with %v divided by it"
	if alone {
		o.drop(o.at(field), message, field, load, load)
		return
	}
	o.add(LeftOut, o.at(field), message, field, load, load)
}

// The functions below read thresholds. For 0 Sentinel refuses every inbound call, or
// nearly so.

func (o *object) dropZero(field string, value float64) {
	if value <= 0 && !o.dropped {
		o.drop(o.at(field), "%s is %v, for which Sentinel refuses nearly every inbound call: raise it, or write an access rule", field, value)
	}
}

func share(o *object, field string, value float64) float64 {
	o.dropZero(field, value)
	return value
}

func responseTime(o *object, field string, ms float64) time.Duration {
	o.dropZero(field, ms)
	return time.Duration(min(ms, float64(adaptive.MaxDuration/time.Millisecond)+1) * float64(time.Millisecond))
}

func underWay(o *object, field string, calls float64) int {
	o.dropZero(field, calls)
	return int(min(math.Floor(calls), math.MaxInt32))
}

func callsASecond(o *object, field string, calls float64) float64 {
	o.dropZero(field, calls)
	return calls
}
