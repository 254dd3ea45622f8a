package command

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/penstock-go/penstock/cmd/penstock/internal/documents"
	"github.com/penstock-go/penstock/cmd/penstock/internal/wording"
	"github.com/penstock-go/penstock/recording"
	"github.com/penstock-go/penstock/simulate"
)

// replayFlags are the flags of penstock simulate for recorded calls.
type replayFlags struct {
	calls    string
	against  []string
	warmUp   seconds
	together bool
}

func (f *replayFlags) add(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&f.calls, "calls", "", "replay the calls of this `file`, which penstock record has written")
	flags.StringArrayVar(&f.against, "against", nil, "compare with the rules of this `path`, with --calls; may be given again")
	flags.Var(&f.warmUp, "warm-up", "do not count the calls of this time at the beginning, with --calls (default 1s)")
	flags.BoolVar(&f.together, "together", false, "have the calls of all instances share each limit, with --calls")
}

// check returns what is wrong with the flags together with others.
func (f *replayFlags) check(cmd *cobra.Command) error {
	given := cmd.Flags().Changed
	if f.calls == "" {
		for _, flag := range []string{"against", "warm-up", "together"} {
			if given(flag) {
				return fmt.Errorf("--%s is for recorded calls: name them with --calls FILE", flag)
			}
		}
		return nil
	}
	for _, flag := range []string{"load", "duration", "instances", "events"} {
		if given(flag) {
			return fmt.Errorf("--calls and --%s contradict each other: leave one out", flag)
		}
	}
	if given("warm-up") && (f.warmUp < 0 || time.Duration(f.warmUp) > simulate.MaxDuration) {
		return fmt.Errorf("--warm-up must be from 0s to %v", simulate.MaxDuration)
	}
	return nil
}

// replay replays recorded calls.
func (s simulation) replay(cmd *cobra.Command, env Env) error {
	ctx := cmd.Context()
	set, err := env.judgeSound(ctx, s.rules, documents.Mistakes)
	if err != nil {
		return err
	}
	bar := progress{out: env.Err, patience: 500 * time.Millisecond, silent: !env.ErrIsTerminal}
	options := simulate.ReplayOptions{
		WarmUp: time.Duration(s.recorded.warmUp), Together: s.recorded.together, Kinds: env.Kinds,
		Progress: func(done, of int) { bar.tell(fmt.Sprintf("replaying: %d of %d calls", done, of)) },
	}
	if options.WarmUp == 0 && cmd.Flags().Changed("warm-up") {
		options.WarmUp = -1
	}
	if len(s.recorded.against) > 0 {
		against, err := env.judgeSound(ctx, s.recorded.against, documents.Mistakes)
		if err != nil {
			return err
		}
		options.Against = &against.Rules
	}
	if options.Lists, err = env.readLists(ctx, *s.lists); err != nil {
		return err
	}
	env.warnOfLists(set.Rules, options.Lists, *s.lists)
	of, err := readRecording(s.recorded.calls)
	if err != nil {
		return failure{ExitFailed, err}
	}
	report, err := simulate.Replay(ctx, of, set.Rules, options)
	bar.end()
	switch {
	case errors.Is(err, context.Canceled):
		return err
	case err != nil:
		return failure{ExitFailed, err}
	}
	return s.writeTo(env, func(w io.Writer) error {
		if *s.output == asJSON {
			return encodeJSON(w, report)
		}
		return writeReplay(w, &report)
	})
}

func readRecording(name string) (*recording.Recording, error) {
	file, err := os.Open(name) //nolint:gosec // a file that the user names
	if err != nil {
		return nil, err
	}
	defer file.Close()
	of, err := recording.Read(file)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return of, nil
}

// replayRows is how many rows of each table the text has at the most; JSON has all.
const replayRows = 20

// writeReplay writes a report for people.
func writeReplay(w io.Writer, r *simulate.ReplayReport) error {
	out := bufio.NewWriter(w)
	fmt.Fprintf(out, "%s in %s from %s; the first %s are not counted\n", wording.Count(r.Total.Calls, "call"),
		secondsOf(r.Seconds), r.From.UTC().Format(time.DateTime), secondsOf(r.WarmUp))
	for _, i := range r.Instances {
		if i.Error != "" {
			fmt.Fprintf(out, "%s was not recorded: %s\n", wording.Cell(i.Name), wording.Cell(i.Error))
		}
	}
	total := r.Total
	total.Name = "all"
	writeReplayRows(out, "RESOURCE", append([]simulate.ReplayRow{total}, r.Resources...))
	writeReplayRows(out, "ORIGIN", r.Origins)
	writeReplayRows(out, "VALUE", r.Values)
	writeReplayRules(out, r)
	fmt.Fprintln(out)
	for _, note := range r.Notes {
		fmt.Fprintf(out, "Note: %s.\n", note)
	}
	return out.Flush()
}

// writeReplayRows writes a table, unless it has no rows.
func writeReplayRows(out io.Writer, title string, rows []simulate.ReplayRow) {
	if len(rows) == 0 {
		return
	}
	fmt.Fprintln(out)
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	compared := rows[0].Against != nil
	against := ""
	if compared {
		against = "AGAINST\t"
	}
	fmt.Fprintf(table, "%s\tCALLS\tREFUSED: RECORDED\t%sNEW\tNEWLY REFUSED\tNEWLY PASSED\tWAITED\tLONGEST\tIN FLIGHT\n", title, against)
	for i := range rows[:min(len(rows), replayRows)] {
		r := &rows[i]
		var cells []string
		add := func(cell any) { cells = append(cells, fmt.Sprint(cell)) }
		add(wording.Cell(r.Name))
		add(r.Calls)
		add(withShare(r.Recorded.Refused, r.Calls))
		if compared {
			add(withShare(r.Against.Refused, r.Calls))
		}
		add(withShare(r.Replayed.Refused, r.Calls))
		add(r.NewlyRefused)
		add(r.NewlyPassed)
		add(fromTo(r.Recorded.Waited, r.Replayed.Waited))
		add(fromTo(secondsOf(r.Recorded.MaxWait), secondsOf(r.Replayed.MaxWait)))
		if most := r.Replayed.MaxInFlight; most != nil {
			add(fromTo(*r.Recorded.MaxInFlight, *most))
		} else {
			add("")
		}
		fmt.Fprintln(table, strings.Join(cells, "\t"))
	}
	_ = table.Flush()
	if more := len(rows) - replayRows; more > 0 {
		fmt.Fprintf(out, "… and %d more: -o json has them\n", more)
	}
}

// fromTo writes what was recorded and what is now, once if it is the same.
func fromTo[T comparable](recorded, replayed T) string {
	if recorded == replayed {
		return fmt.Sprint(recorded)
	}
	return fmt.Sprintf("%v → %v", recorded, replayed)
}

func withShare(n, of int) string {
	if n == 0 {
		return "0"
	}
	return fmt.Sprintf("%d (%.3g%%)", n, 100*float64(n)/float64(of))
}

func writeReplayRules(out io.Writer, r *simulate.ReplayReport) {
	if len(r.Rules) == 0 {
		return
	}
	fmt.Fprintln(out)
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	against := ""
	if r.Total.Against != nil {
		against = "AGAINST\t"
	}
	fmt.Fprintf(table, "RULE\tREFUSED: RECORDED\t%sNEW\n", against)
	for _, row := range r.Rules[:min(len(r.Rules), replayRows)] {
		fmt.Fprintf(table, "%s %s\t%d\t", wording.Cell(row.Kind), wording.Cell(row.Rule), row.Recorded)
		if row.Against != nil {
			fmt.Fprintf(table, "%d\t", *row.Against)
		}
		fmt.Fprintf(table, "%d\n", row.Replayed)
	}
	_ = table.Flush()
}
