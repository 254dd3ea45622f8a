package command

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/penstock-go/penstock/cmd/penstock/internal/wording"
	"github.com/penstock-go/penstock/datasource/etcd"
)

// awaitRevision waits until the instances have reported the revision, and fails if
// that takes too long or one of them rejected a document or held all back.
func (env Env) awaitRevision(ctx context.Context, s *session, revision int64, p patience) error {
	if err := env.await(ctx, s, revision, p); err != nil {
		return err
	}
	reports, err := request(ctx, s, s.store.Instances)
	if err != nil {
		return err
	}
	env.tellRejections(reports)
	switch rejecting, holding := withRejections(reports), holdingBack(reports); {
	case holding > 0:
		return failure{ExitNo, fmt.Errorf("%s held the change back: see penstock confirm", wording.Count(holding, "instance"))}
	case rejecting > 0:
		return failure{ExitNo, fmt.Errorf("%s rejected documents", wording.Count(rejecting, "instance"))}
	case len(reports) == 0:
		env.note(nobody)
	default:
		fmt.Fprintf(env.Out, "%s at revision %d\n", wording.Count(len(reports), "instance"), revision)
	}
	return nil
}

// awaitWanted waits for a revision, 0 for the present one, without judging what
// instances report of it.
func (env Env) awaitWanted(ctx context.Context, s *session, wanted int64, p patience) error {
	if wanted == 0 {
		found, err := s.present(ctx)
		if err != nil {
			return err
		}
		wanted = found.revision
	}
	return env.await(ctx, s, wanted, p)
}

// nobody says that there are no instances to wait for or to show.
const nobody = "no live instance reports: services do when etcd.Options.Instance names them"

// await returns when every instance that reports has come to the revision, and as
// many as there have to be. It tells whom it waits for whenever that changes.
func (env Env) await(ctx context.Context, s *session, revision int64, p patience) error {
	limited, cancel := context.WithTimeout(ctx, p.timeout)
	defer cancel()
	w := wait{env: env, revision: revision, patience: p, seen: make(map[string]bool)}
	for {
		err := s.store.WaitFor(limited, revision, w.tell)
		var reports []etcd.Report
		if err == nil {
			reports, err = s.store.Instances(limited)
		}
		switch {
		case err != nil && ctx.Err() == nil && limited.Err() != nil:
			if reports, err = request(ctx, s, s.store.Instances); err != nil {
				return err
			}
			return failure{ExitNo, w.late(reports)}
		case err != nil:
			return s.fail(err)
		case len(reports) == 0 && !p.given:
			return failure{ExitNobody, fmt.Errorf("%s; nobody is known to run by revision %d (--min-instances says how many have to)", nobody, revision)}
		case w.come(reports):
			return nil
		}
		select {
		case <-limited.Done():
		case <-time.After(pollInterval):
		}
	}
}

// names lists instances with their revisions.
func names(reports []etcd.Report) string {
	list := make([]string, len(reports))
	for i, r := range reports {
		list[i] = fmt.Sprintf("%s (at %d)", r.Instance, r.Revision)
	}
	return wording.List(list)
}

func withRejections(reports []etcd.Report) int {
	n := 0
	for _, r := range reports {
		if len(r.Rejected) > 0 {
			n++
		}
	}
	return n
}

// holdingBack returns how many instances do not put in force what etcd holds.
func holdingBack(reports []etcd.Report) int {
	n := 0
	for _, r := range reports {
		if r.HeldBack != "" {
			n++
		}
	}
	return n
}

// tellRejections writes what instances held back, which documents they rejected,
// and why: once for all instances of which the same is to be told.
func (env Env) tellRejections(reports []etcd.Report) {
	var texts []string // in the order in which they came up
	instances := make(map[string][]string)
	for _, r := range reports {
		for _, text := range remarks(r) {
			if instances[text] == nil {
				texts = append(texts, text)
			}
			instances[text] = append(instances[text], wording.Cell(r.Instance))
		}
	}
	for _, text := range texts {
		fmt.Fprintf(env.Out, "\n%s%s\n", wording.List(instances[text]), text)
	}
}

// remarks returns what there is to tell of an instance, to be put after its name.
func remarks(r etcd.Report) (texts []string) {
	if r.HeldBack != "" {
		texts = append(texts, ": "+wording.Printable(r.HeldBack))
	}
	for _, rejection := range r.Rejected {
		lines := []string{fmt.Sprintf(" rejected %s of revision %d:", wording.Cell(rejection.Document), rejection.Revision)}
		for line := range strings.SplitSeq(rejection.Error, "\n") {
			lines = append(lines, wording.Printable(line))
		}
		texts = append(texts, strings.Join(lines, "\n  "))
	}
	if r.MoreRejected > 0 {
		texts = append(texts, fmt.Sprintf(" rejected %s more", wording.Count(r.MoreRejected, "document")))
	}
	return texts
}
