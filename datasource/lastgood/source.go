package lastgood

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/penstock-go/penstock/core"
)

// keeper wraps another source and keeps a copy of its documents in force. [Keep]
// makes it. An engine may follow it again, but only one run at a time is possible,
// because the copy is of one engine's rules.
type keeper struct {
	source core.Source
	opts   Options

	running  atomic.Bool
	versions versionStore // of the present run, or of the last one
}

// Keep wraps a source so that a service can start while the source is down: it keeps
// a copy of the rules in force in a file. It returns an error if the options are
// invalid. Whether the file can be written shows only at the first save.
func Keep(source core.Source, opts Options) (core.Source, error) {
	opts, err := opts.complete()
	if source == nil {
		err = errors.Join(err, errors.New("lastgood: the source is nil: there is nothing to keep"))
	}
	if err != nil {
		return nil, err
	}
	return &keeper{source: source, opts: opts, versions: make(versionStore)}, nil
}

// Name returns the name of the wrapped source.
func (s *keeper) Name() string { return s.source.Name() }

// Run implements [core.Source]. It runs the wrapped source, saves once more when
// that returns, and returns its error.
func (s *keeper) Run(ctx context.Context, sink core.Sink) error {
	if !s.running.CompareAndSwap(false, true) {
		return fmt.Errorf("lastgood: %s is run already: each engine needs a copy of its own", s.Name())
	}
	defer s.running.Store(false)
	r := newRun(s, sink)
	var keeping sync.WaitGroup
	defer keeping.Wait()
	defer close(r.ended)
	keeping.Go(func() { r.maintainCopy(ctx) })
	return s.source.Run(ctx, r)
}
