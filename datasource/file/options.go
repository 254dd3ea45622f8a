package file

import (
	"errors"
	"time"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/rules"
)

// MaxDocumentSize is the longest document in bytes that the source reads. A
// longer one is reported as a faulty document.
const MaxDocumentSize = rules.MaxDocumentSize

// Options of a source. The zero value serves.
type Options struct {
	// Interval is the time from one look to the next. While the path cannot be
	// read it doubles with each look, up to eightfold. Defaults to 250 ms.
	Interval time.Duration

	// MaxDocuments is how many documents the directory may hold. With more of
	// them none is applied, and the source counts as disconnected until there
	// are fewer. Defaults to 10,000.
	MaxDocuments int

	// Clock times the looks. Defaults to [clock.System].
	Clock clock.Clock
}

// complete returns the options with every field that was left out filled in, or
// what is wrong with them.
func (o Options) complete() (Options, error) {
	var faults []error
	if o.Interval < 0 {
		faults = append(faults, errors.New("file: Options.Interval is negative: leave it out for the default"))
	}
	if o.MaxDocuments < 0 {
		faults = append(faults, errors.New("file: Options.MaxDocuments is negative: leave it out for the default"))
	}
	if o.Interval == 0 {
		o.Interval = 250 * time.Millisecond
	}
	if o.MaxDocuments == 0 {
		o.MaxDocuments = 10_000
	}
	if o.Clock == nil {
		o.Clock = clock.System()
	}
	return o, errors.Join(faults...)
}
