package clientip

import (
	"net/netip"

	"github.com/penstock-go/penstock/adapters/priority"
	"github.com/penstock-go/penstock/rule"
)

// callers are callers who may choose the priority of their calls.
type callers struct {
	from []netip.Prefix
	most rule.Priority
}

// Priority returns the priority that a caller has chosen by the values of a header field or
// of metadata, and no higher one than it may choose: by what trust says, if that is not nil
// and trusts it, else by its address. It returns false if they say no priority, or if the
// caller is not trusted. Neither function is called unless the values say a priority.
func (r *Resolver) Priority(
	values []string, trust func() (most rule.Priority, trusted bool), caller func() Address,
) (p rule.Priority, ok bool) {
	chosen, ok := priority.Parse(values)
	if !ok {
		return rule.PriorityNormal, false
	}
	if trust != nil {
		if most, trusted := trust(); trusted {
			return min(chosen, most), true
		}
	}
	address := caller()
	for _, c := range r.callers {
		if contain(c.from, address) {
			return min(chosen, c.most), true
		}
	}
	return rule.PriorityNormal, false
}
