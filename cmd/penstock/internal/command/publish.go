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
	"time"

	"github.com/spf13/cobra"

	"github.com/penstock-go/penstock/cmd/penstock/internal/connection"
	"github.com/penstock-go/penstock/cmd/penstock/internal/documents"
	"github.com/penstock-go/penstock/cmd/penstock/internal/wording"
	"github.com/penstock-go/penstock/datasource/etcd/store"
)

// publishing is how documents are to be written to etcd: the flags that push and
// rollback share.
type publishing struct {
	message, author   string
	expect            int64
	yes, dryRun, wait bool
	confirmRemovals   bool
	timeout           time.Duration
}

func publishingFlags(cmd *cobra.Command) *publishing {
	var p publishing
	flags := cmd.Flags()
	flags.StringVarP(&p.message, "message", "m", "", "why, for the history")
	flags.StringVar(&p.author, "author", "", "who, for the history (default user@host)")
	flags.BoolVarP(&p.yes, "yes", "y", false, "do not ask; needed where nobody can be asked")
	flags.BoolVar(&p.confirmRemovals, "confirm-removals", false,
		"let any share of the rules go where instances hold such changes back; an answer of yes says so too")
	flags.BoolVar(&p.dryRun, "dry-run", false, "show what would change and write nothing")
	flags.Int64Var(&p.expect, "expect-rev", 0, "fail if anybody wrote after this `revision` (default the one that the changes are shown against)")
	flags.BoolVar(&p.wait, "wait", false, "wait until every live instance runs by the new revision")
	flags.DurationVar(&p.timeout, "timeout", time.Minute, "how long to wait at most")
	connection.AddFlags(flags)
	return &p
}

var errTimeout = errors.New("--timeout must be longer than nothing")

// check finds what is wrong with the flags before anything is done.
func (p *publishing) check(env Env) error {
	switch {
	case p.expect < 0:
		return errors.New("--expect-rev must be a revision, as history and diff show them")
	case p.timeout <= 0:
		return errTimeout
	case p.dryRun && p.wait:
		return errors.New("--dry-run writes nothing that --wait could wait for: leave one out")
	case !p.yes && !p.dryRun && !env.InIsTerminal:
		return errors.New("there is no terminal to ask on: say --yes to go ahead, or --dry-run to look only")
	default:
		return nil
	}
}

// publish shows what the documents change, asks, writes them, and waits, as far
// as it is to.
func (p *publishing) publish(ctx context.Context, env Env, s *session, current store.Contents, next documents.Collection) error {
	changes := documents.Compare(env.judgeStored(current.Documents), next)
	env.tellChanges(changes)
	if p.dryRun {
		return nil
	}
	if !changes.None() {
		if err := p.confirm(ctx, env, s, changes); err != nil {
			return err
		}
	}
	push := store.Push{
		Expect: cmp.Or(p.expect, current.Revision), Message: p.message, Author: cmp.Or(p.author, whoami()),
		ConfirmRemovals: p.confirmRemovals,
	}
	for _, d := range next.Documents {
		push.Documents = append(push.Documents, store.Document{Name: d.Name, Data: d.Data})
	}
	revision, err := request(ctx, s, func(ctx context.Context) (store.Revision, error) { return s.store.Push(ctx, push) })
	if err != nil {
		return err
	}
	if changes.None() {
		fmt.Fprintf(env.Out, "nothing to write: %s is at revision %d\n", s.place(), revision.Revision)
	} else {
		fmt.Fprintf(env.Out, "%s is at revision %d now\n", s.place(), revision.Revision)
	}
	if p.wait {
		return env.awaitRevision(ctx, s, revision.Revision, p.timeout)
	}
	return nil
}

// confirm asks whether to go ahead, where that has not been said.
func (p *publishing) confirm(ctx context.Context, env Env, s *session, changes documents.Changes) error {
	if p.yes {
		return nil
	}
	if removed := changes.Removed(); removed > 0 {
		fmt.Fprintf(env.Err, "This deletes %s. ", wording.Count(removed, "document"))
	}
	fmt.Fprintf(env.Err, "Write it to %s at %s? [y/N] ", s.settings.Keys.Documents, strings.Join(s.settings.Endpoints, ", "))
	answer := make(chan string, 1)
	go func() {
		line, _ := bufio.NewReader(env.In).ReadString('\n') // no answer is no
		answer <- strings.ToLower(strings.TrimSpace(line))
	}()
	select {
	case <-ctx.Done(): // the reader above ends with the process
	case said := <-answer:
		if said == "y" || said == "yes" {
			p.confirmRemovals = true
			return nil
		}
	}
	return failure{ExitNo, errors.New("nothing was written")}
}

// whoami returns user@host, as far as that can be told.
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
