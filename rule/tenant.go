package rule

// Mask says how status shows the values of an attribute that a rule tells apart. Left out, it shows them as
// they are.
type Mask string

// MaskHash shows a hash in place of a value. It is another one after each restart.
const MaskHash Mask = "hash"

// Newcomers says what tenants get that a rule with the field fairBy does not know yet.
type Newcomers string

// What they can get.
const (
	// NewcomersHalf gives them half of what passes together, and half of the queue or of the places if there
	// are such, while many of them wait.
	NewcomersHalf Newcomers = "half"

	// NewcomersEqual takes all tenants for known.
	NewcomersEqual Newcomers = "equal"
)
