package simulate

import (
	"fmt"
	"strings"
)

// wholeLoad is the [Fault.Stream] of a mistake that is in no single stream.
const wholeLoad = -1

// Fault is one mistake in a load.
type Fault struct {
	// Stream is the index of the stream, -1 for a mistake that is in no single stream.
	Stream int
	// Field is named as in a load file: "rate", "serviceTime".
	Field string
	// Message says what is wrong and what to do. It reads on from the field's
	// name: "is -1: must be…".
	Message string
}

// line returns the fault as one line.
func (f Fault) line() string {
	if f.Stream == wholeLoad {
		return fmt.Sprintf("simulate: %s %s", f.Field, f.Message)
	}
	return fmt.Sprintf("simulate: streams[%d] %s %s", f.Stream, f.Field, f.Message)
}

// Faults is every mistake found in a load: the error of [Run], which errors.As
// finds as Faults.
type Faults []Fault

// Error returns the faults, one a line.
func (fs Faults) Error() string {
	lines := make([]string, len(fs))
	for i, f := range fs {
		lines[i] = f.line()
	}
	return strings.Join(lines, "\n")
}

// check adds the fault unless ok holds. Written so that NaN fails every range.
func (fs *Faults) check(ok bool, stream int, field, format string, args ...any) {
	if !ok {
		*fs = append(*fs, Fault{stream, field, fmt.Sprintf(format, args...)})
	}
}
