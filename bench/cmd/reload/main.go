// Command reload shows what it costs to change rules while a service runs: how long
// it takes to load them, and how much longer calls take meanwhile.
package main

import (
	"flag"
	"fmt"
	"os"
	"time"

	"github.com/penstock-go/penstock/bench/internal/peer"
	"github.com/penstock-go/penstock/bench/internal/report"
)

func main() {
	rounds := flag.Int("rounds", 21, "how often each set of rules is loaded; the median counts")
	duration := flag.Duration("for", 5*time.Second, "how long calls are observed, each way")
	document := flag.String("docs", "", "put the tables into this document, between their markers")
	flag.Parse()
	if err := run(*rounds, *duration, *document); err != nil {
		fmt.Fprintln(os.Stderr, "reload:", err)
		os.Exit(1)
	}
}

func run(rounds int, duration time.Duration, document string) error {
	stop, err := peer.Start()
	if err != nil {
		return err
	}
	defer stop()
	loads := &report.Table{
		Title: "Time to load rules, each on a resource of its own:",
		Head:  []string{"", "1,000 rules, all changed", "one changed", "10,000 rules, all changed", "one changed"},
	}
	calls := &report.Table{
		Title: "What a call takes while 1,000 rules, all changed, are loaded again and again, and while they are not:",
		Head:  []string{"", "loads per second", "p50", "p99", "p99.9", "max"},
	}
	for _, framework := range peer.Frameworks() {
		fmt.Fprintln(os.Stderr, "reload:", framework.Name)
		if err := addLoads(loads, framework, rounds); err != nil {
			return fmt.Errorf("%s: %w", framework.Name, err)
		}
		if err := addCalls(calls, framework, duration); err != nil {
			return fmt.Errorf("%s: %w", framework.Name, err)
		}
	}
	return report.Publish(document, "reload", report.Environment(report.Command()), loads, calls)
}

// twoSets returns two sets of rules on the resources, ready to be loaded. They differ
// in the limits of the first rules.
func twoSets(guards peer.Guards, resources []string, changed int) (sets [2]func() error) {
	for i := range sets {
		rules := peer.RulesOn(resources, peer.Reject)
		for j := range changed {
			rules[j].Limit /= float64(2 + i)
		}
		sets[i] = guards.Prepare(rules)
	}
	return sets
}
