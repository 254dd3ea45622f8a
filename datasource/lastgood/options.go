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

// Options configure a copy. Path and App are required.
type Options struct {
	// Path is the file of the copy. Its directory must exist, on a disk that
	// outlives the process, and nobody else should be able to write there. A
	// relative path is resolved against the current working directory.
	Path string

	// App is the name of the application. A copy that was saved under another name
	// is ignored.
	App string

	// SourceTimeout is how long a run waits for the first report of the source before
	// it applies the copy. Defaults to 2 s.
	SourceTimeout time.Duration

	// Interval is the time from a change to the save, and the shortest time between
	// two saves. A failed save is retried after growing pauses, up to 32 times the
	// interval. Defaults to 1 s.
	Interval time.Duration

	// Logger receives copies that are missing or unusable, and saves that fail. The
	// engine logs that a copy is used. Documents are never logged. Defaults to
	// [slog.Default].
	Logger *slog.Logger

	// Clock times the wait for the source and the saves. Defaults to [clock.System].
	Clock clock.Clock
}

// complete returns the options with the defaults filled in, or all their mistakes.
func (o Options) complete() (Options, error) {
	var faults []error
	if o.App == "" {
		faults = append(faults, errors.New("lastgood: Options.App is empty: name the application"))
	}
	if o.SourceTimeout < 0 {
		faults = append(faults, errors.New("lastgood: Options.SourceTimeout is negative: leave it out for the default"))
	}
	if o.Interval < 0 {
		faults = append(faults, errors.New("lastgood: Options.Interval is negative: leave it out for the default"))
	}
	path, err := checkPath(o.Path)
	faults = append(faults, err)
	o.Path = path
	if o.SourceTimeout == 0 {
		o.SourceTimeout = 2 * time.Second
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

// checkPath returns the absolute path, or an error if no copy can be kept there.
func checkPath(path string) (string, error) {
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
