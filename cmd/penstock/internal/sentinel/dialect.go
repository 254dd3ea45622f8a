package sentinel

import (
	"slices"
	"strings"
)

// dialect is a Sentinel with its names for the fields of flow rules.
type dialect struct {
	name   string
	fields []string
	read   func(*object) traffic
}

// dialectOf tells by its fields which Sentinel a rule was written for.
func dialectOf(o *object) dialect {
	switch {
	case o.has("threshold", "tokenCalculateStrategy", "statIntervalInMs"):
		return dialect{"sentinel-golang", []string{
			"id", "resource", "tokenCalculateStrategy", "controlBehavior", "threshold", "relationStrategy", "refResource",
			"maxQueueingTimeMs", "warmUpPeriodSec", "warmUpColdFactor", "statIntervalInMs", "regex",
			"lowMemUsageThreshold", "highMemUsageThreshold", "memLowWaterMarkBytes", "memHighWaterMarkBytes",
		}, readGo}
	case o.has("metricType", "relationStrategy", "limitOrigin", "warmUpColdFactor"):
		return dialect{"sentinel-golang 0", []string{
			"id", "resource", "limitOrigin", "metricType", "count", "relationStrategy", "controlBehavior", "refResource",
			"maxQueueingTimeMs", "warmUpPeriodSec", "warmUpColdFactor", "clusterMode", "clusterConfig",
		}, readOldGo}
	default:
		return dialect{"Sentinel for Java", []string{
			"id", "app", "ip", "port", "gmtCreate", "gmtModified", "resource", "limitApp", "grade", "count", "strategy",
			"controlBehavior", "refResource", "warmUpPeriodSec", "maxQueueingTimeMs", "clusterMode", "clusterConfig", "regex",
		}, readJava}
	}
}

// judgeFields leaves out the fields that flow rules of the dialect do not have.
func (d dialect) judgeFields(o *object) {
	for _, e := range o.entries {
		if !slices.ContainsFunc(d.fields, func(known string) bool { return strings.EqualFold(known, e.name()) }) {
			o.add(LeftOut, e.key.offset, "the field %v: flow rules of %s have none of that name", e.key, d.name)
		}
	}
}

// foreign returns what kind of rule it is when it is none of flow, and the field
// that tells.
func foreign(o *object) (kind, field string) {
	for _, of := range []struct {
		kind   string
		fields []string
	}{
		{"a circuit breaker", []string{
			"retryTimeoutMs", "minRequestAmount", "statIntervalMs", "maxAllowedRtMs", "timeWindow", "slowRatioThreshold", "probeNum",
		}},
		{"a gateway rule", []string{"resourceMode", "intervalSec", "paramItem"}},
		{"a rule for hot parameters", []string{
			"paramIndex", "paramIdx", "paramKey", "paramFlowItemList", "specificItems", "paramsMaxCapacity", "durationInSec",
		}},
		{"a system rule", []string{"triggerCount", "highestSystemLoad", "highestCpuUsage", "avgRt", "maxThread"}},
	} {
		for _, field := range of.fields {
			if o.has(field) {
				return of.kind, field
			}
		}
	}
	if o.has("metricType") && o.has("threshold") {
		return "an isolation rule", "metricType"
	}
	return "", ""
}
