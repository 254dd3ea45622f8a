package console

import (
	"bytes"
	"context"
	"errors"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/penstock-go/penstock/datasource/etcd/store"
	"github.com/penstock-go/penstock/inspect"
	"github.com/penstock-go/penstock/list"
)

// listsScreen shows the lists that rules name.
type listsScreen struct{ h *handler }

// listShown is a list, as the instances have it.
type listShown struct {
	Name     string     `json:"name"`
	Versions []listHeld `json:"versions"`
	Missing  int        `json:"missing"` // instances whose rules name it and that do not have it
}

// listHeld is a version of a list, and the instances that go by it.
type listHeld struct {
	Source    string    `json:"source,omitempty"`
	Digest    string    `json:"digest"`
	Entries   int       `json:"entries"`
	Since     time.Time `json:"since,omitzero"`
	CopiedAt  time.Time `json:"copiedAt,omitzero"`
	Error     string    `json:"error,omitempty"`
	HeldBack  string    `json:"heldBack,omitempty"`
	InForce   bool      `json:"inForce"`
	Instances []string  `json:"instances"`
}

func (s listsScreen) read(ctx context.Context) (any, error) {
	all, err := s.h.statuses.read(ctx)
	if err != nil {
		return nil, err
	}
	lists := []listShown{}
	named := func(name string) *listShown {
		i := slices.IndexFunc(lists, func(l listShown) bool { return l.Name == name })
		if i < 0 {
			i = len(lists)
			lists = append(lists, listShown{Name: name, Versions: []listHeld{}})
		}
		return &lists[i]
	}
	for _, of := range all {
		for i := range of.value.Lists {
			named(of.value.Lists[i].Name).add(of.instance.name, &of.value.Lists[i])
		}
		for _, missing := range of.value.MissingLists {
			named(missing.Name).Missing++
		}
	}
	slices.SortFunc(lists, func(a, b listShown) int { return strings.Compare(a.Name, b.Name) })
	return lists, nil
}

func (l *listShown) add(instance string, of *inspect.List) {
	held := listHeld{
		Source: of.Source, Digest: of.Digest, Entries: of.Entries, Since: of.Since, CopiedAt: of.CopiedAt,
		Error: of.Error, HeldBack: of.HeldBack, InForce: of.InForce,
	}
	i := slices.IndexFunc(l.Versions, func(v listHeld) bool {
		return v.Source == held.Source && v.Digest == held.Digest && v.Error == held.Error && v.HeldBack == held.HeldBack && v.InForce == held.InForce
	})
	if i < 0 {
		i = len(l.Versions)
		l.Versions = append(l.Versions, held)
	}
	l.Versions[i].Instances = append(l.Versions[i].Instances, instance)
}

// maxLookUp is how many bytes a list in etcd may have for the console to read it.
const maxLookUp = 64 << 20

// lookUp says whether an address or a text is on a list: the one in force in this process, or the one in
// etcd.
func (h *handler) lookUp(r request) (any, error) {
	name, value := r.query.Get("list"), strings.TrimSpace(r.query.Get("value"))
	if value == "" {
		return nil, errRequest{"say which address or text"}
	}
	found, err := h.listNamed(r.Context(), name)
	if err != nil {
		return nil, err
	}
	return struct {
		On bool `json:"on"`
	}{isOn(found, value)}, nil
}

func isOn(l *list.List, value string) bool {
	if addr, err := netip.ParseAddr(value); err == nil && l.ContainsAddr(addr) {
		return true
	}
	return l.ContainsText(value)
}

// listNamed returns a list.
func (h *handler) listNamed(ctx context.Context, name string) (*list.List, error) {
	if h.Engine != nil {
		if found := h.Engine.Lists().Get(name); found != nil {
			return found, nil
		}
		return nil, errRequest{"there is no such list in force"}
	}
	ctx, cancel := context.WithTimeout(ctx, etcdTimeout)
	defer cancel()
	info, err := h.Store.List(ctx, name)
	switch {
	case errors.Is(err, store.ErrNoList):
		return nil, errRequest{"there is no such list in etcd"}
	case err != nil:
		return nil, explained(err)
	case info.Size > maxLookUp:
		return nil, errRequest{"the list is too long to be read here: penstock lists has it"}
	}
	var text bytes.Buffer
	if _, err := h.Store.PullList(ctx, name, 0, &text, nil); err != nil {
		return nil, explained(err)
	}
	return list.Parse(ctx, &text, list.Options{})
}
