package httpsource

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"path"
	"strings"
	"sync/atomic"
	"time"

	"github.com/penstock-go/penstock/datasource/lists"
	"github.com/penstock-go/penstock/list"
)

// maxListRetry limits the pause before a list is read again, as a multiple of
// [Options.MaxBackoff].
const maxListRetry = 6

// WatchLists keeps the lists of an index in the registry, which is that of an engine
// (Engine.Lists), until ctx ends or the watch is closed.
//
//	lists, err := httpsource.WatchLists(ctx, engine.Lists(), "https://config.example.com/lists/index.json", httpsource.Options{})
//
// The index is the one of [NewIndex], and has the SHA-256 of every list. A list is named
// like its document without the ending: scrapers.txt is the list "scrapers". It is read
// when its SHA-256 changes, in the background, and put in force as a whole. A list with
// mistakes, or without its SHA-256, is logged and its last good version stays. A list is
// removed when the index no longer has it. [Options.RequestTimeout] is the longest that
// the server may pause within a list.
//
// Watch.Ready waits for the lists at the start of a program. lists.KeepCopies keeps copies for
// a start while the source is away.
func WatchLists(ctx context.Context, registry *list.Registry, address string, opts Options, more ...lists.Option) (*lists.Watch, error) {
	source, err := newSource(address, true, opts)
	if err != nil {
		return nil, err
	}
	source.lists = &listReader{source: source, transport: source.newTransport(true)}
	return lists.Start(ctx, lists.Config{
		Registry: registry,
		Source:   source,
		Open:     source.lists.open,
		ListName: func(document string) string { return strings.TrimSuffix(document, path.Ext(document)) },
		MinRetry: source.opts.MinBackoff,
		MaxRetry: maxListRetry * source.opts.MaxBackoff,
		Logger:   source.opts.Logger,
		Clock:    source.opts.Clock,
	}.With(more...))
}

// listReader reads the texts of lists.
type listReader struct {
	*source
	transport http.RoundTripper
	base      atomic.Pointer[url.URL] // of the index; set before the first list is known
}

// digests returns the SHA-256 of each list instead of its text.
func (f *follower) digests() ([]result, error) {
	results := make([]result, 0, len(f.index.entries))
	for _, e := range f.index.entries {
		if e.digest == nil {
			return nil, fmt.Errorf("httpsource: the index %s: %q has no sha256: add it, lists are read when it changes",
				display(f.url), e.name)
		}
		v := version{digest: [len(version{}.digest)]byte(e.digest)}
		known := f.known(e.name)
		results = append(results, result{
			name: e.name, answer: answer{unchanged: known != nil && known.digest == v.digest, data: e.digest, version: v},
		})
	}
	f.lists.base.Store(f.index.from)
	return results, nil
}

// open opens the text of a list.
func (l *listReader) open(ctx context.Context, document lists.Document) (lists.Text, error) {
	target := locate(l.base.Load(), document.Name)
	ctx, cancel := context.WithCancelCause(ctx)
	stalled := time.AfterFunc(l.opts.RequestTimeout, func() {
		cancel(fmt.Errorf("%w within %v", errUnanswered, l.opts.RequestTimeout))
	})
	text := &listText{ctx: ctx, timeout: l.opts.RequestTimeout, stalled: stalled, end: func() { cancel(nil) }}
	response, _, err := l.send(ctx, l.transport, target, nil) //nolint:bodyclose // the text that is returned closes it
	if err == nil {
		text.body = response.Body
		err = check(response)
	}
	if err != nil {
		err = text.explain(err)
		_ = text.Close()
		return lists.Text{}, fmt.Errorf("httpsource: GET %s: %w", display(target), err)
	}
	return lists.Text{ReadCloser: text, Digest: document.Digest}, nil
}

// check returns an error if an answer is not a text.
func check(response *http.Response) error {
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("%d %s", response.StatusCode, http.StatusText(response.StatusCode))
	}
	return checkEncoding(response)
}

// listText is the text of a list. Reading fails when the server pauses for too long.
type listText struct {
	ctx     context.Context
	body    io.ReadCloser // nil if there is no answer
	timeout time.Duration
	stalled *time.Timer
	end     func()
}

func (l *listText) Read(data []byte) (int, error) {
	n, err := l.body.Read(data)
	l.stalled.Reset(l.timeout)
	return n, l.explain(err)
}

// explain returns the reason of an error, if the server has paused for too long.
func (l *listText) explain(err error) error {
	if cause := context.Cause(l.ctx); err != nil && errors.Is(cause, errUnanswered) {
		return cause
	}
	return err
}

func (l *listText) Close() error {
	l.stalled.Stop()
	l.end()
	if l.body == nil {
		return nil
	}
	return l.body.Close()
}
