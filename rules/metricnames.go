package rules

import (
	"slices"

	"github.com/penstock-go/penstock/rule"
)

// metricNames returns the names of all metrics that rules of a kind can have: those that package metrics/prometheus
// shows of rules of every kind, and those of the kind's gauges.
func metricNames(kind rule.Definition) (names []string) {
	of := []string{"ceiling_tokens_per_second", "used_ratio", "remaining_tokens", "state", "transitions_total"}
	if kind.CanShare() {
		of = append(of, "fleet_granted_tokens_per_second", "fleet_demand_tokens_per_second", "fleet_outage")
	}
	for _, name := range of {
		names = append(names, rule.MetricName(kind.Kind(), name))
	}
	gauges := kind.Gauges()
	for i, gauge := range gauges {
		if i == 0 || !sharesMetric(gauge, gauges[:i]) {
			names = append(names, gauge.MetricName(kind.Kind()))
		}
	}
	return names
}

// sharesMetric says whether the gauge differs from the last of those before it, and from
// others of that metric, by the value of its label alone.
func sharesMetric(g rule.Gauge, before []rule.Gauge) bool {
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
