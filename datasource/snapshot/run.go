package snapshot

import (
	"context"
	"crypto/sha256"
	"fmt"
	"slices"
	"strings"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/datasource/retry"
)

// Snapshot is all that a store holds at one time.
type Snapshot struct {
	// Documents are all documents, each name once, in any order. Those that are not
	// among them are gone.
	Documents []core.Document

	// Revision is that of the store as a whole, 0 where it has none.
	Revision int64
}

// Next returns the state of a store. The first call returns as soon as the state is
// read. Later calls may wait until the state may have changed, and may return a state
// that has not. An error says that the store cannot be read at present; the call after
// it reads anew. It returns when ctx ends. Calls are not concurrent.
type Next func(ctx context.Context) (Snapshot, error)

// Run calls next until ctx ends, and delivers to the sink what is new in each snapshot.
// It reports errors, with pauses in between, and returns ctx.Err(). Between two
// snapshots it keeps the checksums of the documents and not the documents.
func Run(ctx context.Context, sink core.Sink, opts Options, next Next) error {
	opts, err := opts.Complete("snapshot")
	if err != nil {
		return err
	}
	r := &run{sink: sink, opts: opts, backoff: retry.Backoff{Min: opts.MinBackoff, Max: opts.MaxBackoff}}
	for ctx.Err() == nil {
		state, err := next(ctx)
		if ctx.Err() != nil {
			break
		}
		if err == nil {
			err = r.deliver(state)
		}
		if err != nil {
			sink.Disconnected(r.stableError(err))
			r.pause(ctx)
		}
	}
	return ctx.Err()
}

// run is the state of one call of [Run]. Only its goroutine uses it.
type run struct {
	sink    core.Sink
	opts    Options
	backoff retry.Backoff

	delivered   map[string]version // what the sink has received; nil before the first delivery
	connectedAt clock.Instant      // when the store was last read after a failure; 0 while it cannot be read
	lastErr     error              // as reported last; nil while connected
}

// version is what there is to compare of a document.
type version struct {
	digest            [sha256.Size]byte
	revision, created int64
	fault             string // the text of the error, if the document has one
}

func versionOf(d core.Document) version {
	v := version{digest: sha256.Sum256(d.Data), revision: d.Revision, created: d.Created}
	if d.Err != nil {
		v.fault = d.Err.Error()
	}
	return v
}

// deliver applies what is new, or returns why nothing of it may be applied.
func (r *run) deliver(state Snapshot) error {
	if n := len(state.Documents); n > r.opts.MaxDocuments {
		return fmt.Errorf("%d documents are more than Options.MaxDocuments allows, which is %d: none was applied",
			n, r.opts.MaxDocuments)
	}
	change := core.Change{Complete: r.delivered == nil, Revision: state.Revision}
	present := make(map[string]version, len(state.Documents))
	for _, d := range state.Documents {
		v := versionOf(d)
		if before, known := r.delivered[d.Name]; !known || before != v {
			change.Documents = append(change.Documents, d)
		}
		present[d.Name] = v
	}
	for name := range r.delivered {
		if _, there := present[name]; !there {
			change.Removed = append(change.Removed, name)
		}
	}
	slices.SortFunc(change.Documents, func(a, b core.Document) int { return strings.Compare(a.Name, b.Name) })
	slices.Sort(change.Removed)
	r.delivered = present
	if change.Complete || len(change.Documents) > 0 || len(change.Removed) > 0 || r.connectedAt == 0 {
		r.sink.Apply(change)
	}
	if r.connectedAt == 0 {
		r.connectedAt, r.lastErr = max(1, r.opts.Clock.Now()), nil
	}
	return nil
}

// pause waits after a failure. Only a connection that lasted for MaxBackoff makes the
// pauses short again: one that is lost right after each read would otherwise cause many
// reads a second.
func (r *run) pause(ctx context.Context) {
	if r.connectedAt != 0 && r.opts.Clock.Now().Sub(r.connectedAt) >= r.opts.MaxBackoff {
		r.backoff.Reset()
	}
	r.connectedAt = 0
	retry.Sleep(ctx, r.opts.Clock, r.backoff.Next())
}

// stableError returns the error to report: the same one as before if only digits differ,
// so that a log of new errors does not repeat for every port.
func (r *run) stableError(err error) error {
	if !retry.Alike(r.lastErr, err) {
		r.lastErr = err
	}
	return r.lastErr
}
