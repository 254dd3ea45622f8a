package lastgood

import (
	"context"
	"slices"
	"sync"

	"github.com/penstock-go/penstock/core"
)

// run is one run of a source: the sink of the source that is kept, which hands
// everything on to that of the engine, and what keeps the copy beside it.
type run struct {
	*Source
	engine core.Sink

	spoken  chan struct{} // closed when the source has first said anything
	looked  chan struct{} // closed when the copy has been read, or is not needed
	changed chan struct{} // holds one when there may be something to save
	ended   chan struct{} // closed when the source has returned

	// mu makes calls of the engine's Apply and Disconnected follow one another,
	// and guards the holdings and what follows.
	mu        sync.Mutex
	spoke     bool
	delivered bool         // the source has
	before    *core.Change // the copy, until it is applied; nil if none can be
}

func newRun(source *Source, sink core.Sink) *run {
	return &run{
		Source: source, engine: sink,
		spoken: make(chan struct{}), looked: make(chan struct{}),
		changed: make(chan struct{}, 1), ended: make(chan struct{}),
	}
}

// keep goes by the copy if it has to, and saves what is in force until the
// source has returned.
func (r *run) keep(ctx context.Context) {
	r.recall(ctx)
	(&saver{run: r}).work()
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
	r.speak()
}

// Disconnected implements [core.Sink].
func (r *run) Disconnected(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.engine.Disconnected(err)
	r.speak()
}

// Status implements [core.Sink].
func (r *run) Status() core.SourceStatus { return r.engine.Status() }

// Document implements [core.Sink].
func (r *run) Document(name string) (core.DocumentStatus, bool) { return r.engine.Document(name) }

// apply hands a change on. The caller holds mu.
func (r *run) apply(change core.Change) {
	r.holdings.take(change)
	r.engine.Apply(change)
	r.settle(change)
	select {
	case r.changed <- struct{}{}:
	default: // the saver is about to look
	}
}

// settle settles what the change has touched, which is now in force or not. To ask
// for the status of everything takes the longer the more there is. The caller
// holds mu.
func (r *run) settle(change core.Change) {
	if change.Complete {
		r.holdings.settle(r.engine.Status())
		return
	}
	names := slices.Clone(change.Removed)
	for _, d := range change.Documents {
		names = append(names, d.Name)
	}
	for _, name := range names {
		status, _ := r.engine.Document(name)
		r.holdings.settleDocument(name, status.Digest)
	}
}

// speak notes that the source has said something. The caller holds mu.
func (r *run) speak() {
	if !r.spoke {
		r.spoke = true
		close(r.spoken)
	}
}

// present returns what of the source is in force and is to be saved; nil if that
// is nothing, because it was not read yet or, unless that is wanted too, is a copy
// itself. Unsettled says that it may change without a word of the source.
func (r *run) present(copied bool) (now *contents, unsettled bool, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	status := r.engine.Status()
	unsettled = r.holdings.settle(status)
	if !status.Ready || status.CopiedAt != 0 && !copied {
		return nil, unsettled, nil
	}
	documents, err := r.holdings.inForce(status)
	if err != nil {
		return nil, unsettled, err
	}
	return &contents{
		app: r.opts.App, source: r.Name(), revision: status.Revision,
		at: status.KnownUntil(r.opts.Clock.Now()), documents: documents,
	}, unsettled, nil
}
