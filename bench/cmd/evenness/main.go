// Command evenness shows how evenly queues release calls under overload: for each
// library, the resulting rate and the gaps between consecutive calls.
package main

import (
	"flag"
	"fmt"
	"os"
	"time"

	"github.com/aclements/go-moremath/stats"

	"github.com/penstock-go/penstock/clock"

	"github.com/penstock-go/penstock/bench/internal/load"
	"github.com/penstock-go/penstock/bench/internal/peer"
	"github.com/penstock-go/penstock/bench/internal/report"
)

func main() {
	duration := flag.Duration("for", 5*time.Second, "how long each queue is under load")
	goroutines := flag.Int("goroutines", 16, "how many wait at once")
	document := flag.String("docs", "", "put the tables into this document, between their markers")
	flag.Parse()
	if err := run(*duration, *goroutines, *document); err != nil {
		fmt.Fprintln(os.Stderr, "evenness:", err)
		os.Exit(1)
	}
}

func run(duration time.Duration, goroutines int, document string) error {
	stop, err := peer.Start()
	if err != nil {
		return err
	}
	defer stop()
	var tables []*report.Table
	for _, rate := range []int{100, 1000, 5000} {
		table := &report.Table{
			Title: fmt.Sprintf("%d per second, that is one every %v; %d goroutines wait:", rate, time.Second/time.Duration(rate), goroutines),
			Head:  []string{"", "calls per second", "gap p1", "p50", "p99", "max"},
		}
		for _, queue := range peer.Queues(peer.Settings{}) {
			fmt.Fprintln(os.Stderr, "evenness:", queue.Name, rate)
			try, err := queue.New(rate)
			if err != nil {
				return fmt.Errorf("%s: %w", queue.Name, err)
			}
			passes := load.Run(clock.System(), goroutines, duration, load.Steady, try)
			if err := peer.Reset(); err != nil {
				return err
			}
			table.Add(append([]string{queue.Name}, describe(passes)...)...)
		}
		tables = append(tables, table)
	}
	return report.Publish(document, "evenness", report.Environment(report.Command()), tables...)
}

// describe returns the cells of a row: the rate and the gaps between calls. The calls
// are sorted by time.
func describe(passes []load.Pass) []string {
	if len(passes) < 2 {
		return []string{"–", "–", "–", "–", "–"}
	}
	var gaps stats.Sample
	for i, pass := range passes[1:] {
		gaps.Xs = append(gaps.Xs, float64(pass.After-passes[i].After))
	}
	gaps.Sort()
	total := passes[len(passes)-1].After.Sub(passes[0].After)
	cells := []string{fmt.Sprintf("%.1f", float64(len(gaps.Xs))/total.Seconds())}
	for _, quantile := range []float64{0.01, 0.5, 0.99, 1} {
		cells = append(cells, time.Duration(gaps.Quantile(quantile)).Round(time.Microsecond).String())
	}
	return cells
}
