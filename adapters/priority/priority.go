// Package priority says who may choose the priority of calls that a server receives. It is
// for adapters; services use it through the options of theirs.
//
// A caller says by a header field or by metadata how important its call is: "critical",
// "high", "normal", "low" or "sheddable". That is believed only of callers that are trusted,
// and only up to what each may choose: a client that could make its calls critical would
// be served before all others.
package priority

import (
	"net/netip"
	"slices"
	"strings"

	"github.com/penstock-go/penstock/adapters/clientip"
	"github.com/penstock-go/penstock/rule"
)

// Field is the usual name of the header field, and in lower case of the metadata, for the
// options of adapters.
const Field = "Penstock-Priority"

// Callers are callers who may choose the priority of their calls.
type Callers struct {
	// From are the addresses of the callers. What is behind a proxy has its address,
	// unless the proxy is one of the TrustedProxies of the adapter. Name no proxy here
	// that passes on what clients write into the field.
	From []netip.Prefix

	// Max is the highest priority that they may choose; a higher one counts as Max.
	// Defaults to normal.
	Max rule.Priority
}

// Trust is a compiled list of [Callers]. The zero value trusts nobody.
type Trust struct{ callers []compiled }

type compiled struct {
	from *clientip.Resolver
	most rule.Priority
}

// NewTrust returns the trust in these callers. Invalid prefixes contain no address.
func NewTrust(callers []Callers) Trust {
	var t Trust
	for _, c := range callers {
		from := clientip.New(clientip.Options{TrustedProxies: c.From})
		t.callers = append(t.callers, compiled{from, c.Max})
	}
	t.callers = slices.Clip(t.callers)
	return t
}

// Of returns the highest priority that a caller with the address may choose: that of the
// first of the callers whose prefixes contain it. trusted is false if none does.
func (t Trust) Of(caller clientip.Address) (most rule.Priority, trusted bool) {
	for _, c := range t.callers {
		if c.from.Trusts(caller) {
			return c.most, true
		}
	}
	return rule.PriorityNormal, false
}

// Choose returns the priority that a caller has chosen by the values of a header field or
// of metadata, and no higher one than it may choose: by what trust says, if that is not nil
// and trusts it, else by its address. It returns false if they say no priority, or if the
// caller is not trusted. Neither function is called unless the values say a priority.
func (t Trust) Choose(
	values []string, trust func() (most rule.Priority, trusted bool), caller func() clientip.Address,
) (p rule.Priority, ok bool) {
	chosen, ok := Parse(values)
	if !ok {
		return rule.PriorityNormal, false
	}
	if trust != nil {
		if most, trusted := trust(); trusted {
			return min(chosen, most), true
		}
	}
	if most, trusted := t.Of(caller()); trusted {
		return min(chosen, most), true
	}
	return rule.PriorityNormal, false
}

// Parse returns the priority that the values of a header field or of metadata say. ok is
// false unless there is exactly one, which spells a priority, in any case and with spaces
// around it.
func Parse(values []string) (p rule.Priority, ok bool) {
	const longest = 32 // of texts that are looked at
	if len(values) != 1 || len(values[0]) > longest {
		return rule.PriorityNormal, false
	}
	return rule.ParsePriority(strings.ToLower(strings.Trim(values[0], " \t")))
}
