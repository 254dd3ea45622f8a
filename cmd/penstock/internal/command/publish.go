package command

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/user"
	"strings"

	"github.com/spf13/cobra"

	"github.com/penstock-go/penstock/cmd/penstock/internal/connection"
	"github.com/penstock-go/penstock/cmd/penstock/internal/documents"
	"github.com/penstock-go/penstock/cmd/penstock/internal/wording"
	"github.com/penstock-go/penstock/datasource/etcd/store"
)

// publishOptions is the flags that push and rollback share.
type publishOptions struct {
	message, author   string
	expect            int64
	yes, dryRun, wait bool
	confirmRemovals   bool
	waitOptions
}

func addPublishFlags(cmd *cobra.Command) *publishOptions {
	var p publishOptions
	flags := cmd.Flags()
	flags.StringVarP(&p.message, "message", "m", "", "why, for the history")
	flags.StringVar(&p.author, "author", "", "who, for the history (default user@host)")
	flags.BoolVarP(&p.yes, "yes", "y", false, "do not ask; required without a terminal")
	flags.BoolVar(&p.confirmRemovals, "confirm-removals", false,
		"allow the removal of any number of rules where instances would hold it back; answering yes does so too")
	flags.BoolVar(&p.dryRun, "dry-run", false, "show what would change and write nothing")
	flags.Int64Var(&p.expect, "expect-rev", 0, "fail if anybody wrote after this `revision` (default the one that the changes are shown against)")
	flags.BoolVar(&p.wait, "wait", false, "wait until every live instance runs the new revision")
	addWaitFlags(cmd, &p.waitOptions)
	connection.AddFlags(flags)
	return &p
}

// check returns an error if the flags are invalid.
func (p *publishOptions) check(cmd *cobra.Command, env Env) error {
	if err := p.waitOptions.check(cmd, p.wait); err != nil {
		return err
	}
	switch {
	case p.expect < 0:
		return errors.New("--expect-rev must be a revision, as history and diff show them")
	case p.dryRun && p.wait:
		return errors.New("--dry-run writes nothing that --wait could wait for: leave one out")
	case !p.yes && !p.dryRun && !env.InIsTerminal:
		return errors.New("there is no terminal to ask on: say --yes to go ahead, or --dry-run to look only")
	default:
		return nil
	}
}

// checkStrict returns an error if --strict forbids to write the documents, or has no effect.
func (p *publishOptions) checkStrict(next documents.Collection) error {
	switch {
	case p.strict && len(next.Unknown) > 0:
		return failure{ExitNo, fmt.Errorf("%s, and --strict is given: nothing was written", holding(next.Unknown[0]))}
	case p.strict && !p.wait:
		return errors.New("--strict is about what instances have seen: add --wait")
	default:
		return nil
	}
}

// publish shows the changes, asks, writes the documents, and waits, as the flags say.
func (p *publishOptions) publish(ctx context.Context, env Env, s *session, current store.Contents, next documents.Collection) error {
	stored := env.parseStored(current.Documents)
	changes := documents.Compare(stored, next)
	env.printChanges(changes)
	env.warnOfUnknownKinds(stored, next)
	env.warnOfMissing(ctx, s, next.Rules)
	push := store.Push{Expect: cmp.Or(p.expect, current.Revision), Message: p.message, Author: cmp.Or(p.author, whoami())}
	for _, d := range next.Documents {
		push.Documents = append(push.Documents, store.Document{Name: d.Name, Data: d.Data})
	}
	if p.expect > 0 {
		_, err := request(ctx, s, func(ctx context.Context) (any, error) { return nil, s.store.Check(ctx, push) })
		if err != nil {
			return err
		}
	}
	if p.dryRun {
		return nil
	}
	if !changes.None() {
		if err := p.confirm(ctx, env, s, changes, next); err != nil {
			return err
		}
	}
	push.ConfirmRemovals = p.confirmRemovals
	revision, err := request(ctx, s, func(ctx context.Context) (store.Revision, error) { return s.store.Push(ctx, push) })
	if err != nil && ctx.Err() != nil {
		return failure{ExitFailed, errors.New("whether it was written, penstock history tells")}
	}
	if err != nil {
		return err
	}
	if changes.None() {
		fmt.Fprintf(env.Out, "nothing to write: %s is at revision %d\n", s.place(), revision.Revision)
	} else {
		fmt.Fprintf(env.Out, "%s is at revision %d now\n", s.place(), revision.Revision)
	}
	if p.wait {
		return env.awaitRevision(ctx, s, revision.Revision, p.waitOptions)
	}
	return nil
}

// confirm asks whether to write, unless --yes is set.
func (p *publishOptions) confirm(ctx context.Context, env Env, s *session, changes documents.Changes, next documents.Collection) error {
	if p.yes {
		return nil
	}
	if removed := changes.Removed(); removed > 0 {
		fmt.Fprintf(env.Err, "This deletes %s. ", wording.Count(removed, "document"))
	}
	if len(next.Unknown) > 0 {
		fmt.Fprintf(env.Err, "Rules of unknown kinds (%s) are not checked. ", namesOf(next.Unknown))
	}
	if !env.ask(ctx, fmt.Sprintf("Write it to %s at %s?", s.settings.Keys.Documents, strings.Join(s.settings.Endpoints, ", "))) {
		return failure{ExitNo, errors.New("nothing was written")}
	}
	p.confirmRemovals = true
	return nil
}

// ask asks a question on the terminal and returns whether the answer is yes.
func (env Env) ask(ctx context.Context, question string) (yes bool) {
	fmt.Fprintf(env.Err, "%s [y/N] ", question)
	answer := make(chan string, 1)
	go func() {
		line, _ := bufio.NewReader(env.In).ReadString('\n') // no answer is no
		answer <- strings.ToLower(strings.TrimSpace(line))
	}()
	select {
	case <-ctx.Done(): // the reader above ends with the process
		fmt.Fprintln(env.Err)
		return false
	case said := <-answer:
		return said == "y" || said == "yes"
	}
}

// whoami returns user@host, with "unknown" for what is not known.
func whoami() string {
	name, host := "unknown", "unknown"
	if u, err := user.Current(); err == nil {
		name = u.Username
	}
	if h, err := os.Hostname(); err == nil {
		host = h
	}
	return name + "@" + host
}
