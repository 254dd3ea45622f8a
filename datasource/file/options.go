package file

import (
	"errors"
	"log/slog"
	"time"

	"github.com/penstock-go/penstock/clock"
)

// Options configure a source. The zero value is ready to use.
type Options struct {
	// Interval is the time between two polls. While the path cannot be read it
	// doubles with each poll, up to eight times. Defaults to 250 ms, for lists to a
	// second.
	Interval time.Duration

	// CompareInterval is how often a file is read although its identity, size and times
	// are as before: there are file systems on which a change shows in none of them.
	// Defaults to a minute, for lists to ten minutes.
	CompareInterval time.Duration

	// MaxDocuments is how many documents the directory may hold. If there are more,
	// the source applies none of them and counts as disconnected until there are
	// fewer. Defaults to 10,000.
	MaxDocuments int

	// Logger receives from [WatchLists] which lists come into force, which do not and
	// why. Entries of lists are not logged. Defaults to [slog.Default].
	Logger *slog.Logger

	// Clock times the polls. Defaults to [clock.System].
	Clock clock.Clock
}

// complete returns the options with the defaults filled in, or all their mistakes.
func (o Options) complete() (Options, error) {
	var faults []error
	if o.Interval < 0 {
		faults = append(faults, errors.New("file: Options.Interval is negative: leave it out for the default"))
	}
	if o.CompareInterval < 0 {
		faults = append(faults, errors.New("file: Options.CompareInterval is negative: leave it out for the default"))
	}
	if o.MaxDocuments < 0 {
		faults = append(faults, errors.New("file: Options.MaxDocuments is negative: leave it out for the default"))
	}
	if o.Interval == 0 {
		o.Interval = 250 * time.Millisecond
	}
	if o.CompareInterval == 0 {
		o.CompareInterval = time.Minute
	}
	if o.MaxDocuments == 0 {
		o.MaxDocuments = 10_000
	}
	if o.Clock == nil {
		o.Clock = clock.System()
	}
	return o, errors.Join(faults...)
}
