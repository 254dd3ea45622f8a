package lists

import (
	"fmt"
	"log/slog"

	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/datasource/retry"
	"github.com/penstock-go/penstock/list"
)

// sink receives what the source delivers.
type sink struct{ *Watch }

var _ core.Sink = sink{}

// Apply implements [core.Sink].
func (s sink) Apply(change core.Change) {
	s.awaitCopies()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.confirm(change.ConfirmedAt)
	if change.Complete {
		s.retain(change.Documents)
		s.read = true
	}
	if s.err != nil {
		s.config.Logger.Info("penstock: source of lists is connected again", slog.String("source", s.config.Source.Name()))
	}
	s.setConnected(true, nil)
	for _, document := range change.Documents {
		s.update(document)
	}
	for _, name := range change.Removed {
		s.remove(name, s.confirms(change.Revision))
	}
	s.notify()
}

// confirm puts in force what is held back, if somebody has confirmed that since.
func (w *Watch) confirm(at int64) {
	if at <= w.confirmedAt {
		return
	}
	first := w.confirmedAt == 0 && !w.read
	w.confirmedAt = at
	if !first && w.config.Registry.Confirm(list.Provider{Source: w.config.Source.Name()}) == nil {
		w.logConfirmed()
	}
}

func (w *Watch) logConfirmed() {
	w.config.Logger.Info("penstock: changes of lists that were held back are confirmed",
		slog.String("source", w.config.Source.Name()))
}

// confirms says whether somebody has confirmed a change of that revision, or a later one.
func (w *Watch) confirms(revision int64) bool { return revision > 0 && revision <= w.confirmedAt }

// Disconnected implements [core.Sink].
func (s sink) Disconnected(err error) {
	s.awaitCopies()
	s.disconnected(err)
}

func (w *Watch) disconnected(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !retry.Alike(w.err, err) {
		w.config.Logger.Warn("penstock: source of lists cannot be read, its lists stay as they are",
			slog.String("source", w.config.Source.Name()), slog.Any("error", err))
	}
	w.setConnected(false, err)
	w.notify()
}

// Status implements [core.Sink].
func (s sink) Status() core.SourceStatus {
	status := s.Watch.Status()
	return core.SourceStatus{
		Name: status.Source, Ready: status.Ready, Connected: status.Connected, Since: status.Since, Err: status.Err,
	}
}

// Document implements [core.Sink].
func (s sink) Document(name string) (core.DocumentStatus, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	d, ok := s.documents[name]
	if !ok {
		return core.DocumentStatus{}, false
	}
	return core.DocumentStatus{Name: name, Digest: d.loaded, Rejected: d.err}, true
}

// retain removes all documents but those given.
func (w *Watch) retain(present []core.Document) {
	names := make(map[string]struct{}, len(present))
	for _, d := range present {
		names[d.Name] = struct{}{}
	}
	for name := range w.documents {
		if _, ok := names[name]; !ok {
			w.remove(name, w.confirms(w.documents[name].revision+1)) // that it went is later than what it was
		}
	}
}

// update takes over the present version of a document. A list that could not be read is
// tried again at once: something has been written, or the source is connected again.
func (w *Watch) update(present core.Document) {
	d := w.documents[present.Name]
	if d == nil {
		d = w.newDocument(present.Name)
		w.documents[present.Name] = d
	}
	d.present, d.gone, d.revision = true, false, present.Revision
	if before := w.gone[present.Name]; before != nil {
		before.draft.discard()
		delete(w.gone, present.Name)
	}
	err := present.Err
	wanted, confirmed, ok := readManifest(present.Data)
	if err == nil && !ok {
		err = fmt.Errorf("lists: the document does not contain a SHA-256 but %d bytes", len(present.Data))
	}
	if err == nil {
		err = list.CheckName(d.list)
	}
	if err != nil {
		d.wanted, d.pending = Digest{}, false
		w.reject(d, err)
		return
	}
	d.confirmed = confirmed
	switch {
	case d.hasVersion && d.loaded == wanted:
		d.wanted, d.pending = wanted, false
		w.accept(d)
		if confirmed && w.config.Registry.Confirm(w.provider(d)) == nil {
			w.logConfirmed()
		}
	case d.wanted != wanted, d.pending:
		d.wanted, d.pending, d.due = wanted, true, w.config.Clock.Now()
		d.backoff.Reset()
	}
}

func (w *Watch) newDocument(name string) *document {
	return &document{
		name: name, list: w.config.ListName(name), backoff: retry.Backoff{Min: w.config.MinRetry, Max: w.config.MaxRetry},
	}
}

// remove removes a document and its list. A copy of it that is not read yet is read
// first: without it nobody could say how many entries go.
func (w *Watch) remove(name string, confirmed bool) {
	d, ok := w.documents[name]
	switch {
	case !ok:
	case d.copy != nil:
		d.present, d.pending, d.gone, d.goneConfirmed = false, false, true, confirmed
	default:
		w.withdraw(d, confirmed)
	}
}

// withdraw removes a document and its list, unless that is held back.
func (w *Watch) withdraw(d *document, confirmed bool) {
	delete(w.documents, d.name)
	if w.copies != nil {
		w.gone[d.name] = d
	}
	from := w.provider(d)
	w.config.Registry.Withdraw(d.list, from)
	if present, ok := w.status(d); ok && present.HeldBack != nil {
		if !confirmed {
			w.logHeldBack(d, present.HeldBack)
			return
		}
		_ = w.config.Registry.Confirm(from) // it is held back
	}
	w.config.Logger.Warn("penstock: list removed", slog.String("list", d.list),
		slog.String("source", w.config.Source.Name()), slog.String("document", d.name))
}
