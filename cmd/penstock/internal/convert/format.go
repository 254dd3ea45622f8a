package convert

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/penstock-go/penstock/rule"
)

// format is how one version of Sentinel writes one kind of rule.
type format struct {
	name    string // of the version
	kind    string // of rule
	limit   string // the field without which nobody can tell what it limits; "" if it has none
	fields  []string
	convert func(*object, *batch)
	plain   bool // a resource and a limit alone may be a whole rule of it
}

// formatOf recognizes the format of a rule by its fields.
func formatOf(o *object) format {
	switch {
	case isAuthority(o):
		return format{"Sentinel for Java", "authority rules", "", authorityFields(), convertAuthority, false}
	case isGateway(o):
		return format{"Sentinel for Java", "gateway rules", "count", []string{
			"id", "app", "ip", "port", "gmtCreate", "gmtModified", "resource", "resourceMode", "grade", "count", "intervalSec", "interval",
			"intervalUnit", "controlBehavior", "burst", "maxQueueingTimeoutMs", "paramItem", "clusterMode", "clusterConfig",
		}, convertGateway, true}
	case isGoHotParam(o):
		return format{"sentinel-golang", "hotspot rules", "threshold", []string{
			"id", "resource", "metricType", "controlBehavior", "paramIndex", "paramKey", "threshold", "maxQueueingTimeMs", "burstCount",
			"durationInSec", "paramsMaxCapacity", "specificItems",
		}, convertGoHotParam, false}
	case isJavaHotParam(o):
		return format{"Sentinel for Java", "rules for hot parameters", "count", []string{
			"id", "app", "ip", "port", "gmtCreate", "gmtModified", "resource", "limitApp", "grade", "paramIdx", "count", "controlBehavior",
			"maxQueueingTimeMs", "burstCount", "durationInSec", "paramFlowItemList", "clusterMode", "clusterConfig", "regex",
		}, convertJavaHotParam, false}
	case o.has("retryTimeoutMs", "statSlidingWindowBucketCount", "maxAllowedRtMs", "probeNum"),
		o.has("threshold") && o.has("minRequestAmount", "statIntervalMs"),
		o.has("threshold") && o.has("strategy") && !o.has(
			"tokenCalculateStrategy", "controlBehavior", "relationStrategy", "statIntervalInMs", "metricType"):
		return format{"sentinel-golang", "circuit breakers", "threshold", []string{
			"id", "resource", "strategy", "retryTimeoutMs", "minRequestAmount", "statIntervalMs", "statSlidingWindowBucketCount",
			"maxAllowedRtMs", "threshold", "probeNum",
		}, convertGoBreaker, false}
	case o.has("timeWindow", "slowRatioThreshold", "minRequestAmount", "statIntervalMs"):
		return format{"Sentinel for Java", "degrade rules", "count", []string{
			"id", "app", "ip", "port", "gmtCreate", "gmtModified", "resource", "limitApp", "grade", "count", "timeWindow",
			"minRequestAmount", "slowRatioThreshold", "statIntervalMs", "regex",
		}, convertJavaBreaker, false}
	case o.has("threshold") && (o.has("metricType") || o.isNull("metricType") && !o.has(
		"tokenCalculateStrategy", "controlBehavior", "relationStrategy", "statIntervalInMs")): // null is 0
		return format{"sentinel-golang", "isolation rules", "threshold", []string{"id", "resource", "metricType", "threshold"}, convertGoIsolation, true}
	default:
		return flowFormatOf(o)
	}
}

func flowFormatOf(o *object) format {
	switch {
	case o.has("tokenCalculateStrategy") && o.has("count") && !o.has("threshold", "statIntervalInMs"):
		return format{"sentinel-golang 0.6", "flow rules", "count", []string{
			"id", "resource", "metricType", "tokenCalculateStrategy", "controlBehavior", "count", "relationStrategy", "refResource",
			"maxQueueingTimeMs", "warmUpPeriodSec", "warmUpColdFactor",
		}, convertGo06Flow, true}
	case o.has("threshold", "tokenCalculateStrategy", "statIntervalInMs"):
		return format{"sentinel-golang", "flow rules", "threshold", []string{
			"id", "resource", "tokenCalculateStrategy", "controlBehavior", "threshold", "relationStrategy", "refResource",
			"maxQueueingTimeMs", "warmUpPeriodSec", "warmUpColdFactor", "statIntervalInMs", "regex",
			"lowMemUsageThreshold", "highMemUsageThreshold", "memLowWaterMarkBytes", "memHighWaterMarkBytes",
		}, convertGoFlow, false}
	case o.has("metricType", "relationStrategy", "limitOrigin", "warmUpColdFactor"):
		return format{"sentinel-golang 0", "flow rules", "count", []string{
			"id", "resource", "limitOrigin", "metricType", "count", "relationStrategy", "controlBehavior", "refResource",
			"maxQueueingTimeMs", "warmUpPeriodSec", "warmUpColdFactor", "clusterMode", "clusterConfig",
		}, convertOldGoFlow, true}
	default:
		return format{"Sentinel for Java", "flow rules", "count", []string{
			"id", "app", "ip", "port", "gmtCreate", "gmtModified", "resource", "limitApp", "grade", "count", "strategy",
			"controlBehavior", "refResource", "warmUpPeriodSec", "maxQueueingTimeMs", "clusterMode", "clusterConfig", "regex",
		}, convertJavaFlow, false}
	}
}

func authorityFields() []string {
	return []string{"id", "app", "ip", "port", "gmtCreate", "gmtModified", "resource", "limitApp", "strategy", "regex"}
}

// isAuthority says whether it is an authority rule: rules of other kinds that have limitApp
// have more.
func isAuthority(o *object) bool {
	other := func(e entry) bool {
		is := func(known string) bool { return strings.EqualFold(known, e.name()) }
		return !slices.ContainsFunc(authorityFields(), is) && !slices.ContainsFunc(meaningless(), is)
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

// meaningless are fields that dashboards and people add to rules of any kind and that
// nothing reads.
func meaningless() []string {
	return []string{
		"id", "name", "app", "ip", "port", "gmtCreate", "gmtModified", "description", "desc", "comment", "remark", "owner", "creator", "env",
		"enabled", "enable", "isEnabled", "active", "disabled", "disable", "isDisabled",
	}
}

// reportUnknownFields reports fields that rules of the format do not have, and that Sentinel
// therefore ignores. Those that mean something in other rules of Sentinel, or seem to be
// misspelled, are left out: whoever wrote them expects something of them.
func (f format) reportUnknownFields(o *object) {
	for _, e := range o.entries {
		is := func(known string) bool { return strings.EqualFold(known, e.name()) }
		if slices.ContainsFunc(f.fields, is) || slices.ContainsFunc(meaningless(), is) {
			continue
		}
		kind, advice := Understood, " and ignore it"
		if rule.Nearest(e.name(), f.fields) != "" ||
			!e.node.isNothing() && (slices.ContainsFunc(fieldsOfOthers(), is) || rule.Nearest(e.name(), fieldsOfOthers()) != "") {
			kind, advice = LeftOut, ""
		}
		o.add(kind, e.key.offset, "the field %v: %s of %s have none of that name%s", e.key, f.kind, f.name, advice)
	}
}

// fieldsOfOthers are fields that mean something in rules of some format.
func fieldsOfOthers() []string {
	return []string{
		"resource", "count", "threshold", "grade", "limitApp", "limitOrigin", "metricType", "strategy", "relationStrategy", "refResource",
		"tokenCalculateStrategy", "controlBehavior", "maxQueueingTimeMs", "maxQueueingTimeoutMs", "warmUpPeriodSec", "warmUpColdFactor",
		"statIntervalInMs", "statIntervalMs", "minRequestAmount", "rtSlowRequestAmount", "maxAllowedRtMs", "slowRatioThreshold", "retryTimeoutMs",
		"timeWindow", "probeNum", "paramIdx", "paramIndex", "paramKey", "durationInSec", "burstCount", "burst", "paramFlowItemList",
		"specificItems", "paramItem", "intervalSec", "interval", "clusterMode", "regex",
	}
}

// isNothing says whether a value says no more than that a field is not set.
func (n node) isNothing() bool {
	switch v := n.value.(type) {
	case nil:
		return true
	case bool:
		return !v
	case string:
		return v == ""
	case json.Number:
		number, err := v.Float64()
		return err == nil && number == 0
	case []node:
		return len(v) == 0
	}
	return false
}
