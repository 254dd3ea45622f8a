package rule

import (
	"cmp"
	"fmt"
)

// Fault is one mistake in a rule: which field, what is wrong with it and what
// to do. Fields are named as in a rule document, those of a mapping with a dot, as in
// "warmUp.period". The message reads on from the field's name: "is -3: must be…".
type Fault struct {
	Field   string
	Message string
}

// Faults gathers what is wrong with a rule. The zero value has none.
type Faults []Fault

// Add adds a mistake.
func (f *Faults) Add(field, format string, args ...any) {
	*f = append(*f, Fault{Field: field, Message: fmt.Sprintf(format, args...)})
}

// Within says whether a value is in a range, bounds included; NaN is in none.
func Within[T cmp.Ordered](value, least, most T) bool { return value >= least && value <= most }
