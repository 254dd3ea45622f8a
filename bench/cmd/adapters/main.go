// Command adapters counts how many calls of real clients pass in each second under a limit,
// over the loopback interface: for each framework, behind the adapters of Penstock and of
// Sentinel.
//
// A call counts for the second in which the client has its answer.
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"strings"
	"sync/atomic"
	"time"

	"github.com/penstock-go/penstock/clock"

	"github.com/penstock-go/penstock/bench/internal/load"
	"github.com/penstock-go/penstock/bench/internal/peer"
	"github.com/penstock-go/penstock/bench/internal/report"
	"github.com/penstock-go/penstock/bench/internal/service"
)

type options struct {
	seconds int
	clients int
	limit   int
}

func main() {
	var o options
	flag.IntVar(&o.seconds, "seconds", 10, "how long clients call each service")
	flag.IntVar(&o.clients, "clients", 16, "how many call at once")
	flag.IntVar(&o.limit, "limit", 100, "calls per second")
	document := flag.String("docs", "", "put the table into this document, between its markers")
	flag.Parse()
	if err := run(o, *document); err != nil {
		fmt.Fprintln(os.Stderr, "adapters:", err)
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
		Title: fmt.Sprintf("Calls that passed at a limit of %d per second, %d clients without a pause:", o.limit, o.clients),
		Head:  []string{"", "adapter", "in each second", "most in any second"},
	}
	for _, framework := range service.Frameworks() {
		for _, guard := range []service.Guard{service.Penstock, service.Sentinel} {
			fmt.Fprintln(os.Stderr, "adapters:", framework.Name, guard)
			row, err := measure(framework, guard, o)
			if err != nil {
				return fmt.Errorf("%s, %s: %w", framework.Name, guard, err)
			}
			table.Add(row...)
		}
	}
	return report.Publish(document, "adapter_exactness", report.Environment(report.Command()), table)
}

func measure(framework service.Framework, guard service.Guard, o options) (row []string, err error) {
	s, err := framework.New(guard, o.limit)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, peer.Reset()) }()
	client, stop, err := s.Listen()
	if err != nil {
		return nil, err
	}
	defer stop()
	var failed atomic.Pointer[error]
	passes := load.Run(clock.System(), o.clients, time.Duration(o.seconds)*time.Second, load.Steady, func(int) bool {
		passed, err := client.Call()
		if err != nil {
			failed.Store(&err)
		}
		return passed
	})
	if err := failed.Load(); err != nil {
		return nil, *err
	}
	return []string{
		framework.Name, string(guard), inEachSecond(passes, o.seconds), fmt.Sprint(load.WorstSecond(passes)),
	}, nil
}

// inEachSecond returns how many passes ended in each second of the calendar, from that on in
// which the first one did.
func inEachSecond(passes []load.Pass, seconds int) string {
	counts := make([]int, seconds)
	for _, pass := range passes {
		if i := pass.After.Time().Unix() - passes[0].After.Time().Unix(); i < int64(seconds) {
			counts[i]++
		}
	}
	return strings.Trim(fmt.Sprint(counts), "[]")
}
