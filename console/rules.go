package console

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/penstock-go/penstock/datasource/etcd"
	"github.com/penstock-go/penstock/datasource/etcd/store"
	"github.com/penstock-go/penstock/rule"
)

// rulesScreen shows the documents, and how far the instances are with them.
type rulesScreen struct{ h *handler }

// rulesShown is what the page gets.
type rulesShown struct {
	Revision  int64           `json:"revision"`
	Pushed    *store.Revision `json:"pushed,omitempty"` // nil if other tools have written since
	Documents []documentShown `json:"documents"`
	Progress  []progress      `json:"progress"`
	Away      bool            `json:"away,omitempty"` // etcd does not answer: nothing of this is known
}

// documentShown is a document, in etcd or in another source of this process.
type documentShown struct {
	Name     string   `json:"name"`
	Source   string   `json:"source,omitempty"` // "" for etcd
	Revision int64    `json:"revision"`
	Rules    int      `json:"rules,omitempty"`
	Rejected []string `json:"rejected,omitempty"` // why it is not in force, by instance
}

// progress is how far an instance is.
type progress struct {
	Instance string `json:"instance"`
	Revision int64  `json:"revision"`
	Current  bool   `json:"current"` // it has exactly the documents that are in etcd
	OnCopy   bool   `json:"onCopy"`
	HeldBack string `json:"heldBack,omitempty"`
	Rejected int    `json:"rejected"`
}

func (s rulesScreen) read(ctx context.Context) (any, error) {
	if s.h.Store == nil {
		return s.local(ctx)
	}
	d, err := s.h.fleet.deployment(ctx)
	if err != nil {
		return rulesShown{Documents: []documentShown{}, Progress: []progress{}, Away: true}, err // rules can be switched off
	}
	shown := rulesShown{Revision: d.Revision, Pushed: d.Pushed, Documents: []documentShown{}, Progress: []progress{}}
	for _, of := range d.Documents {
		shown.Documents = append(shown.Documents, documentShown{Name: of.Name, Revision: of.Revision, Rejected: rejections(d.Instances, of.Name)})
	}
	for _, r := range d.Instances {
		shown.Progress = append(shown.Progress, progressOf(&d, r))
	}
	return shown, nil
}

func progressOf(d *store.Deployment, r etcd.Report) progress {
	return progress{
		Instance: r.Instance, Revision: revisionOf(d, r), Current: d.IsAt(d.Revision, r), OnCopy: !r.CopiedAt.IsZero(),
		HeldBack: r.HeldBack, Rejected: len(r.Rejected) + r.MoreRejected,
	}
}

// rejections says why a document is not in force, and where.
func rejections(reports []etcd.Report, document string) (all []string) {
	const most = 10
	for _, r := range reports {
		for _, rejected := range r.Rejected {
			if rejected.Document == document && len(all) < most {
				all = append(all, r.Instance+": "+rejected.Error)
			}
		}
	}
	return all
}

// local shows the documents of this process, which cannot be read here.
func (s rulesScreen) local(ctx context.Context) (any, error) {
	all, err := s.h.statuses.read(ctx)
	if err != nil {
		return nil, err
	}
	shown := rulesShown{Documents: []documentShown{}, Progress: []progress{}}
	for _, of := range all {
		for _, source := range of.value.Sources {
			for _, d := range source.Documents {
				document := documentShown{Name: d.Name, Source: source.Name, Revision: d.Revision, Rules: d.Rules}
				if d.Rejected != "" {
					document.Rejected = []string{d.Rejected}
				}
				shown.Documents = append(shown.Documents, document)
			}
		}
	}
	return shown, nil
}

var errNoStore = errRequest{"this console shows one process: its documents are not in etcd, or the options have no store"}

// text is a document with the revision at which it was read.
type text struct {
	Name     string `json:"name"`
	Text     string `json:"text"`
	Revision int64  `json:"revision"`
}

// document returns a document as it is in etcd.
func (h *handler) document(r request) (any, error) {
	if h.Store == nil {
		return nil, errNoStore
	}
	contents, err := pull(r.Context(), h.Store)
	if err != nil {
		return nil, err
	}
	name := r.query.Get("name")
	for _, d := range contents.Documents {
		if d.Name == name {
			return text{name, string(d.Data), contents.Revision}, nil
		}
	}
	return text{name, "", contents.Revision}, nil
}

// revision returns what a push of the history has changed, as the lines of the documents.
func (h *handler) revision(r request) (any, error) {
	if h.Store == nil {
		return nil, errNoStore
	}
	number, err := strconv.ParseInt(r.query.Get("revision"), 10, 64)
	if err != nil {
		return nil, errRequest{"the revision is no number"}
	}
	ctx, cancel := context.WithTimeout(r.Context(), etcdTimeout)
	defer cancel()
	at, err := h.Store.At(ctx, number)
	if errors.Is(err, store.ErrNoRevision) {
		return nil, errRequest{fmt.Sprintf("the history has no revision %d any longer", number)}
	}
	if err != nil {
		return nil, err
	}
	now, err := h.Store.Pull(ctx)
	if err != nil {
		return nil, err
	}
	return struct {
		Revision int64          `json:"revision"`
		Present  int64          `json:"present"` // the revision to expect when rolling back
		Changes  []documentDiff `json:"changes"` // that a rollback makes
	}{number, now.Revision, diffDocuments(now.Documents, at.Documents)}, nil
}

func pull(ctx context.Context, s *store.Store) (store.Contents, error) {
	ctx, cancel := context.WithTimeout(ctx, etcdTimeout)
	defer cancel()
	return s.Pull(ctx)
}

// fieldShown is a field that the editor completes.
type fieldShown struct {
	Name    string `json:"name"`
	About   string `json:"about"`
	Default string `json:"default,omitempty"`
}

// fieldsOfKinds returns the fields that documents may have, by kind.
func (h *handler) fieldsOfKinds(request) (any, error) {
	kinds := make(map[rule.Kind][]fieldShown)
	for _, d := range h.kinds.Definitions() {
		for _, f := range d.Fields() {
			kinds[d.Kind()] = append(kinds[d.Kind()], fieldShown{f.Path, f.About, f.Default})
		}
	}
	return kinds, nil
}

// errConflict says that somebody else has written.
type errConflict struct{ text string }

func (e errConflict) Error() string { return e.text }

// explained makes an error of the store one that the page can show.
func explained(err error) error {
	if err == nil {
		return nil
	}
	text := strings.TrimPrefix(err.Error(), "store: ")
	if errors.Is(err, store.ErrConflict) {
		return errConflict{text}
	}
	return errors.New(text)
}

// pushed is the answer to a push.
type pushed struct {
	Revision  int64     `json:"revision"`
	Time      time.Time `json:"time"`
	Unchanged bool      `json:"unchanged"` // nothing was to be written
}
