// Command lists shows what lists of millions of prefixes cost: to build, in memory and to
// look an address up, beside a table of prefixes that others use.
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"strconv"

	"github.com/penstock-go/penstock/bench/internal/report"
)

func main() {
	count := flag.Int("entries", 10_000_000, "how many entries each list has")
	document := flag.String("docs", "", "put the tables into this document, between their markers")
	one := flag.String("one", "", "measure the list of that library alone, and print it as JSON")
	of := flag.String("of", "", "with -one: of which entries")
	flag.Parse()
	var err error
	if *one != "" {
		err = printOne(*one, *of, *count)
	} else {
		err = run(*count, *document)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "lists:", err)
		os.Exit(1)
	}
}

// run measures each list in a process of its own, whose memory is that of the list.
func run(count int, document string) error {
	var tables []*report.Table
	calls := &report.Table{
		Title: "A call, entry and exit, under an access rule with such a list, in nanoseconds:",
		Head:  []string{"", "no rule", "list allows it", "list denies it", "list denies others"},
	}
	for _, entries := range entries() {
		table := &report.Table{
			Title: fmt.Sprintf("%d %s:", count, entries.about),
			Head:  []string{"", "build", "peak, MB", "kept, MB", "found, ns", "not found, ns", "allocs"},
		}
		for _, library := range libraries() {
			if library.reads[entries.name] == nil {
				continue
			}
			fmt.Fprintln(os.Stderr, "lists:", library.name, entries.name)
			cost, err := inProcess(library.name, entries.name, count)
			if err != nil {
				return fmt.Errorf("%s, %s: %w", library.name, entries.name, err)
			}
			table.Add(library.name, fmt.Sprintf("%.1fs", cost.Build.Seconds()), megabytes(cost.Peak), megabytes(cost.Kept),
				nanoseconds(cost.Found), nanoseconds(cost.NotFound), fmt.Sprintf("%.0f", cost.Allocs))
			if cost.Free > 0 {
				calls.Add(entries.name, nanoseconds(cost.Free), nanoseconds(cost.Allowed), nanoseconds(cost.Refused), nanoseconds(cost.Passed))
			}
		}
		tables = append(tables, table)
	}
	return report.Publish(document, "lists", report.Environment(report.Command()), append(tables, calls)...)
}

func nanoseconds(ns float64) string { return fmt.Sprintf("%.0f", ns) }

func megabytes(bytes float64) string { return strconv.Itoa(int(bytes / 1e6)) }

func inProcess(library, of string, count int) (cost cost, err error) {
	self, err := os.Executable()
	if err != nil {
		return cost, err
	}
	command := exec.Command(self, "-one", library, "-of", of, "-entries", strconv.Itoa(count)) //nolint:gosec // this program itself
	command.Stderr = os.Stderr
	out, err := command.Output()
	if err != nil {
		return cost, err
	}
	return cost, json.Unmarshal(out, &cost)
}

func printOne(library, of string, count int) error {
	cost, err := measure(library, of, count)
	if err != nil {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(cost)
}
