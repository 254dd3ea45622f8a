package nethttp

import (
	"cmp"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/rules"
)

// Fields says which responses carry the fields RateLimit-Policy, which lists
// the flow rules on the resource, and RateLimit, which tells of the rule that is
// nearest to its end (draft-ietf-httpapi-ratelimit-headers-10).
type Fields uint8

const (
	// FieldsOnRefusal puts them on refusals only, where clients need them.
	FieldsOnRefusal Fields = iota
	// FieldsAlways puts them on the responses of calls that passed, too. Each
	// then costs a look at every rule on its resource, under their locks, and a
	// few allocations.
	FieldsAlways
	// FieldsNever keeps limits and the names of rules to oneself. Refusals have
	// their Retry-After all the same.
	FieldsNever
)

// SetRefused sets the header fields of the response to a refused call:
// Retry-After, in whole seconds, rounded up, unless it is unknown when such a
// call can pass or it never can, and, where a ceiling refused, the RateLimit fields. opts are
// those of the call.
func (f Fields) SetRefused(header http.Header, engine *core.Engine, block *core.BlockError, opts ...core.Option) {
	if block.RetryAfter > 0 && block.RetryAfter != core.Never {
		header.Set("Retry-After", strconv.FormatInt(wholeSeconds(block.RetryAfter), 10))
	}
	if f == FieldsNever || block.Kind != rules.KindFlow {
		return
	}
	setPolicies(header, engine.Ceilings(block.Resource, opts...))
	setRemaining(header, block.Rule, 0, block.RetryAfter)
}

// SetPassed sets the header fields of the response to a call of the resource
// that passed: the RateLimit fields if they are to be on every response and the
// resource has rules for it. opts are those of the call.
func (f Fields) SetPassed(header http.Header, engine *core.Engine, resource string, opts ...core.Option) {
	if f != FieldsAlways {
		return
	}
	ceilings := engine.Ceilings(resource, opts...)
	if len(ceilings) == 0 {
		return
	}
	setPolicies(header, ceilings)
	nearest := slices.MinFunc(ceilings, func(a, b core.FlowSnapshot) int {
		return cmp.Or(cmp.Compare(a.Remaining, b.Remaining), cmp.Compare(b.Reset, a.Reset))
	})
	setRemaining(header, nearest.Rule.Name, nearest.Remaining, nearest.Reset)
}

// setPolicies sets RateLimit-Policy. The field must not be empty.
func setPolicies(header http.Header, ceilings []core.FlowSnapshot) {
	var list []byte
	for i := range ceilings {
		if i > 0 {
			list = append(list, ", "...)
		}
		list = appendPolicy(list, &ceilings[i].Rule)
	}
	if len(list) > 0 {
		header.Set("RateLimit-Policy", string(list))
	}
}

func appendPolicy(list []byte, rule *flow.Rule) []byte {
	quota, window := wholeQuota(rule.Limit, rule.Window)
	list = appendString(list, rule.Name)
	list = strconv.AppendInt(append(list, ";q="...), quota, 10)
	return strconv.AppendInt(append(list, ";w="...), window, 10)
}

// setRemaining sets RateLimit. A reset that cannot be told is left out.
func setRemaining(header http.Header, rule string, remaining int64, reset time.Duration) {
	item := appendString(nil, rule)
	item = strconv.AppendInt(append(item, ";r="...), min(remaining, maxInteger), 10)
	if reset > 0 && reset != core.Never {
		item = strconv.AppendInt(append(item, ";t="...), wholeSeconds(reset), 10)
	}
	header.Set("RateLimit", string(item))
}

// appendString appends a String of structured fields (RFC 9651, 3.3.3). It can
// hold printable ASCII only; every other byte is percent-encoded.
func appendString(list []byte, s string) []byte {
	const digits = "0123456789ABCDEF"
	list = append(list, '"')
	for i := range len(s) {
		switch c := s[i]; {
		case c == '"' || c == '\\':
			list = append(list, '\\', c)
		case c < ' ' || c > '~':
			list = append(list, '%', digits[c>>4], digits[c&0xF])
		default:
			list = append(list, c)
		}
	}
	return append(list, '"')
}
