package command

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/penstock-go/penstock/cmd/penstock/internal/connection"
	"github.com/penstock-go/penstock/cmd/penstock/internal/documents"
	"github.com/penstock-go/penstock/cmd/penstock/internal/wording"
	"github.com/penstock-go/penstock/datasource/etcd/store"
)

func newLists(env Env) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "lists COMMAND",
		Short: "Push, edit, list, pull, restore and delete the lists that rules name",
		Long: `Lists are text, one entry a line, of up to 10 million entries: addresses and
prefixes, or exact values. Rules refer to them by name (list: scrapers).
In etcd they are below /penstock/APP.lists/, in chunks, because a value there has
1.5 MiB at most. A push switches from one version to the next at once: instances
have either the one or the other, whole.

Etcd keeps what was replaced or deleted until it is compacted. It needs room for
several versions: about half of the text for each.`,
		Example: `  penstock lists push scrapers scrapers.txt --app shop
  penstock lists add scrapers 203.0.113.9 --app shop
  penstock lists list --app shop
  penstock lists pull scrapers --app shop > scrapers.txt
  penstock lists history scrapers --app shop
  penstock lists rollback scrapers 57 --app shop
  penstock lists delete scrapers --app shop`,
		Args: arguments(0, 0, ""),
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	for _, sub := range []*cobra.Command{
		newListsPush(env), newListsAdd(env), newListsRemove(env), newListsList(env), newListsPull(env), newListsHistory(env),
		newListsRollback(env), newListsDelete(env),
	} {
		sub.Flags().SortFlags = false // in order of importance
		sub.DisableFlagsInUseLine = true
		cmd.AddCommand(sub)
	}
	return cmd
}

func newListsList(env Env) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "list [flags]",
		Short: "List the lists in etcd",
		Long: `List shows the lists in etcd: the name, the number of entries and the size of the
text, the revision and the time (UTC) of the push, the beginning of the SHA-256 of
the text, the author and the message.

Exit code: 0 when it is done, 1 when the description of a list is damaged, 2 for a
wrong command line, 3 when etcd failed.

` + connection.Help,
		Example: `  penstock lists list --app shop
  penstock lists list --app shop --output json | jq '.[].entries'`,
		Args: arguments(0, 0, ""),
	}
	output := formatFlag(cmd)
	connection.AddFlags(cmd.Flags())
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		s, err := env.open(cmd)
		if err != nil {
			return err
		}
		defer s.close()
		found, err := request(cmd.Context(), s, s.store.Lists)
		if err != nil {
			return err
		}
		if *output == asJSON {
			env.writeJSON(listsJSON(found))
		} else {
			env.printLists(s, found)
		}
		var damaged error
		for _, l := range found {
			damaged = errors.Join(damaged, l.Err)
		}
		if damaged != nil {
			return failure{ExitNo, damaged}
		}
		return nil
	}
	return cmd
}

func (env Env) printLists(s *session, found []store.ListInfo) {
	if len(found) == 0 {
		fmt.Fprintf(env.Out, "there are no lists below %s\n", s.settings.Keys.Lists)
		return
	}
	env.printListTable(found)
}

func (env Env) printListTable(found []store.ListInfo) {
	table := tabwriter.NewWriter(env.Out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "NAME\tENTRIES\tSIZE\tREVISION\tTIME\tSHA-256\tAUTHOR\tMESSAGE")
	for _, l := range found {
		if l.Err != nil {
			fmt.Fprintf(table, "%s\tdamaged\t\t%d\t\t\t\t\n", wording.Cell(l.Name), l.Revision)
			continue
		}
		fmt.Fprintf(table, "%s\t%d\t%s\t%d\t%s\t%s\t%s\t%s\n", wording.Cell(l.Name), l.Entries, size(l.Size), l.Revision,
			l.Time.UTC().Format(time.DateTime), l.Digest[:12], wording.Cell(l.Author), wording.Cell(l.Message))
	}
	_ = table.Flush()
}

// listJSON is a list as --output json writes it.
type listJSON struct {
	store.ListInfo
	Error string `json:"error,omitempty"`
}

func listsJSON(found []store.ListInfo) []listJSON {
	all := make([]listJSON, len(found))
	for i, l := range found {
		all[i].ListInfo = l
		if l.Err != nil {
			all[i].Error = l.Err.Error()
		}
	}
	return all
}

func newListsDelete(env Env) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "delete NAME [flags]",
		Short: "Delete a list in etcd",
		Long: `Delete deletes a list. Instances remove it at once: rules that deny its entries let
them pass then, rules that allow only its entries refuse everybody.

If documents in etcd have rules that name the list, it is not deleted without
--force. Instances that hold back the removal of too many entries
(core.Config.MaxRemoval) keep it until penstock confirm. Its versions stay in the
history: penstock lists rollback restores one.

On a terminal delete asks first. Without a terminal, as in scripts, it needs --yes
and fails at once without it.

Exit code: 0 when it is deleted, 1 when there is no such list, a rule names it or
the answer was no, 2 for a wrong command line, 3 when etcd failed, 4 when somebody
else wrote meanwhile.

` + connection.Help,
		Example: `  penstock lists delete scrapers --app shop
  penstock lists delete scrapers --app shop --yes   # in a script`,
		Args: arguments(1, 1, "which list? penstock lists list shows them"),
	}
	yes := cmd.Flags().BoolP("yes", "y", false, "do not ask; required without a terminal")
	force := cmd.Flags().Bool("force", false, "delete it although rules name it")
	connection.AddFlags(cmd.Flags())
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if !*yes && !env.InIsTerminal {
			return errors.New("there is no terminal to ask on: say --yes to go ahead")
		}
		s, err := env.open(cmd)
		if err != nil {
			return err
		}
		defer s.close()
		if !*force {
			if err := env.requireUnnamed(cmd.Context(), s, args[0]); err != nil {
				return err
			}
		}
		return env.deleteList(cmd.Context(), s, args[0], *yes)
	}
	return cmd
}

// requireUnnamed returns an error if documents have rules that name a list, or may have: a
// document with mistakes may be in force in an earlier version, and one of an unknown kind may name
// lists.
func (env Env) requireUnnamed(ctx context.Context, s *session, name string) error {
	if _, err := request(ctx, s, func(ctx context.Context) (store.ListInfo, error) { return s.store.List(ctx, name) }); err != nil {
		return err
	}
	present, err := s.pull(ctx)
	if err != nil {
		return fmt.Errorf("whether rules name list %s is not known, --force deletes it all the same: %w", wording.Printable(name), err)
	}
	var naming []string
	for _, d := range fromStore(present.Documents) {
		judged := documents.Judge(env.table(), []documents.Document{d}, documents.LeftOut)
		switch mentioned := bytes.Contains(d.Data, []byte(name)); {
		case mentioned && len(judged.Problems) > 0:
			naming = append(naming, "document "+wording.Quote(d.Name)+", which has mistakes,")
		case mentioned && len(judged.Unknown) > 0:
			naming = append(naming, fmt.Sprintf("document %s, perhaps by a rule of the kind %s, which this penstock does not know,",
				wording.Quote(d.Name), namesOf(judged.Unknown)))
		}
		for r := range judged.Rules.All() {
			if slices.Contains(r.Lists(), name) {
				naming = append(naming, fmt.Sprintf("%s rule %s in %s", r.Key().Kind, wording.Quote(r.Key().Name), wording.Quote(d.Name)))
			}
		}
	}
	if len(naming) == 0 {
		return nil
	}
	return failure{ExitNo, fmt.Errorf("list %s is named by %s: take it out of the rules first, or delete it with --force: nothing was deleted",
		wording.Printable(name), strings.Join(naming[:min(len(naming), 10)], ", "))}
}

func (env Env) deleteList(ctx context.Context, s *session, name string, yes bool) error {
	var expect int64
	if !yes {
		present, err := request(ctx, s, func(ctx context.Context) (store.ListInfo, error) { return s.store.List(ctx, name) })
		switch {
		case err != nil:
			return err
		case !env.ask(ctx, fmt.Sprintf("Delete list %s with %s from %s?",
			wording.Printable(name), entries(present.Entries), s.settings.Keys.Lists)):
			return failure{ExitNo, errors.New("nothing was deleted")}
		}
		expect = present.Revision
	}
	deleted, err := request(ctx, s, func(ctx context.Context) (store.ListInfo, error) { return s.store.DeleteList(ctx, name, expect) })
	if err != nil {
		return err
	}
	fmt.Fprintf(env.Out, "list %s is deleted: it had %s (revision %d)\n", wording.Printable(name), entries(deleted.Entries), deleted.Revision)
	return nil
}

// entries returns a number of entries with the noun.
func entries(n int) string {
	if n == 1 {
		return "1 entry"
	}
	return fmt.Sprintf("%d entries", n)
}

// size returns a number of bytes in a unit that people read.
func size(bytes int64) string {
	switch {
	case bytes < 1<<10:
		return fmt.Sprintf("%d B", bytes)
	case bytes < 1<<20:
		return fmt.Sprintf("%.1f KiB", float64(bytes)/(1<<10))
	default:
		return fmt.Sprintf("%.1f MiB", float64(bytes)/(1<<20))
	}
}
