package command

import (
	"cmp"
	"fmt"
	"io"
	"time"

	"github.com/penstock-go/penstock/cmd/penstock/internal/wording"
	"github.com/penstock-go/penstock/inspect"
)

// writeFleet writes how an instance shares limits with the others of its service, and what
// each of them has of a limit.
func writeFleet(text io.Writer, f *inspect.Fleet) {
	if f == nil {
		return
	}
	fmt.Fprintf(text, "\nfleet: %s, %s\n", stateOfFleet(f), wording.Count(f.Rules, "rule"))
	if f.SharesError != "" {
		fmt.Fprintf(text, "what other instances use is not known: %s\n", wording.Cell(f.SharesError))
	}
	if len(f.Limits) == 0 {
		return
	}
	fmt.Fprintln(text)
	table := newTable(text)
	fmt.Fprintln(table, "LIMIT\tMODE\tPER WINDOW\tINSTANCE\tDEMAND/S\tPASSED/S\tSTATE")
	for i := range f.Limits {
		l := &f.Limits[i]
		rows := []inspect.FleetUse{{Instance: f.Instance, Demand: l.Demand, Passed: l.Passed}}
		if l.Fleet != nil {
			all := *l.Fleet
			all.Instance = "(all)"
			rows = append([]inspect.FleetUse{all}, l.Shares...)
		}
		for _, row := range rows {
			fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t%s\t%s\n", wording.Cell(l.Key), wording.Cell(string(l.Mode)),
				limitOfFleet(l), wording.Cell(row.Instance), decimal(row.Demand), decimal(row.Passed),
				wording.Cell(stateOfFleetLimit(l)))
		}
	}
	_ = table.Flush() // to a buffer
}

// limitOfFleet writes a limit. Of one on calls under way demand is the places wanted, and what has
// passed are those in use.
func limitOfFleet(l *inspect.FleetLimit) string {
	switch {
	case l.Places != nil:
		return decimal(l.Limit) + " at once"
	case l.Balance:
		return "balance"
	}
	return decimal(l.Limit) + " in " + wording.Cell(l.Window)
}

func stateOfFleet(f *inspect.Fleet) string {
	if !f.Connected {
		return "not connected: " + wording.Cell(cmp.Or(f.Error, "the backend has not answered yet"))
	}
	latency := time.Duration(f.Latency * float64(time.Second)).Round(10 * time.Microsecond)
	return fmt.Sprintf("connected as %s, %s, answers take %v, %s so far",
		wording.Cell(f.Instance), wording.Count(f.Instances, "instance"), latency, wording.Count(int(f.Outages), "outage"))
}

func stateOfFleetLimit(l *inspect.FleetLimit) string {
	if !l.Outage {
		return cmp.Or(l.Error, "shared")
	}
	text := fmt.Sprintf("outage since %s: %s, ", dateTime(l.Since), l.OnOutage)
	switch {
	case l.Granted.IsInfinite():
		text += "all calls pass here"
	case l.Granted == 0:
		text += "nothing passes here"
	case l.Places != nil:
		text += decimal(float64(l.Granted)) + " may be under way here"
	default:
		text += fmt.Sprintf("%s/s may pass here", decimal(float64(l.Granted)))
	}
	if l.Error != "" {
		text += ": " + l.Error
	}
	return text
}
