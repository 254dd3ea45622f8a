package nethttp

import (
	"cmp"
	"net/http"
	"strconv"
	"time"

	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/rules"
)

// Fields selects the responses that have the header fields RateLimit-Policy, which
// lists the flow rules of the resource, and RateLimit, which describes the rule with
// the least quota left (draft-ietf-httpapi-ratelimit-headers-10).
type Fields uint8

const (
	// FieldsOnRefusal adds them to refusals only, where clients need them.
	FieldsOnRefusal Fields = iota
	// FieldsAlways also adds them to the responses of calls that passed. Each such
	// response reads every rule of its resource, under its lock, and needs a few
	// allocations.
	FieldsAlways
	// FieldsNever adds them to no response, and keeps limits and the names of
	// rules and resources out of the body, too. Refusals still have Retry-After.
	FieldsNever
)

// The names of the fields as they are in a [http.Header].
const (
	limitFieldName  = "Ratelimit"
	policyFieldName = "Ratelimit-Policy"
)

// SetRefused sets the header fields of the response to a refused call: Retry-After,
// in whole seconds, rounded up, if it is known when such a call can pass, and the
// RateLimit fields, if a flow rule refused. opts are those of the call. [Answers]
// does the same at a lower cost.
func (f Fields) SetRefused(header http.Header, engine *core.Engine, block *core.BlockError, opts ...core.Option) {
	if after, known := retryAfter(block); known {
		header.Set("Retry-After", strconv.FormatInt(wholeSeconds(after), 10))
	}
	if f == FieldsNever || block.Kind != rules.KindFlow {
		return
	}
	setField(header, policyFieldName, policyField(engine.Ceilings(block.Resource, opts...)))
	setField(header, limitFieldName, limitField(block.Rule, 0, resetOf(block)))
}

// SetPassed sets the header fields of the response to a call that passed: the
// RateLimit fields, with [FieldsAlways], if the resource has rules for the call. opts
// are those of the call. [Answers] does the same at a lower cost.
func (f Fields) SetPassed(header http.Header, engine *core.Engine, resource string, opts ...core.Option) {
	if f != FieldsAlways {
		return
	}
	ceilings := engine.Ceilings(resource, opts...)
	if len(ceilings) == 0 {
		return
	}
	setField(header, policyFieldName, policyField(ceilings))
	setField(header, limitFieldName, nearestLimit(ceilings))
}

// retryAfter returns after what time such a call can pass, if that is known.
func retryAfter(block *core.BlockError) (after time.Duration, known bool) {
	return block.RetryAfter, block.RetryAfter > 0 && block.RetryAfter != core.Never
}

// resetOf is retryAfter, 0 if it is not known.
func resetOf(block *core.BlockError) time.Duration {
	after, known := retryAfter(block)
	if !known {
		return 0
	}
	return after
}

// setField sets a header field unless the value is nil.
func setField(header http.Header, name string, value []string) {
	if value != nil {
		header[name] = value
	}
}

// policyField returns the field RateLimit-Policy, nil without policies, because the
// field must not be empty.
func policyField(ceilings []core.FlowSnapshot) []string {
	var list []byte
	for i := range ceilings {
		if i > 0 {
			list = append(list, ", "...)
		}
		list = appendPolicy(list, &ceilings[i].Rule)
	}
	if len(list) == 0 {
		return nil
	}
	return []string{string(list)}
}

// nearestLimit returns the field RateLimit for the rule with the least quota left.
func nearestLimit(ceilings []core.FlowSnapshot) []string {
	nearest := &ceilings[0]
	for i := range ceilings[1:] {
		next := &ceilings[i+1]
		if cmp.Or(cmp.Compare(next.Remaining, nearest.Remaining), cmp.Compare(nearest.Reset, next.Reset)) < 0 {
			nearest = next
		}
	}
	return limitField(nearest.Rule.Name, nearest.Remaining, nearest.Reset)
}

func appendPolicy(list []byte, rule *flow.Rule) []byte {
	quota, window := wholeQuota(rule.Limit, rule.Window)
	list = appendString(list, rule.Name)
	list = strconv.AppendInt(append(list, ";q="...), quota, 10)
	return strconv.AppendInt(append(list, ";w="...), window, 10)
}

// limitField returns the field RateLimit, without the reset time if it is unknown.
func limitField(rule string, remaining int64, reset time.Duration) []string {
	var few [64]byte
	item := appendString(few[:0], rule)
	item = strconv.AppendInt(append(item, ";r="...), min(remaining, maxInteger), 10)
	if reset > 0 {
		item = strconv.AppendInt(append(item, ";t="...), wholeSeconds(reset), 10)
	}
	return []string{string(item)}
}

// appendString appends a String of structured fields (RFC 9651, 3.3.3), which can
// contain printable ASCII only. It percent-encodes every other byte, and the percent
// sign itself, so that different names stay different.
func appendString(list []byte, s string) []byte {
	const digits = "0123456789ABCDEF"
	list = append(list, '"')
	for i := range len(s) {
		switch c := s[i]; {
		case c == '"' || c == '\\':
			list = append(list, '\\', c)
		case c < ' ' || c > '~' || c == '%':
			list = append(list, '%', digits[c>>4], digits[c&0xF])
		default:
			list = append(list, c)
		}
	}
	return append(list, '"')
}
