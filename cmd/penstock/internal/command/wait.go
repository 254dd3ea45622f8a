package command

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/penstock-go/penstock/cmd/penstock/internal/wording"
	"github.com/penstock-go/penstock/datasource/etcd"
)

// awaitRevision waits until every live instance has reported the revision, and
// fails if that takes too long or one of them rejected a document or held all back.
func (env Env) awaitRevision(ctx context.Context, s *session, revision int64, timeout time.Duration) error {
	if err := env.await(ctx, s, revision, timeout); err != nil {
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
func (env Env) awaitWanted(ctx context.Context, s *session, wanted int64, timeout time.Duration) error {
	if wanted == 0 {
		found, err := s.present(ctx)
		if err != nil {
			return err
		}
		wanted = found.revision
	}
	return env.await(ctx, s, wanted, timeout)
}

// nobody says that there are no instances to wait for or to show.
const nobody = "no live instance reports: services do when etcd.Options.Instance names them"

// await tells whom it waits for whenever that changes.
func (env Env) await(ctx context.Context, s *session, revision int64, timeout time.Duration) error {
	limited, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	var last string
	err := s.store.WaitFor(limited, revision, func(waiting []etcd.Report) {
		if now := names(waiting); now != last && len(waiting) > 0 {
			env.note("waiting for %s to come to revision %d: %s", wording.Count(len(waiting), "instance"), revision, now)
			last = now
		}
	})
	if errors.Is(limited.Err(), context.DeadlineExceeded) && err != nil {
		late := fmt.Errorf("not every instance came to revision %d in %v", revision, timeout)
		if last != "" {
			late = fmt.Errorf("%w: %s", late, wording.Printable(last))
		}
		return failure{ExitNo, late}
	}
	return s.fail(err)
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
// and why.
func (env Env) tellRejections(reports []etcd.Report) {
	for _, r := range reports {
		if r.HeldBack != "" {
			fmt.Fprintf(env.Out, "\n%s: %s\n", wording.Cell(r.Instance), wording.Printable(r.HeldBack))
		}
		for _, rejection := range r.Rejected {
			fmt.Fprintf(env.Out, "\n%s rejected %s of revision %d:\n", wording.Cell(r.Instance), wording.Cell(rejection.Document), rejection.Revision)
			for line := range strings.SplitSeq(rejection.Error, "\n") {
				fmt.Fprintln(env.Out, " ", wording.Printable(line))
			}
		}
		if r.MoreRejected > 0 {
			fmt.Fprintf(env.Out, "\n%s rejected %s more\n", wording.Cell(r.Instance), wording.Count(r.MoreRejected, "document"))
		}
	}
}
