package flow

import "fmt"

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

// check adds the fault unless ok holds. Written so that NaN fails every range.
func (f *faults) check(ok bool, field, format string, args ...any) {
	if !ok {
		f.add(field, format, args...)
	}
}
