// Overload runs reference scenarios of overload in simulations, and compares what
// protections of a service reach with what is wanted.
//
//	go run ./soak/overload                                 # every scenario, under the latency strategy
//	go run ./soak/overload -run 'step' -seeds 5            # some of them, with more seeds
//	go run ./soak/overload -protect fixed,latency          # several protections side by side
//	go run ./soak/overload -rules my-rules.yaml            # rules of your own on the resource "work"
//	go run ./soak/overload -run A1 -v                      # the goal A1, and what happened in each second
//	go run ./soak/overload -scenes my-scenes               # scenes of your own: a file or a folder
//	go run ./soak/overload -docs docs                      # writes the comparison of all into docs/overload.md
//
// The exit status is 1 if a goal is missed.
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
	"runtime/debug"
	"slices"
	"strings"
	"syscall"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	debug.SetGCPercent(400) // simulations make much garbage and keep little
	if err := run(ctx, os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "overload:", err)
		stop()
		os.Exit(1) //nolint:gocritic // stop has been called
	}
}

// settings are what the command line says.
type settings struct {
	scenarios   []scenario
	protections []protection
	seeds       int    // 0: as the scenario says
	docs        string // the folder to write to, "" for none
	verbose     bool
}

func run(ctx context.Context, args []string, out io.Writer) error {
	s, err := parseSettings(args, out)
	if err != nil {
		return err
	}
	if s.docs != "" {
		scenes, err := embeddedScenes()
		if err != nil {
			return err
		}
		return writeDocs(ctx, s.docs, append(references(), scenes...), pictures(), compared(), s.seeds)
	}
	reports, err := runAll(ctx, s.scenarios, s.protections, s.seeds)
	if err != nil {
		return err
	}
	if s.verbose {
		writeSeconds(out, s.protections, reports)
	}
	return writeReports(out, s.protections, reports)
}

func parseSettings(args []string, out io.Writer) (settings, error) {
	flags := flag.NewFlagSet("overload", flag.ContinueOnError)
	flags.SetOutput(out)
	only := flags.String("run", "", "run only scenarios whose name, or goals whose name, match this `regexp`")
	seeds := flags.Int("seeds", 0, "run each scenario with this many seeds (default: as each one says)")
	first := flags.Uint64("seed", 1, "the first of the seeds: each scenario is run with it and those that follow")
	protect := flags.String("protect", "latency", "protections to run, with commas between them, or all: "+strings.Join(protectionNames(), ", "))
	rules := flags.String("rules", "", "protect the service with the rules of this `file`, beside those that -protect names")
	files := flags.String("scenes", "", "run the scenes of this `file or folder` only")
	verbose := flags.Bool("v", false, "write the calls of each second, by class, and limits")
	docs := flags.String("docs", "", "write the comparison of all protections into overload.md of this `folder`, and its pictures")
	if err := flags.Parse(args); err != nil {
		return settings{}, err
	}
	matches, err := regexp.Compile(*only)
	if err != nil {
		return settings{}, fmt.Errorf("-run %q: %w", *only, err)
	}
	if *seeds < 0 {
		return settings{}, fmt.Errorf("-seeds %d: must be 1 or more", *seeds)
	}
	s := settings{seeds: *seeds, docs: *docs, verbose: *verbose}
	scenes, err := sceneList(*files)
	if err != nil {
		return settings{}, err
	}
	for _, of := range scenes {
		if of, ok := of.matching(matches); ok {
			of.seed = *first - 1
			s.scenarios = append(s.scenarios, of)
		}
	}
	if len(s.scenarios) == 0 {
		return settings{}, fmt.Errorf("-run %q: matches no scenario", *only)
	}
	if s.verbose && s.seeds == 0 {
		s.seeds = 1
	}
	protectGiven := false
	flags.Visit(func(f *flag.Flag) { protectGiven = protectGiven || f.Name == "protect" })
	if *rules != "" {
		if s.protections, err = protectionOfFile(*rules); err != nil || !protectGiven {
			return s, err
		}
	}
	others, err := protectionsNamed(*protect)
	s.protections = append(s.protections, others...)
	return s, err
}

// sceneList returns the scenes of a file or folder, or everything that comes along.
func sceneList(files string) ([]scenario, error) {
	if files != "" {
		return scenesOf(files)
	}
	scenes, err := embeddedScenes()
	return append(scenarios(), scenes...), err
}

// matching returns the scenario if its name matches, else with the goals whose names do,
// if there are any.
func (s scenario) matching(only *regexp.Regexp) (scenario, bool) {
	if !only.MatchString(s.name) {
		s.goals = slices.DeleteFunc(slices.Clone(s.goals), func(g goal) bool { return !only.MatchString(g.name) })
	}
	return s, len(s.goals) > 0
}

// protectionOfFile returns the protection by the rules of a file.
func protectionOfFile(path string) ([]protection, error) {
	document, err := os.ReadFile(path) //nolint:gosec // a file that the user names
	if err != nil {
		return nil, err
	}
	return []protection{{name: path, document: constantly(string(document))}}, nil
}

// protectionsNamed returns the protections in a list with commas.
func protectionsNamed(list string) ([]protection, error) {
	if list == "all" {
		return protections(), nil
	}
	var found []protection
	for name := range strings.SplitSeq(list, ",") {
		p, ok := findProtection(name)
		if !ok {
			return nil, fmt.Errorf("-protect: there is no %q: choose of %s", name, strings.Join(protectionNames(), ", "))
		}
		found = append(found, p)
	}
	return found, nil
}

var errMissed = errors.New("goals were missed")
