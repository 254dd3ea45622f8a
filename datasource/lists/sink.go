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
	s.mu.Lock()
	defer s.mu.Unlock()
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
		s.remove(name)
	}
	s.notify()
}

// Disconnected implements [core.Sink].
func (s sink) Disconnected(err error) { s.disconnected(err) }

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
			w.remove(name)
		}
	}
}

// update takes over the present version of a document. A list that could not be read is
// tried again at once: something has been written, or the source is connected again.
func (w *Watch) update(present core.Document) {
	d := w.documents[present.Name]
	if d == nil {
		d = &document{
			name: present.Name, list: w.config.ListName(present.Name),
			backoff: retry.Backoff{Min: w.config.MinRetry, Max: w.config.MaxRetry},
		}
		w.documents[present.Name] = d
	}
	err := present.Err
	if err == nil && len(present.Data) != len(d.wanted) {
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
	wanted := Digest(present.Data)
	switch {
	case d.hasVersion && d.loaded == wanted:
		d.wanted, d.pending = wanted, false
		w.accept(d)
	case d.wanted != wanted, d.pending:
		d.wanted, d.pending, d.due = wanted, true, w.config.Clock.Now()
		d.backoff.Reset()
	}
}

// remove removes a document and its list.
func (w *Watch) remove(name string) {
	d, ok := w.documents[name]
	if !ok {
		return
	}
	delete(w.documents, name)
	w.config.Registry.Withdraw(d.list, w.provider(d))
	w.config.Logger.Warn("penstock: list removed", slog.String("list", d.list),
		slog.String("source", w.config.Source.Name()), slog.String("document", name))
}
