package access

import "github.com/penstock-go/penstock/rule"

// Action is what the entries of a list mean.
type Action string

// The actions.
const (
	// Deny refuses the calls whose values are in the list.
	Deny Action = "deny"
	// Allow lets the calls pass whose values are in the list, and no others but those
	// that [Rule.Allow] has.
	Allow Action = "allow"
)

// The states of a rule.
const (
	// Ready is the state of a rule whose list is there, and of one that has no list.
	Ready = "ready"
	// ListMissing is the state of a rule whose list is not there, or has no addresses
	// although the rule looks at addresses. If the list denies, the rule goes on without
	// it; if it allows, nobody is allowed by it.
	ListMissing = "listMissing"
)

const (
	// IP is the attribute that is an address. Entries for it are addresses and prefixes.
	IP = rule.KeyIP

	// maxEntries is how many entries Allow and Deny may have each.
	maxEntries = 1000
)

// Rule says who may call one resource. It is a plain value: copies share nothing, and two
// rules are the same rule when they are equal.
type Rule struct {
	// Name identifies the rule in errors, logs and metrics, and over reloads. Unique
	// among access rules. Defaults to the resource, or to the pattern.
	Name string

	// Resource is the exact name of the guarded resource. A rule has either a Resource
	// or a Match.
	Resource string

	// Match guards every resource whose name matches the pattern: a glob, or after a
	// "~" a regular expression. See the package match.
	Match string

	// Except are names of resources, or patterns of names, that the rule is not for
	// though they match. At most 100. Match only.
	Except rule.Strings

	// Shared makes all resources that match show one state together, rather than each
	// its own. It is "perResource: false" in documents. Match only.
	Shared bool

	// Attribute is the key of the attribute that the rule looks at, such as "origin",
	// "user" or "header:X-Tenant"; see core.String. Defaults to [IP]: the value is an
	// address then, whose zone is ignored, and an IPv4 address mapped to IPv6 is that
	// IPv4 address. A value that is no address is refused.
	Attribute string

	// Allow and Deny are the entries: for [IP] addresses and prefixes such as
	// 10.0.0.0/8, otherwise exact texts and patterns of texts. A number or a boolean is
	// compared as its text. If anything is allowed, here or by a list, what is not
	// allowed is refused. At most 1,000 each; more belong in a list.
	Allow, Deny rule.Strings

	// List is the name of a list of entries; see the package list. It need not be there
	// yet; see [ListMissing].
	List string

	// ListAction says what the entries of the list mean. Defaults to [Deny]. Only with
	// List.
	ListAction Action

	// Missing says what happens to a call without the attribute. Defaults to [rule.MissingBlock]
	// if anything is allowed, otherwise to [rule.MissingPass].
	Missing rule.Missing

	// Origin restricts the rule to calls of that caller, see core.Origin;
	// [rule.OtherOrigins] to those of callers that no rule on the resource names,
	// unnamed ones included. Left out, the rule is for all calls.
	Origin string

	// Shadow makes the rule decide and count, but let every call through.
	Shadow bool
}

// allowsOnly says whether what the rule does not allow is refused.
func (r *Rule) allowsOnly() bool {
	return r.Allow != rule.Strings{} || r.List != "" && r.ListAction == Allow
}
