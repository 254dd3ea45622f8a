package command

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/penstock-go/penstock/cmd/penstock/internal/wording"
	"github.com/penstock-go/penstock/datasource/etcd"
)

// awaitRevision waits until the instances have reported the revision. It returns an
// error if that takes too long, or if one rejected a document or held the change back.
func (env Env) awaitRevision(ctx context.Context, s *session, revision int64, p waitOptions) error {
	if err := env.await(ctx, s, revision, p); err != nil {
		return err
	}
	reports, err := request(ctx, s, s.store.Instances)
	if err != nil {
		return err
	}
	env.printRejections(reports)
	switch rejecting, holding := countRejecting(reports), countHoldingBack(reports); {
	case holding > 0:
		return failure{ExitNo, fmt.Errorf("%s held the change back: see penstock confirm", wording.Count(holding, "instance"))}
	case rejecting > 0:
		return failure{ExitNo, fmt.Errorf("%s rejected documents", wording.Count(rejecting, "instance"))}
	case len(reports) == 0:
		env.note(noInstances)
	default:
		fmt.Fprintf(env.Out, "%s at revision %d\n", wording.Count(len(reports), "instance"), revision)
	}
	return nil
}

// awaitWanted waits until the instances have reported the revision, or the present one
// if it is 0, even if they rejected documents.
func (env Env) awaitWanted(ctx context.Context, s *session, wanted int64, p waitOptions) error {
	if wanted == 0 {
		found, err := s.present(ctx)
		if err != nil {
			return err
		}
		wanted = found.revision
	}
	return env.await(ctx, s, wanted, p)
}

// noInstances is the message if no instance reports.
const noInstances = "no live instance reports: services do when etcd.Options.Instance names them"

// await waits until every instance that reports, and enough of them, have reached the
// revision. It prints the instances that it waits for whenever they change.
func (env Env) await(ctx context.Context, s *session, revision int64, p waitOptions) error {
	limited, cancel := context.WithTimeout(ctx, p.timeout)
	defer cancel()
	w := waiter{env: env, revision: revision, waitOptions: p, seen: make(map[string]bool)}
	for {
		err := s.store.WaitFor(limited, revision, w.showBehind)
		var reports []etcd.Report
		if err == nil {
			reports, err = s.store.Instances(limited)
		}
		switch {
		case err != nil && ctx.Err() == nil && limited.Err() != nil:
			if reports, err = request(ctx, s, s.store.Instances); err != nil {
				return err
			}
			return failure{ExitNo, w.timeoutError(reports)}
		case err != nil:
			return s.fail(err)
		case len(reports) == 0 && !p.minSet:
			return failure{ExitNobody, fmt.Errorf("%s; nobody is known to run by revision %d (--min-instances says how many have to)", noInstances, revision)}
		case w.done(reports):
			return nil
		}
		select {
		case <-limited.Done():
		case <-time.After(pollInterval):
		}
	}
}

// names returns a list of instances with their revisions.
func names(reports []etcd.Report) string {
	list := make([]string, len(reports))
	for i, r := range reports {
		list[i] = fmt.Sprintf("%s (at %d)", r.Instance, r.Revision)
	}
	return wording.List(list)
}

func countRejecting(reports []etcd.Report) int {
	n := 0
	for _, r := range reports {
		if len(r.Rejected) > 0 {
			n++
		}
	}
	return n
}

// countHoldingBack returns how many instances hold the present documents back.
func countHoldingBack(reports []etcd.Report) int {
	n := 0
	for _, r := range reports {
		if r.HeldBack != "" || len(r.ListsHeldBack) > 0 {
			n++
		}
	}
	return n
}

// printRejections prints what instances held back, which documents they rejected, and
// why. Instances with the same text are combined.
func (env Env) printRejections(reports []etcd.Report) {
	var texts []string // in order of occurrence
	instances := make(map[string][]string)
	for _, r := range reports {
		for _, text := range reportTexts(r) {
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

// reportTexts returns the texts about an instance, to be printed after its name.
func reportTexts(r etcd.Report) (texts []string) {
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
