package console

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/penstock-go/penstock/datasource/etcd/store"
	"github.com/penstock-go/penstock/rule"
	"github.com/penstock-go/penstock/rules"
)

// draft is a document that somebody edits.
type draft struct {
	Name string `json:"name"`
	Text string `json:"text"`
}

// checked says what is wrong with a draft, and what it changes.
type checked struct {
	Problems []problem      `json:"problems"`
	Changes  []string       `json:"changes"` // of rules, in words
	Diff     []documentDiff `json:"diff"`    // of lines

	// TooMany counts the problems that are left out.
	TooMany int `json:"tooMany,omitempty"`
}

// problem is a mistake and where it stands: line and column count from 1, the column in characters.
type problem struct {
	Line   int    `json:"line"`
	Column int    `json:"column"`
	Text   string `json:"text"`
}

// check judges a draft beside the other documents, by the parser that the instances use.
func (h *handler) check(r request) (any, error) {
	d, err := decode[draft](r)
	if err != nil {
		return nil, err
	}
	if h.Store == nil {
		return nil, errNoStore
	}
	contents, err := pull(r.Context(), h.Store)
	if err != nil {
		return nil, explained(err)
	}
	return h.judge(contents.Documents, d), nil
}

// judge judges a draft that replaces the document of its name.
func (h *handler) judge(present []store.Document, d draft) checked {
	const most = 100
	next, parseErr := h.kinds.Parse(d.Name, []byte(d.Text))
	before := h.rulesOf(present, func(name string) bool { return name == d.Name })
	others := h.rulesOf(present, func(name string) bool { return name != d.Name })
	c := checked{Problems: []problem{}, Changes: []string{}}
	c.Diff = diffDocuments(present, replaced(present, d))
	problems := problemsOf(parseErr)
	if len(problems) == 0 {
		problems = append(problemsOf(disputes(next, others)), problemsOf(h.clashes(next, others))...)
		for _, change := range rules.Diff(before, next) {
			c.Changes = append(c.Changes, change.String())
		}
	}
	c.TooMany = max(0, len(problems)-most)
	c.Problems = append(c.Problems, problems[:min(len(problems), most)]...)
	return c
}

// rulesOf returns the rules of some documents. Documents with mistakes have none here.
func (h *handler) rulesOf(documents []store.Document, wanted func(name string) bool) rules.Set {
	var sets []rules.Set
	for _, d := range documents {
		if !wanted(d.Name) {
			continue
		}
		if set, err := h.kinds.Parse(d.Name, d.Data); err == nil {
			sets = append(sets, set)
		}
	}
	merged, _ := rules.Merge(sets...) // those that clash already are not the mistake of a draft
	return merged
}

// clashes says which names of a draft rules of other documents have.
func (h *handler) clashes(next, others rules.Set) error {
	return h.kinds.Clashes(next, func(key rule.Key) string {
		at, taken := others.Position(key.Kind, key.Name)
		if !taken {
			return ""
		}
		return "the rule at " + at.String()
	})
}

// disputes says of which domains a draft says other than other documents.
func disputes(next, others rules.Set) error {
	return next.Dispute(func(name string) (rules.Domain, string, bool) {
		of, found := others.Domain(name)
		return of, others.WhereDomain(name), found
	})
}

func problemsOf(err error) (all []problem) {
	var found rules.Problems
	switch {
	case err == nil:
		return nil
	case !errors.As(err, &found):
		return []problem{{1, 1, strings.TrimPrefix(err.Error(), "rules: ")}}
	}
	for _, p := range found {
		line, column := max(1, p.Line), max(1, p.Column)
		p.Document, p.Line, p.Column = "", 0, 0
		all = append(all, problem{line, column, p.Error()})
	}
	return all
}

// replaced returns the documents with a draft in the place of the one of its name. A draft without text
// removes it.
func replaced(present []store.Document, d draft) []store.Document {
	next := slices.DeleteFunc(slices.Clone(present), func(p store.Document) bool { return p.Name == d.Name })
	if d.Text != "" {
		next = append(next, store.Document{Name: d.Name, Data: []byte(d.Text)})
	}
	return next
}

// change is a request to write documents.
type change struct {
	Name     string `json:"name,omitempty"`
	Text     string `json:"text,omitempty"`
	Revision int64  `json:"revision,omitempty"` // to roll back to
	Expect   int64  `json:"expect"`             // at which the present documents were read
	Message  string `json:"message"`
	Confirm  bool   `json:"confirm,omitempty"` // removals of many rules at once
}

// maxMessage is how many bytes the reason for a change may have.
const maxMessage = 1000

func (c change) check() error {
	switch message := strings.TrimSpace(c.Message); {
	case message == "":
		return errRequest{"say why: the message is in the history"}
	case len(message) > maxMessage:
		return errRequest{"the message is too long"}
	case c.Expect <= 0:
		return errRequest{"the revision that is changed is missing"}
	}
	return nil
}

// push writes one document.
func (h *handler) push(r request) (any, error) {
	c, err := decode[change](r)
	if err == nil {
		err = c.check()
	}
	if err != nil {
		return nil, err
	}
	return h.write(r, c, func(_ context.Context, present []store.Document) ([]store.Document, error) {
		d := draft{c.Name, c.Text}
		if found := h.judge(present, d).Problems; len(found) > 0 && d.Text != "" {
			return nil, errRequest{"the document has mistakes: " + found[0].Text}
		}
		return replaced(present, d), nil
	})
}

// rollBack writes the documents of a revision of the history again.
func (h *handler) rollBack(r request) (any, error) {
	c, err := decode[change](r)
	if err == nil {
		err = c.check()
	}
	if err != nil {
		return nil, err
	}
	return h.write(r, c, func(ctx context.Context, _ []store.Document) ([]store.Document, error) {
		at, err := h.Store.At(ctx, c.Revision)
		if errors.Is(err, store.ErrNoRevision) {
			return nil, errRequest{"the history does not have this revision any longer"}
		}
		return at.Documents, err
	})
}

// write replaces the documents unless somebody has written since the expected revision.
func (h *handler) write(
	r request, c change, next func(context.Context, []store.Document) ([]store.Document, error),
) (any, error) {
	if h.Store == nil {
		return nil, errNoStore
	}
	ctx, cancel := context.WithTimeout(r.Context(), etcdTimeout)
	defer cancel()
	now, err := h.Store.Pull(ctx)
	if err != nil {
		return nil, explained(err)
	}
	documents, err := next(ctx, now.Documents)
	if err != nil {
		return nil, err
	}
	done, err := h.Store.Push(ctx, store.Push{
		Documents: documents, Expect: c.Expect, ConfirmRemovals: c.Confirm, Author: string(r.who), Message: strings.TrimSpace(c.Message),
	})
	if err != nil {
		return nil, explained(err)
	}
	return pushed{Revision: done.Revision, Time: done.Time, Unchanged: done.Added+done.Changed+done.Removed == 0}, nil
}

// confirm has the instances put in force what they hold back.
func (h *handler) confirm(r request) (any, error) {
	if h.Store == nil {
		return nil, errNoStore
	}
	ctx, cancel := context.WithTimeout(r.Context(), etcdTimeout)
	defer cancel()
	revision, err := h.Store.Confirm(ctx, string(r.who))
	if err == nil {
		_, err = h.Store.ConfirmLists(ctx, string(r.who))
	}
	return pushed{Revision: revision}, explained(err)
}
