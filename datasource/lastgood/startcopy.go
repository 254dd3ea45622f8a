package lastgood

import (
	"context"
	"errors"
	"io/fs"
	"log/slog"
)

// applyCopyIfNeeded reads the copy, and applies it if the source does not deliver in time.
func (r *run) applyCopyIfNeeded(ctx context.Context) {
	if r.engine.Status().Ready {
		close(r.copyRead)
		return
	}
	timer := r.opts.Clock.NewTimer(r.opts.SourceTimeout)
	defer timer.Stop()
	r.loadCopy()
	select {
	case <-timer.C():
	case <-r.seen:
	case <-r.ended:
	case <-ctx.Done():
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if ctx.Err() == nil && !r.delivered {
		r.applyCopy(true)
	}
}

// loadCopy reads the copy and logs an error of it.
func (r *run) loadCopy() {
	defer close(r.copyRead)
	change, err := r.read()
	switch {
	case errors.Is(err, fs.ErrNotExist):
		r.opts.Logger.Info("penstock: there is no last good copy of the source yet",
			slog.String("source", r.Name()), slog.String("path", r.opts.Path))
	case err != nil:
		r.opts.Logger.Error("penstock: the last good copy of the source cannot be used and is ignored",
			slog.String("source", r.Name()), slog.Any("error", err))
	default:
		r.mu.Lock()
		defer r.mu.Unlock()
		r.copy = &change
	}
}

// awaitCopy waits until the copy has been read, but no longer than Options.SourceTimeout,
// so that a disk that hangs does not block the rules.
func (r *run) awaitCopy() {
	select {
	case <-r.copyRead:
		return
	default:
	}
	timer := r.opts.Clock.NewTimer(r.opts.SourceTimeout)
	defer timer.Stop()
	select {
	case <-r.copyRead:
	case <-timer.C():
	}
}

// applyCopy applies the copy, if there is one and it was not applied yet. If complete
// is set, the copy stands in for the source. Otherwise the source delivers right
// after it, and the engine compares that with the copy as if the process had not
// restarted: a document that is broken now keeps its last good version, and a change
// that removes too many rules is held back. The caller holds mu.
func (r *run) applyCopy(complete bool) {
	if r.copy == nil {
		return
	}
	copied := *r.copy
	copied.Complete = complete
	r.copy = nil
	r.apply(copied)
}
