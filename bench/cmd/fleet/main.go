// Fleet measures limits of a whole fleet: how exactly processes of their own keep one limit
// through one real Redis or Valkey server, what that costs, and what happens when the server
// fails.
//
//	go run ./cmd/fleet                                  # everything, about seven minutes
//	go run ./cmd/fleet -list                            # the runs, and how long they take
//	go run ./cmd/fleet -run 'lease 1000/s|killed'       # those whose name matches
//
// It needs redis-server or valkey-server on the PATH, starts servers of its own and ends them.
//
// Each process has an engine with one flow rule, a sliding window of a second with the scope
// fleet, and calls it at random times (Poisson), whether or not earlier calls were answered. It
// writes down when it knew of each call whether it passed, on the monotonic clock that all
// processes of a machine have in common. This program counts what passed in all of them. What
// the server did is what the server says of itself (INFO commandstats): scripts are those for the
// limit, without the one by which an instance announces itself once a second. How long a call
// takes is Entry alone, at a moment when the process has just been asleep as a rule.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"regexp"
	"syscall"
	"time"

	"github.com/penstock-go/penstock/bench/internal/report"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stderr); err != nil {
		fmt.Fprintln(os.Stderr, "fleet:", err)
		stop()
		os.Exit(1) //nolint:gocritic // stop has been called
	}
}

// run is the program, or one of the processes that it starts.
func run(ctx context.Context, args []string, progress io.Writer) error {
	if len(args) > 0 && args[0] == roleInstance {
		return instanceProcess(ctx, os.Stdin, os.Stdout)
	}
	s, err := parseSettings(args)
	if err != nil {
		return err
	}
	if s.list {
		for _, sc := range s.scenarios {
			fmt.Printf("%-55s %v\n", sc.String(), sc.Duration)
		}
		fmt.Printf("about %v, since runs with few calls are made side by side\n", s.expected())
		return nil
	}
	return measureAll(ctx, s, progress)
}

// section is the section of the document that the tables are put into.
const section = "fleet"

// settings are what the command line says.
type settings struct {
	scenarios []scenario
	docs      string
	list      bool
}

func parseSettings(args []string) (settings, error) {
	flags := flag.NewFlagSet("fleet", flag.ContinueOnError)
	var s settings
	var p plan
	pattern := flags.String("run", "", "only the runs whose name matches this `expression`")
	flags.IntVar(&p.instances, "instances", 8, "how many processes share the limit")
	flags.DurationVar(&p.duration, "for", 10*time.Second, "how long each run with twice the limit takes")
	flags.Uint64Var(&p.seed, "seed", 1, "of the random times at which calls come")
	flags.BoolVar(&p.log, "log", false, "print what the engines log, from warnings on")
	flags.StringVar(&s.docs, "docs", "", "put the tables into this `document`, between their markers")
	flags.BoolVar(&s.list, "list", false, "only list the runs")
	if err := flags.Parse(args); err != nil {
		return s, err
	}
	if p.instances < 2 || p.instances > 100 || p.duration < 3*time.Second {
		return s, errors.New("-instances must be 2 to 100, and -for 3s or more")
	}
	matches, err := regexp.Compile(*pattern)
	if err != nil {
		return s, fmt.Errorf("-run: %w", err)
	}
	for _, sc := range p.scenarios() {
		if matches.MatchString(sc.String()) {
			s.scenarios = append(s.scenarios, sc)
		}
	}
	if len(s.scenarios) == 0 {
		return s, fmt.Errorf("-run: no run has a name that matches %q; -list shows the names", *pattern)
	}
	return s, nil
}

// expected returns about how long all runs take.
func (s *settings) expected() time.Duration {
	const starting = 1500 * time.Millisecond // of servers and processes
	var all time.Duration
	for _, group := range groups(s.scenarios) {
		all += group[0].Duration + starting
	}
	return all.Round(time.Second)
}

// measureAll makes all runs and publishes tables. Runs with few calls are made side by side.
func measureAll(ctx context.Context, s settings, progress io.Writer) error {
	if err := report.Check(s.docs, section); err != nil {
		return err // now rather than when all is measured
	}
	program := serverProgram()
	if program == "" {
		return errNoServer
	}
	fmt.Fprintf(progress, "%d runs, about %v\n", len(s.scenarios), s.expected())
	began, done := time.Now(), 0
	var all []result
	var failed []error
	for _, group := range groups(s.scenarios) {
		results, err := measureGroup(ctx, group)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil {
			failed = append(failed, err)
			fmt.Fprintln(progress, "failed:", err)
		}
		done += len(group)
		for i := range results {
			fmt.Fprintf(progress, "%3d of %d, %3.0fs: %s\n", done, len(s.scenarios), time.Since(began).Seconds(), &results[i])
		}
		all = append(all, results...)
	}
	if err := addBusyScripts(ctx, all); err != nil {
		failed = append(failed, err)
	}
	if len(failed) > 0 {
		s.docs = "" // what there is goes to the screen alone
	}
	environment := report.Machine(report.Command()) + ", with " + serverVersion(ctx, program) + "."
	return errors.Join(append(failed, report.Publish(s.docs, section, environment, tables(all)...))...)
}

// measureGroup makes runs side by side, and returns the results of those that succeeded.
func measureGroup(ctx context.Context, group []scenario) ([]result, error) {
	results, errs := make([]result, len(group)), make([]error, len(group))
	ended := make(chan struct{})
	for i, sc := range group {
		go func() {
			defer func() { ended <- struct{}{} }()
			if results[i], errs[i] = measure(ctx, sc); errs[i] != nil {
				errs[i] = fmt.Errorf("%s: %w", sc.String(), errs[i])
			}
		}()
	}
	for range group {
		<-ended
	}
	var succeeded []result
	for i := range results {
		if errs[i] == nil {
			succeeded = append(succeeded, results[i])
		}
	}
	return succeeded, errors.Join(errs...)
}
