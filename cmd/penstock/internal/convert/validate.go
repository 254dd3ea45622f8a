package convert

import (
	"slices"

	"github.com/penstock-go/penstock/access"
	"github.com/penstock-go/penstock/adaptive"
	"github.com/penstock-go/penstock/breaker"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/hotparam"
	"github.com/penstock-go/penstock/isolation"
	"github.com/penstock-go/penstock/rule"
)

// removeInvalid removes the rules that documents do not allow, such as one with too
// large a limit, and returns what is wrong with them.
func (b *batch) removeInvalid() []Finding {
	var findings []Finding
	b.flow = valid(b.flow, flow.Kind().Faults, &findings)
	b.isolation = valid(b.isolation, isolation.Kind().Faults, &findings)
	b.breaker = valid(b.breaker, breaker.Kind().Faults, &findings)
	b.hotParam = valid(b.hotParam, hotparam.Kind().Faults, &findings)
	b.access = valid(b.access, access.Kind().Faults, &findings)
	b.adaptive = valid(b.adaptive, adaptive.Kind().Faults, &findings)
	return findings
}

func valid[R any](list []converted[R], faults func(R) []rule.Fault, findings *[]Finding) []converted[R] {
	return slices.DeleteFunc(list, func(c converted[R]) bool {
		found := faults(c.rule)
		for _, fault := range found {
			*findings = append(*findings, Finding{
				Kind: LeftOut, offset: c.offset, Resource: c.resource,
				Message: "as a rule here, " + fault.Field + " " + fault.Message,
			})
		}
		return len(found) > 0
	})
}
