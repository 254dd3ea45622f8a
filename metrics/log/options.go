package metriclog

import (
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"
)

// The defaults of [Options].
const (
	defaultMaxFileSize = 50 << 20
	defaultMaxFiles    = 8
)

// Options configure a log.
type Options struct {
	// Dir is the directory of the files. It is made if need be. Required.
	Dir string

	// App is the name of the service, with which the names of its files begin. Instances
	// that write to one directory need different names. Required; without / and \.
	App string

	// MaxFileSize is after how many bytes another file is begun. Defaults to
	// 50 MiB.
	MaxFileSize int64

	// MaxFiles is how many files are kept. Defaults to 8.
	MaxFiles int

	// Location is the time zone of dates in names and lines. Defaults to [time.Local].
	Location *time.Location

	// Logger receives an error when the log cannot be written, and another line when that is
	// over. Defaults to [slog.Default].
	Logger *slog.Logger
}

// complete returns the options with their defaults, or all mistakes in them.
func (o Options) complete() (Options, error) {
	mistakes := checkPlace("Options", o.Dir, o.App)
	if o.MaxFileSize < 0 {
		mistakes = errors.Join(mistakes, fmt.Errorf("Options.MaxFileSize is %d: give at least 1, or 0 for the default", o.MaxFileSize))
	}
	if o.MaxFiles < 0 {
		mistakes = errors.Join(mistakes, fmt.Errorf("Options.MaxFiles is %d: give at least 1, or 0 for the default", o.MaxFiles))
	}
	if o.MaxFileSize == 0 {
		o.MaxFileSize = defaultMaxFileSize
	}
	if o.MaxFiles == 0 {
		o.MaxFiles = defaultMaxFiles
	}
	if o.Location == nil {
		o.Location = time.Local
	}
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	if mistakes != nil {
		return o, fmt.Errorf("metriclog: %w", mistakes)
	}
	return o, nil
}

// checkPlace returns what is wrong with where the files are, in the fields of a type.
func checkPlace(of, dir, app string) (mistakes error) {
	if dir == "" {
		mistakes = fmt.Errorf("%s.Dir is empty: name the directory of the files", of)
	}
	switch {
	case app == "":
		mistakes = errors.Join(mistakes, fmt.Errorf("%s.App is empty: name the service", of))
	case strings.ContainsAny(app, `/\`):
		mistakes = errors.Join(mistakes, fmt.Errorf("%s.App %q has a slash: names of files begin with it", of, app))
	}
	return mistakes
}
