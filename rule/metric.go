package rule

import (
	"strings"
	"unicode"
)

// The metrics that rules have beside the [Gauge]s of their kind.
const (
	MetricEffectiveLimit = "ceiling_tokens_per_second" // of kinds that limit how much passes in a time
	MetricState          = "state"                     // of kinds with states, as the next one
	MetricTransitions    = "transitions_total"
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
		MetricName(kind.Kind(), MetricState),
		MetricName(kind.Kind(), MetricTransitions),
	}
	for _, gauge := range kind.Gauges() {
		names = append(names, MetricName(kind.Kind(), gauge.Name))
	}
	return names
}
