package command

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/penstock-go/penstock/cmd/penstock/internal/connection"
	"github.com/penstock-go/penstock/cmd/penstock/internal/wording"
	"github.com/penstock-go/penstock/datasource/etcd"
	"github.com/penstock-go/penstock/datasource/etcd/store"
)

// awaitRevision waits until the instances have reported the revision, and warns of rules of
// its documents that match nothing that they have seen. It returns an error if that takes too
// long, or if one rejected a document or held the change back.
func (env Env) awaitRevision(ctx context.Context, s *session, revision int64, p waitOptions) error {
	found, err := env.await(ctx, s, revision, p)
	if err != nil {
		return err
	}
	reports := found.Instances
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
		u, err := env.awaitMatches(ctx, s, found, revision, p)
		if err != nil {
			return err
		}
		env.printAbout(reports, lacksLists)
		if err := env.warnOfUnmatched(u, p.strict); err != nil || !p.strict {
			return err
		}
		return missingListsError(reports)
	}
	return nil
}

// missingListsError returns an error if an instance does not have a list that rules in force name.
func missingListsError(reports []etcd.Report) error {
	n := 0
	for _, r := range reports {
		if len(r.MissingLists) > 0 {
			n++
		}
	}
	if n == 0 {
		return nil
	}
	return failure{ExitNo, fmt.Errorf("lists are missing at %s, and --strict is given", wording.Count(n, "instance"))}
}

// awaitWanted waits until the instances have reported the revision, or the present one
// if it is 0, even if they rejected documents.
func (env Env) awaitWanted(ctx context.Context, s *session, wanted int64, p waitOptions) error {
	if wanted == 0 {
		found, err := s.fleetStatus(ctx)
		if err != nil {
			return err
		}
		wanted = found.Revision
	}
	_, err := env.await(ctx, s, wanted, p)
	return err
}

// noInstances is the message if no instance reports.
const noInstances = "no live instance reports: services do when etcd.Options.Instance names them"

// await waits until every instance that reports, and enough of them, have reached the
// revision, and returns what it then found. It prints the instances that it waits for
// whenever they change, and in the end those that have stopped meanwhile.
func (env Env) await(ctx context.Context, s *session, revision int64, p waitOptions) (store.Deployment, error) {
	limited, cancel := context.WithTimeout(ctx, p.timeout)
	defer cancel()
	w := waiter{env: env, revision: revision, waitOptions: p, seen: make(map[string]bool)}
	for {
		err := s.store.WaitFor(limited, revision, w.showBehind)
		var found store.Deployment
		if err == nil {
			found, err = read(limited, s, s.store.Deployment)
		}
		switch {
		case err != nil && ctx.Err() == nil && limited.Err() != nil:
			if found, err = read(ctx, s, s.store.Deployment); err != nil {
				return store.Deployment{}, err
			}
			return store.Deployment{}, failure{ExitNo, w.timeoutError(found)}
		case connection.IsAway(err): // since WaitFor ended, which waits until it is back
		case err != nil:
			return store.Deployment{}, s.fail(err)
		case len(found.Instances) == 0 && !p.minSet:
			return store.Deployment{}, failure{ExitNobody, fmt.Errorf("%s; nobody is known to run by revision %d (--min-instances says how many have to)", noInstances, revision)}
		case w.done(found):
			return found, w.tellStopped(found.Instances)
		}
		select {
		case <-limited.Done():
		case <-time.After(pollInterval):
		}
	}
}

// names returns a list of instances that are not at a revision, with those at which they are.
func names(behind []etcd.Report, revision int64) string {
	list := make([]string, len(behind))
	for i, r := range behind {
		switch {
		case r.Revision < revision:
			list[i] = fmt.Sprintf("%s (at %d)", r.Instance, r.Revision)
		case !r.CopiedAt.IsZero():
			list[i] = fmt.Sprintf("%s (on a copy)", r.Instance)
		default: // it has not read a deletion, or follows a history that etcd no longer has
			list[i] = fmt.Sprintf("%s (at %d, with other documents)", r.Instance, r.Revision)
		}
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
// why.
func (env Env) printRejections(reports []etcd.Report) { env.printAbout(reports, reportTexts) }

// printAbout prints texts about instances after their names. Instances with the same text
// are combined.
func (env Env) printAbout(reports []etcd.Report, textsOf func(etcd.Report) []string) {
	var texts []string // in order of occurrence
	instances := make(map[string][]string)
	for _, r := range reports {
		for _, text := range textsOf(r) {
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

// heldBackTexts returns the text about what an instance holds back, to be printed after its
// name.
func heldBackTexts(r etcd.Report) []string {
	if r.HeldBack == "" {
		return nil
	}
	return []string{": " + wording.Printable(r.HeldBack)}
}

// reportTexts returns the texts about an instance, to be printed after its name.
func reportTexts(r etcd.Report) (texts []string) {
	texts = heldBackTexts(r)
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
