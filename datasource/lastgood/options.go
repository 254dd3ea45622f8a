package lastgood

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/penstock-go/penstock/clock"
)

// Options of a copy. Path and App are needed.
type Options struct {
	// Path is the file that holds the copy. Its directory must exist, on a disk
	// that outlives the process; nobody else should be able to write there. A
	// relative path is taken from the present working directory.
	Path string

	// App names the application whose rules these are. A copy that was saved under
	// another name is ignored.
	App string

	// Patience is how long a run waits for the source before it goes by the copy.
	// Defaults to 2 s.
	Patience time.Duration

	// Interval is the time from a change to the save, and the shortest one between
	// two saves. A save that failed is tried again after longer and longer, up to
	// 32 times the interval. Defaults to 1 s.
	Interval time.Duration

	// Logger is told of copies that are missing or cannot be used and of saves that
	// fail. That a copy is used is the engine's to log. Documents are never logged.
	// Defaults to [slog.Default].
	Logger *slog.Logger

	// Clock times the patience and the saves. Defaults to [clock.System].
	Clock clock.Clock
}

// complete returns the options with every field that was left out filled in, or
// what is wrong with them.
func (o Options) complete() (Options, error) {
	var faults []error
	if o.App == "" {
		faults = append(faults, errors.New("lastgood: Options.App is empty: name the application"))
	}
	if o.Patience < 0 {
		faults = append(faults, errors.New("lastgood: Options.Patience is negative: leave it out for the default"))
	}
	if o.Interval < 0 {
		faults = append(faults, errors.New("lastgood: Options.Interval is negative: leave it out for the default"))
	}
	path, err := usable(o.Path)
	faults = append(faults, err)
	o.Path = path
	if o.Patience == 0 {
		o.Patience = 2 * time.Second
	}
	if o.Interval == 0 {
		o.Interval = time.Second
	}
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	if o.Clock == nil {
		o.Clock = clock.System()
	}
	return o, errors.Join(faults...)
}

// usable returns the path made absolute, or why no copy can be kept there.
func usable(path string) (string, error) {
	if path == "" {
		return "", errors.New("lastgood: Options.Path is empty: name the file for the copy")
	}
	absolute, err := filepath.Abs(path)
	if err != nil {
		return "", fmt.Errorf("lastgood: making %s absolute: %w", path, err)
	}
	if info, err := os.Lstat(absolute); err == nil && info.IsDir() {
		return "", fmt.Errorf("lastgood: %s is a directory: name a file in it", absolute)
	}
	directory, err := os.Stat(filepath.Dir(absolute))
	switch {
	case err != nil:
		return "", fmt.Errorf("lastgood: the directory of the copy must exist: %w", err)
	case !directory.IsDir():
		return "", fmt.Errorf("lastgood: %s is not a directory: the copy cannot be in it", filepath.Dir(absolute))
	default:
		return absolute, nil
	}
}
