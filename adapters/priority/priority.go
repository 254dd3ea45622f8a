// Package priority says who may choose the priority of calls that a server receives, for the
// options of adapters: see [github.com/penstock-go/penstock/adapters/clientip.Options].
//
// A caller says by a header field or by metadata how important its call is: "critical",
// "high", "normal", "low" or "sheddable". That is believed only of callers that are trusted,
// and only up to what each may choose: a client that could make its calls critical would
// be served before all others.
package priority

import (
	"net/netip"
	"strings"

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
