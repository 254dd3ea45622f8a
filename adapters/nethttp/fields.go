package nethttp

import (
	"cmp"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"net/http"
	"strconv"
	"time"

	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/rule"
)

// Fields says which responses carry the fields RateLimit-Policy, which lists
// the rules on the resource that limit a rate, and RateLimit, which tells of the rule that is
// nearest to its end (draft-ietf-httpapi-ratelimit-headers-11). Of a rule with a limit for each
// value of an attribute both tell that of the caller, and have a partition key, pk: it says which
// value that is to whoever knows the value, and is the same on all instances.
//
// Clients are not told the names of rules and resources, which are internal, unless ShowRules says so: a
// policy is named by a hash of its rule, the same on all instances and after a reload.
//
// The zero value adds the fields to refusals only, where clients need them.
type Fields struct {
	// Always also adds them to the responses of calls that passed. Each such
	// response reads every rule of its resource, under its lock, and needs a few
	// allocations.
	Always bool

	// Never adds them to no response, and keeps policies out of the body, too. Refusals
	// still have Retry-After. Always and ShowRules have no effect then.
	Never bool

	// ShowRules names rules and resources in the fields and in the bodies of refusals, where
	// all clients may know these names.
	ShowRules bool
}

// always says whether the responses of calls that passed carry the fields, too.
func (f Fields) always() bool { return f.Always && !f.Never }

// showsRules says whether clients are told the names of rules and resources.
func (f Fields) showsRules() bool { return f.ShowRules && !f.Never }

// policyName returns the name of the policy of a rule, for clients.
func (f Fields) policyName(kind rule.Kind, name string) string {
	if f.showsRules() {
		return printable(name)
	}
	const length = 6 // bytes: enough for the policies of one resource
	sum := sha256.Sum256([]byte(string(kind) + "\x00" + name))
	return "p-" + hex.EncodeToString(sum[:length])
}

// The names of the fields as they are in a [http.Header].
const (
	limitFieldName  = "Ratelimit"
	policyFieldName = "Ratelimit-Policy"
)

// refusedFields returns the RateLimit fields of the response to a call that was refused: what is
// left of the limit of the rule that refused it, which is little for a call of one token. A rule that
// has no policy, such as one for calls at once, has no RateLimit either, which would be of no policy.
func (f Fields) refusedFields(engine *core.Engine, block *core.BlockError, opts []core.Option) (policy, limit []string) {
	quotas := engine.Quotas(block.Resource, opts...)
	policy = f.policyField(quotas)
	for i := range quotas {
		of := &quotas[i]
		if of.Name != block.Rule || of.Kind != block.Kind {
			continue
		}
		remaining := int64(0)
		if core.CallTokens(opts...) > 1 && !of.Quota.Unknown {
			remaining = of.Quota.Remaining
		}
		return policy, f.limitField(of, remaining, resetOf(block))
	}
	return policy, nil
}

// isOfValue says whether a quota is that of one value of an attribute.
func isOfValue(of core.RuleSnapshot) bool { return of.Value.IsSet() }

// retryAfter returns after what time such a call can pass, if that is known and the
// caller may call at all.
func retryAfter(block *core.BlockError) (after time.Duration, known bool) {
	return block.RetryAfter, block.RetryAfter > 0 && block.RetryAfter != rule.Never && block.Reason != rule.Denied
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

// policyField is RateLimit-Policy, nil without policies: the field must not be
// empty.
func (f Fields) policyField(quotas []core.RuleSnapshot) []string {
	var list []byte
	for i := range quotas {
		if i > 0 {
			list = append(list, ", "...)
		}
		list = f.appendPolicy(list, &quotas[i])
	}
	if len(list) == 0 {
		return nil
	}
	return []string{string(list)}
}

// nearestLimit is RateLimit of the rule that is nearest to its end, as far as that is known; nil if it is of none.
func (f Fields) nearestLimit(quotas []core.RuleSnapshot) []string {
	var nearest *core.RuleSnapshot
	for i := range quotas {
		switch of := &quotas[i]; {
		case of.Quota.Unknown:
		case nearest == nil, isNearer(of.Quota, nearest.Quota):
			nearest = of
		}
	}
	if nearest == nil {
		return nil
	}
	return f.limitField(nearest, nearest.Quota.Remaining, nearest.Quota.Reset)
}

// isNearer says whether less is left of a than of b, or as much for longer.
func isNearer(a, b *rule.Quota) bool {
	return cmp.Or(cmp.Compare(a.Remaining, b.Remaining), cmp.Compare(b.Reset, a.Reset)) < 0
}

func (f Fields) appendPolicy(list []byte, of *core.RuleSnapshot) []byte {
	list = appendString(list, f.policyName(of.Kind, of.Name))
	if q := of.Quota; q.Prepaid { // it has no window
		list = strconv.AppendInt(append(list, ";q="...), min(max(int64(q.Limit), q.Remaining), maxInteger), 10)
		return appendPartition(list, of)
	}
	quota, window := wholeQuota(of.Quota.Limit, of.Quota.Window)
	list = strconv.AppendInt(append(list, ";q="...), quota, 10)
	return appendPartition(strconv.AppendInt(append(list, ";w="...), window, 10), of)
}

// appendPartition appends the partition key of a quota that is that of one value.
func appendPartition(list []byte, of *core.RuleSnapshot) []byte {
	if !isOfValue(*of) {
		return list
	}
	list = base64.StdEncoding.AppendEncode(append(list, ";pk=:"...), of.PartitionKey())
	return append(list, ':')
}

// limitField returns the field RateLimit, without the reset time if it is unknown.
func (f Fields) limitField(of *core.RuleSnapshot, remaining int64, reset time.Duration) []string {
	var few [96]byte
	item := appendString(few[:0], f.policyName(of.Kind, of.Name))
	item = strconv.AppendInt(append(item, ";r="...), min(remaining, maxInteger), 10)
	if reset > 0 {
		item = strconv.AppendInt(append(item, ";t="...), wholeSeconds(reset), 10)
	}
	return []string{string(appendPartition(item, of))}
}

// appendString appends the name of a policy as a String of structured fields (RFC 9651, 3.3.3).
func appendString(list []byte, s string) []byte {
	list = append(list, '"')
	for _, c := range []byte(s) {
		if c == '"' || c == '\\' {
			list = append(list, '\\')
		}
		list = append(list, c)
	}
	return append(list, '"')
}

// printable returns the name of a rule as a policy has it, which the fields and "violated-policies"
// spell alike: of printable ASCII only. Every other byte is percent-encoded, and the percent sign
// itself, so that different names stay different.
func printable(rule string) string {
	const digits = "0123456789ABCDEF"
	isPlain := func(c byte) bool { return ' ' <= c && c <= '~' && c != '%' }
	var name []byte
	for i := range len(rule) {
		switch c := rule[i]; {
		case isPlain(c) && name == nil:
		case isPlain(c):
			name = append(name, c)
		default:
			if name == nil {
				name = append(make([]byte, 0, len(rule)+2), rule[:i]...)
			}
			name = append(name, '%', digits[c>>4], digits[c&0xF])
		}
	}
	if name == nil {
		return rule
	}
	return string(name)
}
