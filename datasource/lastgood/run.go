package lastgood

import (
	"context"
	"slices"
	"sync"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/core"
)

// run is the state of one call of [Source.Run]. It is the sink of the wrapped source
// and forwards everything to the sink of the engine.
type run struct {
	*keeper
	engine core.Sink

	seen     chan struct{} // closed when the source has first delivered or failed
	copyRead chan struct{} // closed when the copy has been read, or is not needed
	changed  chan struct{} // signals that there may be something to save
	ended    chan struct{} // closed when the source has returned

	// mu serializes the calls of the engine's Apply and Disconnected, and guards
	// the versions and the fields below.
	mu        sync.Mutex
	isSeen    bool         // seen is closed
	delivered bool         // the source has delivered
	copy      *core.Change // the copy until it is applied; nil without a usable one
}

func newRun(k *keeper, sink core.Sink) *run {
	return &run{
		keeper: k, engine: sink,
		seen: make(chan struct{}), copyRead: make(chan struct{}),
		changed: make(chan struct{}, 1), ended: make(chan struct{}),
	}
}

// maintainCopy applies the copy if necessary, and saves the documents in force until the
// source has returned.
func (r *run) maintainCopy(ctx context.Context) {
	r.applyCopyIfNeeded(ctx)
	(&saver{run: r}).loop()
}

// Apply implements [core.Sink].
func (r *run) Apply(change core.Change) {
	r.awaitCopy()
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.delivered {
		r.applyCopy(false)
	}
	r.delivered = true
	r.apply(change)
	r.markSeen()
}

// Disconnected implements [core.Sink].
func (r *run) Disconnected(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.engine.Disconnected(err)
	r.markSeen()
}

// Status implements [core.Sink].
func (r *run) Status() core.SourceStatus { return r.engine.Status() }

// Document implements [core.Sink].
func (r *run) Document(name string) (core.DocumentStatus, bool) { return r.engine.Document(name) }

// apply forwards a change to the engine. The caller holds mu.
func (r *run) apply(change core.Change) {
	r.versions.add(change)
	r.engine.Apply(change)
	r.pruneVersions(change)
	select {
	case r.changed <- struct{}{}:
	default: // a notification is pending
	}
}

// pruneVersions drops old versions of the documents in the change. It asks the engine only
// for the status of these documents unless the change is complete, because the
// status of all is costly. The caller holds mu.
func (r *run) pruneVersions(change core.Change) {
	if change.Complete {
		r.versions.prune(r.engine.Status())
		return
	}
	names := slices.Clone(change.Removed)
	for _, d := range change.Documents {
		names = append(names, d.Name)
	}
	for _, name := range names {
		status, _ := r.engine.Document(name)
		r.versions.pruneDocument(name, status.Digest)
	}
}

// markSeen notes that the source has delivered or failed. The caller holds mu.
func (r *run) markSeen() {
	if !r.isSeen {
		r.isSeen = true
		close(r.seen)
	}
}

// inForce returns the documents of the source that are in force, for a save. It
// returns nil if the source was not read yet, or if the engine runs on the copy and
// copied is false. differs says that they may change without a change of the
// source.
func (r *run) inForce(copied bool) (now *contents, differs bool, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	status := r.engine.Status()
	differs = r.versions.prune(status)
	if !status.Ready || status.CopiedAt != 0 && !copied {
		return nil, differs, nil
	}
	documents, err := r.versions.inForce(status)
	if err != nil {
		return nil, differs, err
	}
	return &contents{
		app: r.opts.App, source: r.Name(), revision: status.Revision,
		at: r.knownUntil(status), documents: documents,
	}, differs, nil
}

// knownUntil returns until when it is known what the source holds, by the wall clock: another process, on
// another day, reads it.
func (r *run) knownUntil(status core.SourceStatus) clock.Instant {
	if !status.Connected && status.CopiedAt != 0 {
		return status.CopiedAt // by the wall clock when it was written
	}
	return clock.Instant(clock.TimeOf(r.opts.Clock, status.KnownUntil(r.opts.Clock.Now())).UnixNano())
}
