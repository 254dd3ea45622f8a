package convert

import (
	"math"

	"github.com/penstock-go/penstock/isolation"
)

// noteBatchCount is what all isolation rules do differently.
const noteBatchCount = "isolation rules: in Sentinel a call with a batch count counts as that many calls; here it is one call under way"

// convertGoIsolation converts an isolation rule of sentinel-golang 1.
func convertGoIsolation(o *object, to *batch) {
	limit := o.positive("threshold", 0)
	if o.whole("metricType", 0) != 0 {
		o.unknown("metricType")
	}
	if !o.dropped {
		o.note(noteBatchCount)
		rule := isolation.Rule{Name: nameOf(o), Resource: o.resource, Limit: limit}
		to.isolation = append(to.isolation, converted[isolation.Rule]{rule, o.source("")})
	}
}

// convertConcurrency converts a flow rule that limits the calls under way. Sentinel
// ignores the fraction of such a limit.
func (r flowRule) convertConcurrency(o *object, to *batch) {
	limit := math.Floor(r.threshold.value)
	if limit > maxPlaces {
		o.drop(o.at(r.threshold.field), "%s is %v: an isolation rule here allows at most %d calls under way",
			r.threshold.field, r.threshold.value, maxPlaces)
	}
	if o.dropped {
		return
	}
	o.note(noteBatchCount)
	rule := isolation.Rule{Name: r.name, Limit: int(limit), Origin: r.origin}
	rule.Resource, rule.Match = r.target(o)
	to.isolation = append(to.isolation, converted[isolation.Rule]{rule, o.source(r.pattern)})
}
