package scenario

import "fmt"

// Failure is one expectation of a case that did not come true.
type Failure struct {
	// Line and Column say where the expectation stands in the test file.
	Line   int `json:"line"`
	Column int `json:"column"`

	// Resource is the one that it is about, "" for all of the load.
	Resource string `json:"resource,omitempty"`

	// Calls are those of the resource that it is about, "" for all of them.
	Calls string `json:"calls,omitempty"`

	// Field is what was expected: "passed", "total.blocked".
	Field string `json:"field"`

	// Message says in a few words what is not as expected.
	Message string `json:"message"`

	// Differences are the numbers that are not as expected.
	Differences []Difference `json:"differences"`

	// Got is the whole sequence of numbers, written as a test file would have it,
	// "" for a single number.
	Got string `json:"got,omitempty"`

	wrongLength bool // there are more or fewer numbers than expected
}

// Difference is one number that is not as expected.
type Difference struct {
	Where string `json:"where,omitempty"` // "second 3", "" where there is but one number
	Got   string `json:"got"`
	Want  string `json:"want"`
}

func (f *Failure) differ(where, got string, w want) {
	f.Differences = append(f.Differences, Difference{Where: where, Got: got, Want: w.text})
}

// compareOne returns in what a number is not as expected, nil when it is.
func compareOne(expected want, got float64, u unit) *Failure {
	if expected.holds(got) {
		return nil
	}
	failure := Failure{Message: "is not as expected"}
	failure.differ("", u.show(got), expected)
	return &failure
}

// compare returns in what a sequence is not as expected, nil when it is. It has
// to be as long as expected, too. The thing is what each number belongs to.
func compare(thing string, expected wants, got []float64, u unit) *Failure {
	failure := Failure{Got: u.sequence(got)}
	for i, v := range got {
		if w := expected.at(i); !w.holds(v) {
			failure.differ(fmt.Sprintf("%s %d", thing, i), u.show(v), w)
		}
	}
	named := len(expected.list)
	failure.wrongLength = named > len(got) || named < len(got) && !expected.hold
	switch wrong := len(failure.Differences); {
	case named > len(got):
		failure.Message = fmt.Sprintf("has %d of the %d numbers expected: there is one for each %s", len(got), named, thing)
	case named < len(got) && !expected.hold:
		failure.Message = fmt.Sprintf("has %d numbers where %d are expected, one for each %s: "+
			"end the sequence with … to hold its last number, or with _… to leave the rest open", len(got), named, thing)
	case wrong == 0:
		return nil
	default:
		failure.Message = fmt.Sprintf("is not as expected in %d of %d", wrong, len(got))
	}
	return &failure
}
