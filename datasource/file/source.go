package file

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"github.com/penstock-go/penstock/core"
)

// maxSlowdown limits the pause between two polls while the path cannot be read, as a
// multiple of the interval.
const maxSlowdown = 8

// source delivers the rule documents in a directory or a file. It keeps no state
// between runs: an engine may follow it again, and several engines may follow it at
// once.
type source struct {
	path             string
	opts             Options
	format           format
	partialScanAbove int // see the constant; lower in tests
}

// New returns a source of the documents in the directory at path, or of the one
// document if path is a file. The path need not exist yet. A relative path is
// resolved against the current working directory.
func New(path string, opts Options) (core.Source, error) {
	s, err := newSource(path, opts, ruleDocuments())
	if err != nil {
		return nil, err
	}
	return s, nil
}

func newSource(path string, opts Options, format format) (*source, error) {
	if path == "" {
		return nil, errors.New("file: the path is empty: name a directory or a file")
	}
	absolute, err := filepath.Abs(path)
	if err != nil {
		return nil, fmt.Errorf("file: making %s absolute: %w", path, err)
	}
	opts, err = opts.complete()
	if err != nil {
		return nil, err
	}
	return &source{path: absolute, opts: opts, format: format, partialScanAbove: partialScanAbove}, nil
}

// Name returns "file:" and the absolute path.
func (s *source) Name() string { return s.format.name + s.path }

// Run implements [core.Source]. It returns ctx.Err() when ctx has ended. It retries
// after every error.
func (s *source) Run(ctx context.Context, sink core.Sink) error {
	f := follower{source: s, sink: sink}
	pause := s.opts.Interval
	for ctx.Err() == nil {
		if err := f.poll(); err != nil {
			sink.Disconnected(err)
			pause = min(2*pause, maxSlowdown*s.opts.Interval)
		} else {
			pause = s.opts.Interval
		}
		s.wait(ctx, pause)
	}
	return ctx.Err()
}

// wait returns after d, or earlier when ctx ends.
func (s *source) wait(ctx context.Context, d time.Duration) {
	timer := s.opts.Clock.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C():
	}
}
