// Command memory shows how much memory the statistics and the rules of resources take,
// in bytes and objects of the heap, names included.
package main

import (
	"flag"
	"fmt"
	"os"

	"github.com/penstock-go/penstock/bench/internal/peer"
	"github.com/penstock-go/penstock/bench/internal/report"
)

func main() {
	count := flag.Int("resources", 10_000, "over how many resources the cost of one is averaged")
	offered := flag.Int("names", 100_000, "how many names are offered")
	document := flag.String("docs", "", "put the tables into this document, between their markers")
	flag.Parse()
	if err := run(*count, *offered, *document); err != nil {
		fmt.Fprintln(os.Stderr, "memory:", err)
		os.Exit(1)
	}
}

func run(count, offered int, document string) error {
	stop, err := peer.Start()
	if err != nil {
		return err
	}
	defer stop()
	one := &report.Table{
		Title: fmt.Sprintf("One resource, the mean of %d:", count),
		Head:  []string{"", "called once, B", "objects", "with a rule, B", "objects", "active for a minute, B", "objects"},
	}
	all := &report.Table{
		Title: fmt.Sprintf("All together, when calls come with %d different names:", offered),
		Head:  []string{"", "MB", "objects"},
	}
	uses := []use{calledOnce, withRule, active}
	for _, framework := range peer.Frameworks() {
		fmt.Fprintln(os.Stderr, "memory:", framework.Name)
		row := []string{framework.Name}
		for i, use := range uses {
			cost, err := measure(framework, use, fmt.Sprint("use", i), count)
			if err != nil {
				return fmt.Errorf("%s: %w", framework.Name, err)
			}
			row = append(row, fmt.Sprintf("%.0f", cost.bytes/float64(count)), fmt.Sprintf("%.1f", cost.objects/float64(count)))
		}
		one.Add(row...)
		cost, err := measure(framework, calledOnce, "all", offered)
		if err != nil {
			return fmt.Errorf("%s: %w", framework.Name, err)
		}
		all.Add(framework.Name, fmt.Sprintf("%.1f", cost.bytes/1e6), fmt.Sprintf("%.0f", cost.objects))
	}
	return report.Publish(document, "memory", report.Environment(report.Command()), one, all)
}
