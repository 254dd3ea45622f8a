package lastgood

import (
	"context"
	"errors"
	"io/fs"
	"log/slog"
)

// recall reads the copy and goes by it if the source does not deliver in time.
func (r *run) recall(ctx context.Context) {
	if r.engine.Status().Ready {
		close(r.looked)
		return
	}
	timer := r.opts.Clock.NewTimer(r.opts.Patience)
	defer timer.Stop()
	r.look()
	select {
	case <-timer.C():
	case <-r.spoken:
	case <-r.ended:
	case <-ctx.Done():
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if ctx.Err() == nil && !r.delivered {
		r.applyCopy(true)
	}
}

// look reads the copy and reports what is wrong with it.
func (r *run) look() {
	defer close(r.looked)
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
		r.before = &change
	}
}

// awaitCopy returns when the copy has been read, or at the end of the patience: a
// disk that hangs keeps no rules away.
func (r *run) awaitCopy() {
	select {
	case <-r.looked:
		return
	default:
	}
	timer := r.opts.Clock.NewTimer(r.opts.Patience)
	defer timer.Stop()
	select {
	case <-r.looked:
	case <-timer.C():
	}
}

// applyCopy applies the copy, if there is one that had not its turn yet. Complete
// says that it has to do. Otherwise it is for the engine to hold against it what the
// source delivers right after: a document that is broken now keeps its last good
// version, and what takes out too many rules is held back, as if the process had not
// been started anew. The caller holds mu.
func (r *run) applyCopy(complete bool) {
	if r.before == nil {
		return
	}
	before := *r.before
	before.Complete = complete
	r.before = nil
	r.apply(before)
}
