package command

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/penstock-go/penstock/cmd/penstock/internal/wording"
	"github.com/penstock-go/penstock/inspect"
)

// engineStatusOptions say which services and which rules the status is asked of.
type engineStatusOptions struct {
	engines []string
	rule    string
}

func (o engineStatusOptions) check(cmd *cobra.Command) error {
	for _, flag := range []string{"wait", "min-instances", "timeout", "strict", "app", "prefix", "stored"} {
		if cmd.Flags().Changed(flag) {
			return fmt.Errorf("--engine and --%s are two places to look at: leave one out", flag)
		}
	}
	for _, address := range o.engines {
		if _, err := engineURL(address); err != nil {
			return err
		}
	}
	return nil
}

// engineAnswer is the answer of one service about its state.
type engineAnswer struct {
	engine  string
	answer  any // as the package inspect gives it
	inOrder bool
	write   func(io.Writer)
	err     error
}

// engineStatus prints the status of running services, all of which are asked at once. The
// exit code is the highest one of any.
func (env Env) engineStatus(ctx context.Context, o engineStatusOptions, output format) error {
	answers := askEach(ctx, o.engines, o.ask)
	if len(answers) == 1 {
		if one := answers[0]; one.err == nil {
			env.printEngine(one.answer, output, one.write)
		}
		return codeOf(answers[0])
	}
	env.printEngines(answers, output)
	code := ExitDone
	for _, a := range answers {
		if f, ok := errors.AsType[failure](codeOf(a)); ok {
			code = max(code, f.code)
		}
	}
	if code == ExitDone {
		return nil
	}
	return failure{code: code}
}

// ask asks one service.
func (o engineStatusOptions) ask(ctx context.Context, address string) engineAnswer {
	name := shownAddress(address)
	if o.rule != "" {
		var found inspect.Limiters
		err := askEngine(ctx, address, "limiters", inspect.RuleQuery{Rule: o.rule}.Query(), &found)
		return engineAnswer{name, found, true, func(text io.Writer) { writeLimiters(text, found) }, err}
	}
	var status inspect.Status
	err := askEngine(ctx, address, "status", nil, &status)
	return engineAnswer{name, status, inOrder(status), func(text io.Writer) { writeStatus(text, status) }, err}
}

// codeOf returns the error that the answer of one service ends the command with.
func codeOf(a engineAnswer) error {
	switch {
	case a.err != nil:
		return a.err
	case !a.inOrder:
		return failure{code: ExitNo}
	}
	return nil
}

// printEngines prints the answers of several services, in the order in which they were
// named.
func (env Env) printEngines(answers []engineAnswer, output format) {
	if output == asJSON {
		type answerJSON struct {
			Engine string `json:"engine"`
			Status any    `json:"status,omitempty"`
			Error  string `json:"error,omitempty"`
		}
		list := make([]answerJSON, len(answers))
		for i, a := range answers {
			if list[i].Engine = a.engine; a.err != nil {
				list[i].Error = a.err.Error()
			} else {
				list[i].Status = a.answer
			}
		}
		env.writeJSON(list)
		return
	}
	for i, a := range answers {
		if i > 0 {
			fmt.Fprintln(env.Out)
		}
		fmt.Fprintf(env.Out, "%s:\n", wording.Printable(a.engine))
		if a.err != nil {
			fmt.Fprintln(env.Out, wording.Printable(a.err.Error()))
			continue
		}
		env.printEngine(a.answer, output, a.write)
	}
}

func (env Env) printEngine(answer any, output format, write func(io.Writer)) {
	if output == asJSON {
		env.writeJSON(answer)
		return
	}
	var text bytes.Buffer
	write(&text)
	for line := range bytes.Lines(text.Bytes()) {
		fmt.Fprintln(env.Out, wording.Printable(strings.TrimRight(string(line), " \n")))
	}
}

// inOrder says whether all rules and lists of the service are those that its sources hold.
func inOrder(status inspect.Status) bool {
	for _, s := range status.Sources {
		if stateOfSource(s) != inForce {
			return false
		}
	}
	for _, l := range status.Lists {
		if l.Error != "" || l.HeldBack != "" || !l.CopiedAt.IsZero() {
			return false
		}
	}
	return len(status.MissingLists) == 0
}

// inForce is the state of a source or list that is as it should be.
const inForce = "in force"

func stateOfSource(s inspect.Source) string {
	rejected := 0
	for _, d := range s.Documents {
		if d.Rejected != "" {
			rejected++
		}
	}
	switch {
	case s.HeldBack != "":
		return "held back: " + s.HeldBack
	case !s.CopiedAt.IsZero():
		return "on a copy of " + dateTime(s.CopiedAt)
	case !s.Connected:
		return "not connected: " + cmp.Or(s.Error, "not read yet")
	case rejected > 0:
		return wording.Count(rejected, "document") + " rejected"
	}
	return inForce
}

func stateOfList(l inspect.List) string {
	state := inForce
	switch {
	case l.HeldBack != "":
		state = "held back: " + l.HeldBack
	case !l.InForce:
		state = "not in force"
	case !l.CopiedAt.IsZero():
		state = "on a copy of " + dateTime(l.CopiedAt)
	}
	if l.Error != "" {
		state += ", present version rejected"
	}
	return state
}

func writeStatus(text io.Writer, s inspect.Status) {
	fmt.Fprintf(text, "%s, of revision %d", wording.Count(s.Rules, "rule"), s.Revision)
	if !s.AppliedAt.IsZero() {
		fmt.Fprintf(text, ", in force since %s", dateTime(s.AppliedAt))
	}
	fmt.Fprintln(text)
	if s.Unmatched > 0 {
		fmt.Fprintf(text, "no call has matched %s: %s\n", wording.Count(s.Unmatched, "rule"), unmatched(s))
	}
	for _, forced := range s.ForcedKinds {
		fmt.Fprintf(text, "all rules of kind %s are forced to be %s\n", wording.Cell(string(forced.Kind)), wording.Cell(forced.State))
	}
	writeForced(text, s)
	if len(s.Sources) > 0 {
		fmt.Fprintln(text)
		table := newTable(text)
		fmt.Fprintln(table, "SOURCE\tREVISION\tDOCUMENTS\tSTATE")
		for _, source := range s.Sources {
			fmt.Fprintf(table, "%s\t%d\t%d\t%s\n", wording.Cell(source.Name), source.Revision, len(source.Documents),
				wording.Cell(stateOfSource(source)))
		}
		_ = table.Flush() // to a buffer
	}
	if len(s.Lists) > 0 {
		fmt.Fprintln(text)
		table := newTable(text)
		fmt.Fprintln(table, "LIST\tSOURCE\tENTRIES\tSINCE\tDIGEST\tSTATE")
		for _, l := range s.Lists {
			fmt.Fprintf(table, "%s\t%s\t%d\t%s\t%s\t%s\n", wording.Cell(l.Name), wording.Cell(sourceOfList(l)), l.Entries,
				dateTime(l.Since), cmp.Or(l.Digest[:min(len(l.Digest), 12)], "-"), wording.Cell(stateOfList(l)))
		}
		_ = table.Flush()
	}
	for _, l := range s.MissingLists {
		fmt.Fprintf(text, "\nlist %s, which %s names, is not there\n", wording.Cell(l.Name), wording.Cell(strings.Join(l.Rules, ", ")))
	}
	writeRejections(text, s)
	writeSignals(text, s.Signals)
	writeFleet(text, s.Fleet)
	writeLimiters(text, inspect.Limiters{Limiters: s.Limiters, MoreLimiters: s.MoreLimiters, MoreValues: s.MoreValues})
}

// writeSignals writes what the signals show that rules read.
func writeSignals(text io.Writer, signals []inspect.Signal) {
	if len(signals) == 0 {
		return
	}
	fmt.Fprintln(text)
	table := newTable(text)
	fmt.Fprintln(table, "SIGNAL\tVALUE\tSAMPLED\tREAD BY\tSTATE")
	for _, s := range signals {
		value := "-"
		if s.Value != nil {
			value = decimal(*s.Value)
		}
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\n", wording.Cell(string(s.Signal)), value, dateTime(s.At),
			wording.Cell(strings.Join(s.Rules, ", ")), wording.Cell(cmp.Or(s.Error, "known")))
	}
	_ = table.Flush()
}

// writeRejections writes what is wrong with documents and lists that are not in force.
func writeRejections(text io.Writer, s inspect.Status) {
	write := func(what, source, message string) {
		if message == "" {
			return
		}
		fmt.Fprintf(text, "\n%s of %s is rejected:\n", what, source)
		for line := range strings.Lines(message) {
			fmt.Fprintf(text, "  %s\n", strings.TrimRight(line, "\n"))
		}
	}
	for _, source := range s.Sources {
		for _, d := range source.Documents {
			write(wording.Cell(d.Name), wording.Cell(source.Name), d.Rejected)
		}
	}
	for _, l := range s.Lists {
		write("list "+wording.Cell(l.Name), wording.Cell(sourceOfList(l)), l.Error)
	}
}

// unmatched names at most ten of the rules that no call has matched.
func unmatched(s inspect.Status) string {
	names := s.UnmatchedRules[:min(len(s.UnmatchedRules), 10)]
	text := strings.Join(names, ", ")
	if more := s.Unmatched - len(names); more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

func sourceOfList(l inspect.List) string {
	if l.Source == "" {
		return "made in code"
	}
	return l.Source + " " + l.Document
}

func writeLimiters(text io.Writer, found inspect.Limiters) {
	for _, l := range found.Limiters {
		state := describeGauges(l.Gauges)
		if l.State != "" {
			state = append([]string{l.State}, state...)
		}
		fmt.Fprintf(text, "\n%s rule %q on %s", l.Kind, l.Rule, wording.Cell(l.Resource))
		if l.Shadow {
			fmt.Fprint(text, ", a shadow")
		}
		if len(state) > 0 {
			fmt.Fprintf(text, ": %s", strings.Join(state, ", "))
		}
		fmt.Fprintln(text)
		writeNotes(text, "  ", l.Notes)
		writeValues(text, "  ", l.Values)
	}
	var left []string
	if found.MoreLimiters > 0 {
		left = append(left, wording.Count(found.MoreLimiters, "rule")+" more")
	}
	if found.MoreValues > 0 {
		left = append(left, "the values of "+wording.Count(found.MoreValues, "rule"))
	}
	if len(left) > 0 {
		fmt.Fprintf(text, "\nLeft out: %s; --rule shows the rules of one name.\n", strings.Join(left, ", "))
	}
}

// writeNotes writes what is to be said of the state of a rule.
func writeNotes(text io.Writer, indent string, notes []inspect.Note) {
	for _, n := range notes {
		fmt.Fprintf(text, "%ssince %s: %s\n", indent, dateTime(n.Since), wording.Cell(n.Text))
	}
}

// writeValues writes a table of the values that a rule has seen most often.
func writeValues(text io.Writer, indent string, values []inspect.Value) {
	if len(values) == 0 {
		return
	}
	table := newTable(text)
	fmt.Fprintf(table, "%sVALUE\tPASSED\tREFUSED\n", indent)
	for _, v := range values {
		fmt.Fprintf(table, "%s%s\t%d\t%d\n", indent, shortCell(v.Value), v.Passed, v.Refused)
	}
	_ = table.Flush()
}

// shortCell returns text for a cell that may be anything, cut to 60 characters.
func shortCell(text string) string {
	const most = 60
	text = wording.Cell(text)
	if runes := []rune(text); len(runes) > most {
		text = string(runes[:most]) + "…"
	}
	return cmp.Or(text, `""`)
}

func newTable(text io.Writer) *tabwriter.Writer { return tabwriter.NewWriter(text, 0, 0, 2, ' ', 0) }

func dateTime(t time.Time) string {
	if t.IsZero() {
		return "-"
	}
	return t.UTC().Format(time.DateTime)
}
