package rule

// Missing says what happens to a call that does not have the attribute that a rule looks at. Kinds
// say which of these their rules can have.
type Missing string

// What can happen to it.
const (
	// MissingPass lets the call through: the rule is not for it.
	MissingPass Missing = "pass"
	// MissingShare makes all such calls share one limit, as if they had one value.
	MissingShare Missing = "share"
	// MissingBlock refuses the call: its caller may not make it, 403.
	MissingBlock Missing = "block"
	// MissingUnauthenticated refuses the call, whose caller is to say who it is: 401.
	MissingUnauthenticated Missing = "unauthenticated"
)
