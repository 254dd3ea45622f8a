package file

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"github.com/penstock-go/penstock/core"
)

// maxSlowdown is how many times the interval the pause between two looks grows
// to while the path cannot be read.
const maxSlowdown = 8

// Source is a directory or a file as a source of rule documents. It keeps
// nothing between runs: an engine may follow it again, and several engines may
// follow it at once.
type Source struct {
	path string
	opts Options
	many int // documents: see the constant
}

var _ core.Source = (*Source)(nil)

// New returns the source of the documents in the directory, or of the one in
// the file, at path. The path need not exist yet. A relative one is taken from
// the present working directory.
func New(path string, opts Options) (*Source, error) {
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
	return &Source{path: absolute, opts: opts, many: many}, nil
}

// Name returns "file:" and the absolute path.
func (s *Source) Name() string { return "file:" + s.path }

// Run implements [core.Source]. It returns when ctx has ended, and then
// ctx.Err(): there is no failure after which it would give up.
func (s *Source) Run(ctx context.Context, sink core.Sink) error {
	f := follower{source: s, sink: sink}
	pause := s.opts.Interval
	for ctx.Err() == nil {
		if err := f.look(); err != nil {
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
func (s *Source) wait(ctx context.Context, d time.Duration) {
	timer := s.opts.Clock.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C():
	}
}
