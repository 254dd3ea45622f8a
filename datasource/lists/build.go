package lists

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"hash"
	"io"
	"log/slog"
	"time"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/list"
)

// errEmpty is the mistake of a text without a byte.
var errEmpty = errors.New("lists: the text is empty, it may be being written: a list without entries has a comment")

// build loads one due document after the other until ctx ends.
func (w *Watch) build(ctx context.Context) {
	for {
		d, wanted, wait := w.next()
		if d != nil {
			w.load(ctx, d, wanted)
			if ctx.Err() != nil {
				return
			}
			continue
		}
		timer := w.config.Clock.NewTimer(wait)
		select {
		case <-ctx.Done():
			timer.Stop()
			return
		case <-w.wake:
		case <-timer.C():
		}
		timer.Stop()
	}
}

// next returns the document that has been due for longest and the version that it is
// to have, or how long to wait for one.
func (w *Watch) next() (due *document, wanted Digest, wait time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, d := range w.sorted() {
		if d.pending && (due == nil || d.due < due.due) {
			due = d
		}
	}
	if due == nil {
		return nil, Digest{}, time.Hour
	}
	if wait = due.due.Sub(w.config.Clock.Now()); wait > 0 {
		return nil, Digest{}, wait
	}
	return due, due.wanted, 0
}

// load loads the present version of a document.
func (w *Watch) load(ctx context.Context, d *document, wanted Digest) {
	begun := w.config.Clock.Now()
	built, err := w.open(ctx, Document{d.name, wanted})
	if ctx.Err() != nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	defer w.notify()
	superseded := d.wanted != wanted
	switch {
	case w.documents[d.name] != d: // removed meanwhile
	case superseded && !d.pending: // taken back, or replaced by what cannot be read
	case err == nil:
		w.put(d, built, begun)
		d.pending = superseded && d.wanted != built.digest
	case superseded:
	default:
		w.reject(d, err)
		var mistake *mistakeError
		if d.pending = !errors.As(err, &mistake); d.pending {
			d.due = w.config.Clock.Now().Add(d.backoff.Next())
		}
	}
}

// built is a version of a list.
type built struct {
	list   *list.List
	digest Digest
	size   int64
}

// mistakeError is an error that stays until the text changes.
type mistakeError struct{ error }

func (e *mistakeError) Unwrap() error { return e.error }

// open opens and parses the text of a document. Only of the right text mistakes are
// final.
func (w *Watch) open(ctx context.Context, document Document) (built, error) {
	text, err := w.config.Open(ctx, document)
	if err != nil {
		return built{}, err
	}
	defer text.Close()
	counted := &reader{ctx: ctx, from: text, sum: sha256.New()}
	parsed, digest, err := counted.parse(list.Options{})
	var mistake *mistakeError
	if (err == nil || errors.As(err, &mistake)) && digest != text.Digest {
		return built{}, fmt.Errorf("lists: the text has the SHA-256 %.8x…, not %.8x…: it was changed while it was read, or is damaged",
			digest, text.Digest)
	}
	return built{parsed, digest, counted.size}, err
}

// Parse reads the text of a list to its end and returns the list and the digest of the
// text. It is [list.Parse], but for an empty text, which is a mistake.
func Parse(ctx context.Context, text io.Reader, opts list.Options) (*list.List, Digest, error) {
	return (&reader{ctx: ctx, from: text, sum: sha256.New()}).parse(opts)
}

// put puts a version in force.
func (w *Watch) put(d *document, b built, begun clock.Instant) {
	now := w.config.Clock.Now()
	first := w.config.Registry.Put(d.list, w.provider(d), list.Version{List: b.list, Digest: b.digest, At: now})
	d.loaded, d.hasVersion = b.digest, true
	w.accept(d)
	if !first {
		w.config.Logger.Warn("penstock: list waits, another of its name comes first: the code, then sources and documents by name",
			slog.String("list", d.list), slog.String("source", w.config.Source.Name()), slog.String("document", d.name))
		return
	}
	w.config.Logger.Info("penstock: list in force", slog.String("list", d.list),
		slog.String("source", w.config.Source.Name()), slog.String("document", d.name),
		slog.Int("entries", b.list.Len()), slog.Int64("bytes", b.size),
		slog.String("sha256", fmt.Sprintf("%x", b.digest[:8])), slog.Duration("took", now.Sub(begun)))
}

// reader reads a text until ctx ends. It counts the bytes, computes their digest and keeps
// the error that ended it.
type reader struct {
	ctx  context.Context //nolint:containedctx // it lives as long as one call
	from io.Reader
	sum  hash.Hash
	size int64
	err  error
}

// Read implements [io.Reader].
func (r *reader) Read(p []byte) (int, error) {
	if r.err == nil {
		r.err = r.ctx.Err()
	}
	if r.err != nil {
		return 0, r.err
	}
	n, err := r.from.Read(p)
	r.sum.Write(p[:n])
	r.size += int64(n)
	r.err = err
	return n, err
}

// parse parses the text and reads it to its end even if it has mistakes, which are a
// [mistakeError].
func (r *reader) parse(opts list.Options) (*list.List, Digest, error) {
	parsed, mistakes := list.Parse(r.ctx, r, opts)
	if r.err == nil {
		_, _ = io.Copy(io.Discard, io.LimitReader(r, list.MaxSize))
	}
	var digest Digest
	r.sum.Sum(digest[:0])
	switch {
	case r.err != nil && !errors.Is(r.err, io.EOF):
		return nil, digest, r.err
	case r.ctx.Err() != nil:
		return nil, digest, r.ctx.Err()
	case r.size == 0:
		return nil, digest, &mistakeError{errEmpty}
	case mistakes != nil:
		return nil, digest, &mistakeError{mistakes}
	default:
		return parsed, digest, nil
	}
}
