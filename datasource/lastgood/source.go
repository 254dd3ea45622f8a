package lastgood

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/penstock-go/penstock/core"
)

// Source is another source with a copy of what is in force of it. It is made by
// [Keep]. An engine may follow it again, but one run at a time: a copy is of one
// engine's rules.
type Source struct {
	kept core.Source
	opts Options

	running  atomic.Bool
	holdings holdings // of the run that there is, or of the last one
}

var _ core.Source = (*Source)(nil)

// Keep returns the source with a copy of its rules in a file. The error tells
// what is wrong with the options: whether the file can be written shows only
// when it is.
func Keep(source core.Source, opts Options) (*Source, error) {
	opts, err := opts.complete()
	if source == nil {
		err = errors.Join(err, errors.New("lastgood: the source is nil: there is nothing to keep"))
	}
	if err != nil {
		return nil, err
	}
	return &Source{kept: source, opts: opts, holdings: make(holdings)}, nil
}

// Name returns the name of the source that is kept.
func (s *Source) Name() string { return s.kept.Name() }

// Run implements [core.Source]. It runs the source that is kept and returns what
// that returns, after a last save.
func (s *Source) Run(ctx context.Context, sink core.Sink) error {
	if !s.running.CompareAndSwap(false, true) {
		return fmt.Errorf("lastgood: %s is run already: each engine needs a copy of its own", s.Name())
	}
	defer s.running.Store(false)
	r := newRun(s, sink)
	var keeping sync.WaitGroup
	defer keeping.Wait()
	defer close(r.ended)
	keeping.Go(func() { r.keep(ctx) })
	return s.kept.Run(ctx, r)
}
