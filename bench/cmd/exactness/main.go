// Command exactness shows how many calls pass in a second under a limit: for each
// library, under the steady load of many goroutines and under bursts.
//
// A call counts for a second only if it began and ended within it, so no figure is too
// high.
package main

import (
	"flag"
	"fmt"
	"os"
	"time"

	"github.com/penstock-go/penstock/clock"

	"github.com/penstock-go/penstock/bench/internal/load"
	"github.com/penstock-go/penstock/bench/internal/peer"
	"github.com/penstock-go/penstock/bench/internal/report"
)

type options struct {
	duration   time.Duration
	goroutines int
	limit      int
}

func main() {
	var o options
	flag.DurationVar(&o.duration, "for", 5*time.Second, "how long each limiter is under each load")
	flag.IntVar(&o.goroutines, "goroutines", 64, "how many call at once")
	flag.IntVar(&o.limit, "limit", 1000, "calls per second")
	document := flag.String("docs", "", "put the table into this document, between its markers")
	flag.Parse()
	if err := run(o, *document); err != nil {
		fmt.Fprintln(os.Stderr, "exactness:", err)
		os.Exit(1)
	}
}

func run(o options, document string) error {
	stop, err := peer.Start()
	if err != nil {
		return err
	}
	defer stop()
	table := &report.Table{
		Title: fmt.Sprintf("Passes at a limit of %d per second, %d goroutines:", o.limit, o.goroutines),
		Head: []string{
			"", "steady: mean of a second", "worst calendar second", "worst second of all",
			"bursts: worst calendar second", "worst second of all",
		},
	}
	c := clock.System() // limiters that take a clock share it with the measurement
	for _, limiter := range peer.Limiters(peer.Settings{Clock: c}) {
		if limiter.Name == peer.Adaptive {
			continue // has no limit
		}
		fmt.Fprintln(os.Stderr, "exactness:", limiter.Name)
		row, err := measure(c, limiter, o)
		if err != nil {
			return fmt.Errorf("%s: %w", limiter.Name, err)
		}
		table.Add(row...)
	}
	return report.Publish(document, "exactness", report.Environment(report.Command()), table)
}

func measure(c clock.Clock, limiter peer.Limiter, o options) ([]string, error) {
	row := []string{limiter.Name}
	for _, shape := range []load.Shape{load.Steady, load.Bursts} {
		try, err := limiter.New(o.limit)
		if err != nil {
			return nil, err
		}
		passes := load.Run(c, o.goroutines, o.duration, shape, try)
		if len(row) == 1 {
			row = append(row, fmt.Sprintf("%.0f", float64(len(passes))/o.duration.Seconds()))
		}
		row = append(row, fmt.Sprint(load.WorstCalendarSecond(passes)), fmt.Sprint(load.WorstSecond(passes)))
		if err := peer.Reset(); err != nil {
			return nil, err
		}
	}
	return row, nil
}
