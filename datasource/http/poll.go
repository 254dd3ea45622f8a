package httpsource

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"path"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/datasource/retry"
	"github.com/penstock-go/penstock/rules"
)

const (
	// parallelRequests is how many documents of an index are read at once.
	parallelRequests = 8

	// maxUnanswered is how many requests of a poll may get no answer. With more of them
	// the server counts as unreachable: otherwise each document would wait for a timeout.
	maxUnanswered = 8

	// reportedFailures is the number of failures in a row after which a document is
	// reported as faulty. An index may list a document a moment before it is there.
	reportedFailures = 2
)

// follower is the state of one call of [Source.Run]. Only its goroutine uses it, but for
// get, which the readers of documents call too.
type follower struct {
	*source
	sink      core.Sink
	transport http.RoundTripper
	own       *http.Transport // the transport, if the caller gave none

	index     *index               // read last; nil of a source of one document
	documents map[string]*document // by name
	delivered bool                 // the first change was delivered
	connected bool                 // something was delivered since the last failure
	lost      error                // reported last, since something was delivered; nil if nothing was
}

// document is what is known of a document.
type document struct {
	version   *version // delivered last; nil if none was
	failures  int      // in a row, of the last polls
	delivered bool     // the sink knows the document
	fault     error    // that the sink knows; nil if the version is the last that was delivered
}

// result is what a poll has found of one document.
type result struct {
	name   string
	answer answer
	err    error
}

func newFollower(s *source, sink core.Sink) *follower {
	f := &follower{source: s, sink: sink, documents: map[string]*document{}, transport: s.newTransport(false)}
	if s.opts.Transport == nil {
		f.own, _ = f.transport.(*http.Transport)
	}
	return f
}

// closeIdle closes connections, so that the next request makes a new one.
func (f *follower) closeIdle() {
	if f.own != nil {
		f.own.CloseIdleConnections()
	}
}

// disconnected reports a failed poll, with the same error as before if only digits differ,
// so that a log of new errors does not repeat for every port. The next poll uses new
// connections: one that is dead would otherwise be used until the operating system gives up.
func (f *follower) disconnected(err error) {
	f.connected = false
	f.closeIdle()
	if !retry.Alike(f.lost, err) {
		f.lost = err
	}
	f.sink.Disconnected(f.lost)
}

// poll reads what there is once, and delivers what has changed.
func (f *follower) poll(ctx context.Context) error {
	var results []result
	var err error
	if f.isIndex {
		results, err = f.pollIndex(ctx)
	} else {
		results, err = f.pollDocument(ctx)
	}
	if err != nil {
		return err
	}
	return f.deliver(results)
}

// pollDocument reads the only document. It has no results if the document is gone.
func (f *follower) pollDocument(ctx context.Context) ([]result, error) {
	name := path.Base(f.url.Path)
	if name == "." || name == "/" {
		name = "rules"
	}
	a, err := f.get(ctx, f.url, f.known(name), rules.MaxDocumentSize)
	content := (*contentError)(nil)
	switch {
	case errors.Is(err, errGone):
		return nil, nil
	case err != nil && !errors.As(err, &content):
		return nil, err
	}
	return []result{{name: name, answer: a, err: err}}, nil
}

// known returns the version of a document that need not be read again; nil if there is
// none. A document that was reported as faulty is read and delivered again.
func (f *follower) known(name string) *version {
	if d := f.documents[name]; d != nil && d.fault == nil {
		return d.version
	}
	return nil
}

// pollIndex reads the index and its documents.
func (f *follower) pollIndex(ctx context.Context) ([]result, error) {
	if err := f.readIndex(ctx); err != nil {
		return nil, err
	}
	if f.lists != nil {
		return f.digests()
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	results := make([]result, len(f.index.entries))
	for i, e := range f.index.entries {
		results[i] = result{name: e.name, err: errNotReturned} // until it is read
	}
	var readers sync.WaitGroup
	var next, unanswered atomic.Int32
	for range min(parallelRequests, len(results)) {
		readers.Go(func() {
			for i := next.Add(1) - 1; int(i) < len(results) && ctx.Err() == nil; i = next.Add(1) - 1 {
				results[i] = f.readEntry(ctx, f.index.entries[i])
				if err := results[i].err; errors.Is(err, errUnanswered) && unanswered.Add(1) > maxUnanswered {
					cancel(err)
				}
			}
		})
	}
	readers.Wait()
	return results, context.Cause(ctx)
}

// errNotReturned is the error of documents that were not read, since a function of the options, or the transport,
// has ended the goroutines that were to read them.
var errNotReturned = errors.New("httpsource: it was not read: a function of the options has ended its goroutine")

// readEntry reads a document of the index, unless the index says that it has not changed.
func (f *follower) readEntry(ctx context.Context, e entry) (r result) {
	defer func() {
		if value := recover(); value != nil { // in a goroutine that would end the program
			r = result{name: e.name, err: fmt.Errorf("httpsource: reading it has panicked: %v", value)}
		}
	}()
	r = result{name: e.name}
	known := f.known(e.name)
	if known != nil && bytes.Equal(e.digest, known.digest[:]) {
		r.answer = answer{unchanged: true, version: *known}
		return r
	}
	r.answer, r.err = f.get(ctx, locate(f.index.from, e.name), known, rules.MaxDocumentSize)
	if r.err == nil && e.digest != nil && !bytes.Equal(e.digest, r.answer.version.digest[:]) {
		r.err = fmt.Errorf("httpsource: GET %s: it does not have the SHA-256 that is in the index", display(locate(f.index.from, e.name)))
	}
	return r
}

// deliver delivers what has changed. It returns an error, and delivers nothing, if a
// document of the first change could not be read but may be read soon.
func (f *follower) deliver(results []result) error {
	if err := f.countFailures(results); err != nil && !f.delivered {
		return err
	}
	change := core.Change{Complete: !f.delivered}
	present := make(map[string]bool, len(results))
	for _, r := range results {
		present[r.name] = true
		if found, changed := f.documents[r.name].take(r); changed {
			change.Documents = append(change.Documents, found)
		}
	}
	for name, d := range f.documents {
		if present[name] {
			continue
		}
		delete(f.documents, name)
		if d.delivered {
			change.Removed = append(change.Removed, name)
		}
	}
	f.apply(change)
	return nil
}

// countFailures counts in how many polls in a row each document could not be read. It
// returns the error of one that is not to be reported yet, if there is one.
func (f *follower) countFailures(results []result) (early error) {
	for _, r := range results {
		d := f.documents[r.name]
		if d == nil {
			d = &document{}
			f.documents[r.name] = d
		}
		switch content := (*contentError)(nil); {
		case r.err == nil:
			d.failures = 0
		case errors.As(r.err, &content):
			d.failures = reportedFailures
		default:
			if d.failures++; d.failures < reportedFailures {
				early = cmp.Or(early, r.err)
			}
		}
	}
	return early
}

// take takes over what a poll has found, and returns what the sink does not know yet.
func (d *document) take(r result) (found core.Document, changed bool) {
	if r.err != nil {
		if d.failures < reportedFailures || retry.Alike(d.fault, r.err) {
			return core.Document{}, false
		}
		d.delivered, d.fault = true, r.err
		return core.Document{Name: r.name, Err: r.err}, true
	}
	d.version, d.delivered, d.fault = &r.answer.version, true, nil
	if r.answer.unchanged {
		return core.Document{}, false
	}
	return core.Document{Name: r.name, Data: r.answer.data}, true
}

// apply delivers a change, if it has something or ends a disconnection.
func (f *follower) apply(change core.Change) {
	slices.SortFunc(change.Documents, func(a, b core.Document) int { return cmp.Compare(a.Name, b.Name) })
	slices.Sort(change.Removed)
	if change.Complete || len(change.Documents) > 0 || len(change.Removed) > 0 || !f.connected {
		f.sink.Apply(change)
	}
	f.delivered, f.connected, f.lost = true, true, nil
}
