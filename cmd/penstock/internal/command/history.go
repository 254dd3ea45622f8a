package command

import (
	"errors"
	"fmt"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/penstock-go/penstock/cmd/penstock/internal/connection"
	"github.com/penstock-go/penstock/cmd/penstock/internal/wording"
	"github.com/penstock-go/penstock/datasource/etcd/store"
)

func newHistory(env Env) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "history [flags]",
		Short: "List the revisions that were pushed",
		Long: `History lists the pushes, the newest first: the revision, the time (UTC), the number
of documents and how many of them were added (+), changed (~) and removed (-),
the author and the message. penstock rollback restores a revision, penstock pull
--rev fetches it.

Exit code: 0 when it is done, 2 for a wrong command line, 3 when etcd failed.

` + connection.Help,
		Example: `  penstock history --app shop
  penstock history --app shop --limit 5 --output json`,
		Args: arguments(0, 0, ""),
	}
	limit := cmd.Flags().IntP("limit", "n", 0, "list no more than `n` revisions (default all)")
	output := formatFlag(cmd)
	connection.AddFlags(cmd.Flags())
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if *limit < 0 {
			return errors.New("--limit must not be negative")
		}
		s, err := env.open(cmd)
		if err != nil {
			return err
		}
		defer s.close()
		revisions, err := request(cmd.Context(), s, s.store.History)
		if err != nil {
			return err
		}
		if *limit > 0 {
			revisions = revisions[:min(*limit, len(revisions))]
		}
		if *output == asJSON {
			env.writeJSON(historyJSON(revisions))
		} else {
			env.printHistory(s, revisions)
		}
		return nil
	}
	return cmd
}

func (env Env) printHistory(s *session, revisions []store.Revision) {
	if len(revisions) == 0 {
		fmt.Fprintf(env.Out, "nothing was pushed to %s yet\n", s.place())
		return
	}
	table := tabwriter.NewWriter(env.Out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "REVISION\tTIME\tDOCUMENTS\tCHANGES\tAUTHOR\tMESSAGE")
	for _, r := range revisions {
		fmt.Fprintf(table, "%d\t%s\t%d\t%s\t%s\t%s\n",
			r.Revision, r.Time.UTC().Format(time.DateTime), r.Documents, signs(r), wording.Cell(r.Author), wording.Cell(r.Message))
	}
	_ = table.Flush()
}

// signs returns the number of documents added, changed and removed.
func signs(r store.Revision) string {
	return fmt.Sprintf("+%d ~%d -%d", r.Added, r.Changed, r.Removed)
}

type revisionJSON struct {
	Revision  int64     `json:"revision"`
	Time      time.Time `json:"time"`
	Author    string    `json:"author"`
	Message   string    `json:"message"`
	Documents int       `json:"documents"`
	Added     int       `json:"added"`
	Changed   int       `json:"changed"`
	Removed   int       `json:"removed"`
}

func historyJSON(revisions []store.Revision) any {
	list := make([]revisionJSON, len(revisions))
	for i, r := range revisions {
		list[i] = revisionJSON(r)
	}
	return struct {
		Revisions []revisionJSON `json:"revisions"`
	}{list}
}
