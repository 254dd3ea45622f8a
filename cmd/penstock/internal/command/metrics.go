package command

import (
	"errors"
	"fmt"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/penstock-go/penstock/cmd/penstock/internal/wording"
	metriclog "github.com/penstock-go/penstock/metrics/log"
)

func newMetrics(env Env) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "metrics --dir DIR --app APP [flags]",
		Short: "Show what happened second by second, from metric logs",
		Long: `Metrics shows lines of the metric log that a service wrote on this machine with the
package metrics/log, or with Sentinel: what passed and was blocked, second by
second. RT is the mean response time, MAX the most calls under way at once.

Times are as in "2026-10-31 12:00:00" or "12:00:00" (of today), in local time, or as
in 2026-10-31T12:00:00Z.

Exit code: 0 with or without lines, 2 for a wrong command line, 3 when a file cannot
be read.`,
		Example: `  penstock metrics --dir /var/log/shop --app shop --last 5m
  penstock metrics --dir /var/log/shop --app shop --from 12:00:00 --to 12:00:30 --resource orders:create
  penstock metrics --dir /var/log/shop --app shop --last 1h --output json | jq '.lines[] | select(.blocked > 0)'`,
		Args: arguments(0, 0, ""),
	}
	now := time.Now()
	var q metriclog.Query
	from, to, last := pointInTime{now: now}, pointInTime{now: now}, seconds(0)
	cmd.Flags().StringVar(&q.Dir, "dir", "", "the `directory` of the log (required)")
	cmd.Flags().StringVar(&q.App, "app", "", "the `name` of the service, with which the files begin (required)")
	cmd.Flags().Var(&from, "from", "show no earlier `time`")
	cmd.Flags().Var(&to, "to", "show no later `time`")
	cmd.Flags().Var(&last, "last", "show the last `duration`, such as 5m")
	cmd.Flags().StringVar(&q.Resource, "resource", "", "show only the resource of that `name`")
	cmd.Flags().IntVarP(&q.Limit, "limit", "n", 0, "show no more than `n` lines, the oldest (default 10000)")
	output := formatFlag(cmd)
	cmd.MarkFlagsMutuallyExclusive("last", "from")
	cmd.MarkFlagsMutuallyExclusive("last", "to")
	cmd.RunE = func(*cobra.Command, []string) error {
		if q.Dir == "" || q.App == "" {
			return errors.New("which log? Name its directory with --dir and its service with --app")
		}
		q.From, q.To = from.at, to.at
		if last > 0 {
			q.From = now.Add(-time.Duration(last))
		}
		if !q.To.IsZero() && q.To.Before(q.From) {
			return errors.New("--to is before --from")
		}
		if q.Limit < 0 {
			return errors.New("--limit must not be negative")
		}
		found, err := metriclog.Search(q)
		if err != nil {
			return failure{ExitFailed, err}
		}
		if *output == asJSON {
			env.writeJSON(foundJSON{Lines: append([]metriclog.Line{}, found.Lines...), Skipped: found.Skipped, More: found.More})
		} else {
			env.printMetrics(&found)
		}
		return nil
	}
	return cmd
}

type foundJSON struct {
	Lines   []metriclog.Line `json:"lines"`
	Skipped int              `json:"skipped"` // damaged lines
	More    bool             `json:"more"`    // there are more than the limit
}

func (env Env) printMetrics(found *metriclog.Found) {
	if len(found.Lines) == 0 {
		fmt.Fprintln(env.Out, "nothing was found")
	} else {
		table := tabwriter.NewWriter(env.Out, 0, 0, 2, ' ', 0)
		fmt.Fprintln(table, "TIME\tRESOURCE\tPASSED\tBLOCKED\tCOMPLETED\tFAILED\tRT\tMAX")
		for i := range found.Lines {
			l := &found.Lines[i]
			fmt.Fprintf(table, "%s\t%s\t%d\t%d\t%d\t%d\t%d ms\t%d\n", l.Time.Local().Format(time.DateTime),
				wording.Cell(l.Resource), l.Passed, l.Blocked, l.Completed, l.Failed, l.MeanResponseTime, l.MaxInFlight)
		}
		_ = table.Flush()
	}
	if found.More {
		fmt.Fprintln(env.Err, "penstock: there is more: narrow the time or raise --limit")
	}
	if found.Skipped > 0 {
		fmt.Fprintf(env.Err, "penstock: %d damaged lines were passed over\n", found.Skipped)
	}
}

// pointInTime is the value of a flag for a point in time.
type pointInTime struct {
	now time.Time
	at  time.Time
}

// String, Set and Type implement pflag.Value.
func (p *pointInTime) String() string {
	if p.at.IsZero() {
		return ""
	}
	return p.at.Format(time.RFC3339)
}

func (p *pointInTime) Set(text string) error {
	if at, err := time.Parse(time.RFC3339, text); err == nil {
		p.at = at
		return nil
	}
	for _, layout := range []string{time.DateTime, "2006-01-02T15:04:05"} {
		if at, err := time.ParseInLocation(layout, text, time.Local); err == nil {
			p.at = at
			return nil
		}
	}
	at, err := time.Parse(time.TimeOnly, text)
	if err != nil {
		return errors.New(`must be as in "2026-10-31 12:00:00", 12:00:00 or 2026-10-31T12:00:00Z`)
	}
	year, month, day := p.now.Date()
	p.at = time.Date(year, month, day, at.Hour(), at.Minute(), at.Second(), 0, time.Local)
	return nil
}

func (p *pointInTime) Type() string { return "time" }
