package rule

import (
	"slices"
	"strings"
	"unicode"
)

// The metrics that rules have beside the [Gauge]s of their kind.
const (
	MetricEffectiveLimit = "ceiling_tokens_per_second" // of kinds that limit how much passes in a time, as the next ones
	MetricUsed           = "used_ratio"                // [Quota.Used] of [Quota.Capacity]
	MetricRemaining      = "remaining_tokens"          // what is left of that
	MetricState          = "state"                     // of kinds with states, as the next one
	MetricTransitions    = "transitions_total"
	MetricFleetGranted   = "fleet_granted_tokens_per_second" // of kinds whose limits can be for a whole fleet, as the next ones
	MetricFleetDemand    = "fleet_demand_tokens_per_second"
	MetricFleetOutage    = "fleet_outage"
)

// MetricName returns the name of a metric of rules of a kind. The kind is spelled in
// snake case: "penstock_tenant_quota_waiting" for "tenantQuota" and "waiting".
func MetricName(kind Kind, name string) string {
	var b strings.Builder
	b.WriteString("penstock_")
	for i, r := range string(kind) {
		if unicode.IsUpper(r) && i > 0 {
			b.WriteByte('_')
		}
		b.WriteRune(unicode.ToLower(r))
	}
	return b.String() + "_" + name
}

// MetricNames returns the names of all metrics that rules of a kind can have.
func MetricNames(kind Definition) []string {
	names := []string{
		MetricName(kind.Kind(), MetricEffectiveLimit),
		MetricName(kind.Kind(), MetricUsed),
		MetricName(kind.Kind(), MetricRemaining),
		MetricName(kind.Kind(), MetricState),
		MetricName(kind.Kind(), MetricTransitions),
	}
	if kind.CanShare() {
		for _, name := range []string{MetricFleetGranted, MetricFleetDemand, MetricFleetOutage} {
			names = append(names, MetricName(kind.Kind(), name))
		}
	}
	gauges := kind.Gauges()
	for i, gauge := range gauges {
		if i == 0 || !gauge.sharesMetric(gauges[:i]) {
			names = append(names, gauge.MetricName(kind.Kind()))
		}
	}
	return names
}

// MetricName returns the name of the metric of a gauge of rules of a kind; that of a
// counter ends in "_total".
func (g Gauge) MetricName(kind Kind) string {
	if g.Counter {
		return MetricName(kind, g.Name+"_total")
	}
	return MetricName(kind, g.Name)
}

// sharesMetric says whether the gauge differs from the last of those before it, and from
// others of that metric, by the value of its label alone.
func (g Gauge) sharesMetric(before []Gauge) bool {
	for i, other := range slices.Backward(before) {
		if other.Name != g.Name || other.Counter != g.Counter {
			return i < len(before)-1
		}
		if g.Label == "" || other.Label != g.Label || other.LabelValue == g.LabelValue {
			return false
		}
	}
	return true
}
