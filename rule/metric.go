package rule

import (
	"strings"
	"unicode"
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

// MetricName returns the name of the metric of a gauge of rules of a kind; that of a
// counter ends in "_total".
func (g Gauge) MetricName(kind Kind) string {
	if g.Counter {
		return MetricName(kind, g.Name+"_total")
	}
	return MetricName(kind, g.Name)
}
