package sentinel

import (
	"slices"
	"strings"
)

// format is how one version of Sentinel writes one kind of rule.
type format struct {
	name    string // of the version
	kind    string // of rule
	fields  []string
	convert func(*object, *batch)
}

// formatOf recognizes the format of a rule by its fields.
func formatOf(o *object) format {
	switch {
	case isAuthority(o):
		return format{"Sentinel for Java", "authority rules", authorityFields(), convertAuthority}
	case isGateway(o):
		return format{"Sentinel for Java", "gateway rules", []string{
			"id", "app", "ip", "port", "gmtCreate", "gmtModified", "resource", "resourceMode", "grade", "count", "intervalSec", "interval",
			"intervalUnit", "controlBehavior", "burst", "maxQueueingTimeoutMs", "paramItem", "clusterMode", "clusterConfig",
		}, convertGateway}
	case isGoHotParam(o):
		return format{"sentinel-golang", "hotspot rules", []string{
			"id", "resource", "metricType", "controlBehavior", "paramIndex", "paramKey", "threshold", "maxQueueingTimeMs", "burstCount",
			"durationInSec", "paramsMaxCapacity", "specificItems",
		}, convertGoHotParam}
	case isJavaHotParam(o):
		return format{"Sentinel for Java", "rules for hot parameters", []string{
			"id", "app", "ip", "port", "gmtCreate", "gmtModified", "resource", "limitApp", "grade", "paramIdx", "count", "controlBehavior",
			"maxQueueingTimeMs", "burstCount", "durationInSec", "paramFlowItemList", "clusterMode", "clusterConfig", "regex",
		}, convertJavaHotParam}
	case o.has("retryTimeoutMs", "statSlidingWindowBucketCount", "maxAllowedRtMs", "probeNum"),
		o.has("threshold") && o.has("minRequestAmount", "statIntervalMs"):
		return format{"sentinel-golang", "circuit breakers", []string{
			"id", "resource", "strategy", "retryTimeoutMs", "minRequestAmount", "statIntervalMs", "statSlidingWindowBucketCount",
			"maxAllowedRtMs", "threshold", "probeNum",
		}, convertGoBreaker}
	case o.has("timeWindow", "slowRatioThreshold", "minRequestAmount", "statIntervalMs"):
		return format{"Sentinel for Java", "degrade rules", []string{
			"id", "app", "ip", "port", "gmtCreate", "gmtModified", "resource", "limitApp", "grade", "count", "timeWindow",
			"minRequestAmount", "slowRatioThreshold", "statIntervalMs", "regex",
		}, convertJavaBreaker}
	case o.has("metricType") && o.has("threshold"):
		return format{"sentinel-golang", "isolation rules", []string{"id", "resource", "metricType", "threshold"}, convertGoIsolation}
	default:
		return flowFormatOf(o)
	}
}

func flowFormatOf(o *object) format {
	switch {
	case o.has("threshold", "tokenCalculateStrategy", "statIntervalInMs"):
		return format{"sentinel-golang", "flow rules", []string{
			"id", "resource", "tokenCalculateStrategy", "controlBehavior", "threshold", "relationStrategy", "refResource",
			"maxQueueingTimeMs", "warmUpPeriodSec", "warmUpColdFactor", "statIntervalInMs", "regex",
			"lowMemUsageThreshold", "highMemUsageThreshold", "memLowWaterMarkBytes", "memHighWaterMarkBytes",
		}, convertGoFlow}
	case o.has("metricType", "relationStrategy", "limitOrigin", "warmUpColdFactor"):
		return format{"sentinel-golang 0", "flow rules", []string{
			"id", "resource", "limitOrigin", "metricType", "count", "relationStrategy", "controlBehavior", "refResource",
			"maxQueueingTimeMs", "warmUpPeriodSec", "warmUpColdFactor", "clusterMode", "clusterConfig",
		}, convertOldGoFlow}
	default:
		return format{"Sentinel for Java", "flow rules", []string{
			"id", "app", "ip", "port", "gmtCreate", "gmtModified", "resource", "limitApp", "grade", "count", "strategy",
			"controlBehavior", "refResource", "warmUpPeriodSec", "maxQueueingTimeMs", "clusterMode", "clusterConfig", "regex",
		}, convertJavaFlow}
	}
}

func authorityFields() []string {
	return []string{"id", "app", "ip", "port", "gmtCreate", "gmtModified", "resource", "limitApp", "strategy", "regex"}
}

// isAuthority says whether it is an authority rule: rules of other kinds that have limitApp
// have more.
func isAuthority(o *object) bool {
	other := func(e entry) bool {
		return !slices.ContainsFunc(authorityFields(), func(known string) bool { return strings.EqualFold(known, e.name()) })
	}
	return o.find("limitApp") != nil && !slices.ContainsFunc(o.entries, other)
}

func isGateway(o *object) bool {
	return o.has("resourceMode", "paramItem", "intervalSec", "intervalUnit", "maxQueueingTimeoutMs")
}

func isGoHotParam(o *object) bool {
	return o.has("paramIndex", "paramKey", "specificItems", "paramsMaxCapacity") || o.has("threshold") && o.has("durationInSec", "burstCount")
}

func isJavaHotParam(o *object) bool {
	return o.has("paramIdx", "paramFlowItemList") || o.has("count") && o.has("durationInSec", "burstCount")
}

// reportUnknownFields reports fields that rules of the format do not have.
func (f format) reportUnknownFields(o *object) {
	for _, e := range o.entries {
		if !slices.ContainsFunc(f.fields, func(known string) bool { return strings.EqualFold(known, e.name()) }) {
			o.add(LeftOut, e.key.offset, "the field %v: %s of %s have none of that name", e.key, f.kind, f.name)
		}
	}
}
