package flow

import (
	"cmp"
	"fmt"
)

// Fault is one mistake in a rule: which field, what is wrong with it and what
// to do. Fields are named as in a rule document, those of a warm-up as
// "warmUp.period".
type Fault struct {
	Field   string
	Message string
}

// faults gathers what is wrong with a rule.
type faults []Fault

func (f *faults) add(field, format string, args ...any) {
	*f = append(*f, Fault{Field: field, Message: fmt.Sprintf(format, args...)})
}

// within says whether a value is in a range, bounds included; NaN is in none.
func within[T cmp.Ordered](value, least, most T) bool { return value >= least && value <= most }
