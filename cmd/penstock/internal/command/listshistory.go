package command

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/penstock-go/penstock/cmd/penstock/internal/connection"
	"github.com/penstock-go/penstock/cmd/penstock/internal/wording"
	"github.com/penstock-go/penstock/datasource/etcd/store"
	"github.com/penstock-go/penstock/list"
)

func newListsHistory(env Env) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "history NAME [flags]",
		Short: "List the former versions of a list",
		Long: `History shows the versions of a list that others have replaced, the newest first,
as penstock lists list shows the present one. At most five are kept, and of long
ones only as many as have 128 MiB of text together, but at least one. A list that
is deleted still has them. penstock lists rollback restores one.

Exit code: 0 when it is done, 2 for a wrong command line, 3 when etcd failed.

` + connection.Help,
		Example: `  penstock lists history scrapers --app shop`,
		Args:    arguments(1, 1, "of which list? penstock lists list shows them"),
	}
	output := formatFlag(cmd)
	connection.AddFlags(cmd.Flags())
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		s, err := env.open(cmd)
		if err != nil {
			return err
		}
		defer s.close()
		found, err := request(cmd.Context(), s, func(ctx context.Context) ([]store.ListInfo, error) {
			return s.store.ListHistory(ctx, args[0])
		})
		switch {
		case err != nil:
			return err
		case *output == asJSON:
			env.writeJSON(listsJSON(found))
		case len(found) == 0:
			fmt.Fprintf(env.Out, "list %s has no former versions\n", wording.Printable(args[0]))
		default:
			env.printListTable(found)
		}
		return nil
	}
	return cmd
}

// listRollback is the flags of penstock lists rollback.
type listRollback struct {
	message, author      string
	yes, confirmRemovals bool
}

func newListsRollback(env Env) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "rollback NAME REVISION [flags]",
		Short: "Restore a former version of a list",
		Long: `Rollback makes a former version of a list the present one, byte for byte, as a new
revision; also of a list that was deleted. penstock lists history shows the
revisions. It says how many entries the list has and will have, and asks, as push
does, also whether texts take the place of addresses, or addresses of texts.

Exit code: 0 when etcd has the list, 1 when the answer was no or too many entries
would go, 2 for a wrong command line, 3 when etcd failed or the history has no such
revision, 4 when somebody else wrote meanwhile.

` + connection.Help,
		Example: `  penstock lists history scrapers --app shop
  penstock lists rollback scrapers 57 --app shop`,
		Args: arguments(2, 2, "which list, and which revision? penstock lists history NAME shows them"),
	}
	var r listRollback
	flags := cmd.Flags()
	flags.StringVarP(&r.message, "message", "m", "", "why, for penstock lists list (default the revision)")
	flags.StringVar(&r.author, "author", "", "who, for penstock lists list (default user@host)")
	flags.BoolVarP(&r.yes, "yes", "y", false, "do not ask; required without a terminal")
	flags.BoolVar(&r.confirmRemovals, "confirm-removals", false,
		"allow that more than half of the entries go, also where instances would hold that back; answering yes does so too")
	connection.AddFlags(flags)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		revision, err := parseRevision(args[1])
		if err == nil {
			err = list.CheckName(args[0])
		}
		if err == nil && !r.yes && !env.InIsTerminal {
			err = errors.New("there is no terminal to ask on: say --yes to go ahead")
		}
		if err != nil {
			return err
		}
		s, err := env.open(cmd)
		if err != nil {
			return err
		}
		defer s.close()
		return r.rollBack(cmd.Context(), env, s, args[0], revision)
	}
	return cmd
}

func (r listRollback) rollBack(ctx context.Context, env Env, s *session, name string, revision int64) error {
	former, err := request(ctx, s, func(ctx context.Context) ([]store.ListInfo, error) { return s.store.ListHistory(ctx, name) })
	if err != nil {
		return err
	}
	at := slices.IndexFunc(former, func(l store.ListInfo) bool { return l.Revision == revision })
	if at < 0 {
		return failure{ExitFailed, fmt.Errorf("the history of list %s has no revision %d: penstock lists history shows those it has",
			wording.Printable(name), revision)}
	}
	present, err := request(ctx, s, func(ctx context.Context) (store.ListInfo, error) { return s.store.List(ctx, name) })
	if err != nil && !errors.Is(err, store.ErrNoList) {
		return err
	}
	next := former[at]
	fmt.Fprintf(env.Out, "list %s: %d → %s\n", wording.Printable(name), present.Entries, entries(next.Entries))
	shrinks := 2*next.Entries < present.Entries
	switch {
	case shrinks:
		env.warn(fmt.Sprintf("%d of the %s would go", present.Entries-next.Entries, entries(present.Entries)))
	case present.Entries > 0 && kindsAt(ctx, s, name, 0).excludes(kindsAt(ctx, s, name, revision)):
		shrinks = true
		env.warn(allWouldGo(present.Entries))
	}
	if shrinks && r.yes && !r.confirmRemovals {
		return failure{ExitNo, errors.New("nothing was written: if so many entries are to go, say --confirm-removals")}
	}
	if !r.yes && !env.ask(ctx, fmt.Sprintf("Write it to %s at %s?", s.settings.Keys.Lists, strings.Join(s.settings.Endpoints, ", "))) {
		return failure{ExitNo, errors.New("nothing was written")}
	}
	written, err := transfer(ctx, env, s, "checking", func(ctx context.Context, progress func(done, of int64)) (store.ListInfo, error) {
		return s.store.RollBackList(ctx, store.ListRollback{
			Name: name, Revision: revision, Expect: present.Revision, ConfirmRemoval: r.confirmRemovals || !r.yes,
			Author: cmp.Or(r.author, whoami()), Message: cmp.Or(r.message, fmt.Sprintf("rollback to %d", revision)),
			Progress: progress,
		})
	})
	if err != nil {
		return err
	}
	fmt.Fprintf(env.Out, "list %s in etcd is at revision %d now\n", wording.Printable(name), written.Revision)
	return nil
}
