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
	w.awaitCopies()
	for {
		next, wait := w.next()
		if next.document != nil {
			w.do(ctx, next)
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

// job is what is to be done next.
type job struct {
	*document
	wanted    Digest
	revision  int64
	confirmed bool
	copy      *storedCopy // to be read in place of the source; nil if none
	keepOnly  bool        // the version is in force, only its copy is missing
}

// next returns the job that has been due for longest, or how long to wait for one. Copies
// come first.
func (w *Watch) next() (next job, wait time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	var due clock.Instant
	for _, d := range w.sorted() {
		of := job{document: d, wanted: d.wanted, revision: d.revision, confirmed: d.confirmed, copy: d.copy}
		at := d.due
		switch {
		case d.copy != nil:
			return of, 0
		case d.pending:
		case d.copyDue != 0:
			at, of.keepOnly = d.copyDue, true
		default:
			continue
		}
		if next.document == nil || at < due {
			next, due = of, at
		}
	}
	if next.document == nil {
		return job{}, time.Hour
	}
	if wait = due.Sub(w.config.Clock.Now()); wait > 0 {
		return job{}, wait
	}
	return next, 0
}

// do does a job.
func (w *Watch) do(ctx context.Context, next job) {
	switch {
	case next.copy != nil:
		w.loadCopy(ctx, next.document, *next.copy)
	case next.keepOnly:
		w.keepAgain(ctx, next)
	default:
		w.load(ctx, next)
	}
}

// load loads the present version of a document.
func (w *Watch) load(ctx context.Context, next job) {
	d, wanted := next.document, next.wanted
	begun := w.config.Clock.Now()
	built, draft, err := w.open(ctx, next)
	if ctx.Err() != nil {
		draft.discard()
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	defer w.notify()
	superseded := d.wanted != wanted
	put := false
	switch {
	case w.documents[d.name] != d: // removed meanwhile
	case superseded && !d.pending: // taken back, or replaced by what cannot be read
	case err == nil:
		put = true
		d.draft.discard()
		d.draft = draft
		w.put(d, built, begun, next)
		d.pending = superseded && d.wanted != built.digest
	case superseded:
	default:
		w.reject(d, err)
		var mistake *mistakeError
		if d.pending = !errors.As(err, &mistake); d.pending {
			d.due = w.config.Clock.Now().Add(d.backoff.Next())
		}
	}
	if !put {
		draft.discard()
	}
}

// keepAgain reads a list that is in force to write its copy, which has failed before.
func (w *Watch) keepAgain(ctx context.Context, next job) {
	d := next.document
	built, draft, err := w.open(ctx, next)
	w.mu.Lock()
	defer w.mu.Unlock()
	defer w.notify()
	d.recopy(true, w.config.Clock.Now()) // until the copy is in its place
	if err != nil || w.documents[d.name] != d || d.pending || built.digest != d.loaded || ctx.Err() != nil {
		draft.discard()
		return
	}
	d.draft.discard()
	d.draft = draft
}

// loadCopy puts the copy of a list in force.
func (w *Watch) loadCopy(ctx context.Context, d *document, from storedCopy) {
	text, err := from.open()
	var b built
	if err == nil {
		b, err = parseText(ctx, text, nil)
		_ = text.Close()
	}
	if ctx.Err() != nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	defer w.notify()
	d.copy = nil
	if err != nil {
		w.copies.ignore(from.path, errors.New(logText(err)))
		if !d.present {
			delete(w.documents, d.name)
		}
		if d.present && !d.pending && d.err == nil && !d.hasVersion {
			d.pending = true
		}
		return
	}
	now := w.config.Clock.Now()
	w.config.Registry.Put(d.list, w.provider(d), list.Version{List: b.list, Digest: b.digest, At: now, CopiedAt: from.at})
	d.loaded, d.hasVersion, w.copied = b.digest, true, true
	w.config.Logger.Warn("penstock: list in force as its last good copy has it", slog.String("list", d.list),
		slog.String("source", w.config.Source.Name()), slog.String("document", d.name),
		slog.Int("entries", b.list.Len()), slog.String("age", (-w.config.Clock.Until(from.at.Time())).String()))
	switch {
	case d.gone:
		w.withdraw(d, d.goneConfirmed)
	case d.present && d.wanted == d.loaded:
		d.pending = false
		w.accept(d)
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

// open opens and parses the text of a document. The copy that is made meanwhile is nil if
// the text is not right. Code of the program reads the text: one that does not return has failed
// to read it, and the goroutine that builds lists goes on.
func (w *Watch) open(ctx context.Context, next job) (b built, copied *draft, err error) {
	err = errEndedGoroutine // unless it returns
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer func() {
			if value := recover(); value != nil {
				err = w.panicked(value)
			}
		}()
		b, copied, err = w.openText(ctx, next)
	}()
	<-done
	return b, copied, err
}

func (w *Watch) openText(ctx context.Context, next job) (b built, copied *draft, err error) {
	text, err := w.config.Open(ctx, Document{next.name, next.wanted})
	if err != nil {
		return built{}, nil, err
	}
	defer text.Close()
	if w.copies != nil {
		copied = w.copies.begin(next.document, next.revision, text.Digest)
	}
	isRight := false
	defer func() {
		if !isRight {
			copied.discard()
			copied = nil
		}
	}()
	b, err = parseText(ctx, text, copied)
	isRight = err == nil
	return b, copied, err
}

// parseText parses a text. Only of the right text mistakes are final.
func parseText(ctx context.Context, text Text, copied *draft) (built, error) {
	var from io.Reader = text
	if copied != nil {
		from = io.TeeReader(text, copied)
	}
	counted := &reader{ctx: ctx, from: from, sum: sha256.New()}
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
func (w *Watch) put(d *document, b built, begun clock.Instant, version job) {
	now, from := w.config.Clock.Now(), w.provider(d)
	before, _ := w.status(d)
	first := w.config.Registry.Put(d.list, from, list.Version{List: b.list, Digest: b.digest, At: now})
	d.loaded, d.hasVersion = b.digest, true
	w.accept(d)
	if present, _ := w.status(d); present.HeldBack != nil {
		isConfirmed := version.confirmed && version.wanted == b.digest
		if !isConfirmed && !w.confirms(version.revision) {
			w.logHeldBack(d, present.HeldBack)
			return
		}
		_ = w.config.Registry.Confirm(from) // it is held back
		present, _ = w.status(d)
		first = present.InForce
	}
	if !first {
		w.config.Logger.Warn("penstock: list waits, another of its name comes first: the code, then sources and documents by name",
			slog.String("list", d.list), slog.String("source", w.config.Source.Name()), slog.String("document", d.name))
		return
	}
	level, message := slog.LevelInfo, "penstock: list in force"
	if 2*b.list.Len() < before.Entries {
		level, message = slog.LevelWarn, "penstock: list in force, most of its entries are gone"
	}
	w.config.Logger.LogAttrs(context.Background(), level, message, slog.String("list", d.list),
		slog.String("source", w.config.Source.Name()), slog.String("document", d.name),
		slog.Int("entries", b.list.Len()), slog.Int("before", before.Entries), slog.Int64("bytes", b.size),
		slog.String("sha256", fmt.Sprintf("%x", b.digest[:8])), slog.Duration("took", now.Sub(begun)))
}

func (w *Watch) logHeldBack(d *document, why *list.HeldBackError) {
	w.config.Logger.Error("penstock: change of a list held back, the one in force stays", slog.String("list", d.list),
		slog.String("source", w.config.Source.Name()), slog.String("document", d.name), slog.Any("error", why))
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
