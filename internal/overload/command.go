// Package overload compares what protections of a service reach in reference scenarios of
// overload, which are simulated, with what is wanted.
package overload

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"regexp"
	"slices"
	"strings"
)

// Run does what the arguments of a command line say. The protections are those of this
// package and those by the libraries. That goals were missed is an error, too.
func Run(ctx context.Context, args []string, out io.Writer, libraries ...Library) error {
	all := append(protections(), protectionsBy(libraries)...)
	s, err := parseSettings(args, out, all, len(libraries) > 0)
	if err != nil {
		return err
	}
	if s.docs != "" {
		scenes, err := embeddedScenes()
		if err != nil {
			return err
		}
		return writeDocs(ctx, s.docs, append(references(), scenes...), pictures(), compared(all), s.seeds)
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

// settings are what the command line says.
type settings struct {
	scenarios   []scenario
	protections []protection
	seeds       int    // 0: as the scenario says
	docs        string // the folder to write to, "" for none
	verbose     bool
}

// parseSettings reads the command line. The docs have a column for each library, so they are
// written only with them.
func parseSettings(args []string, out io.Writer, all []protection, writesDocs bool) (settings, error) {
	flags := flag.NewFlagSet("overload", flag.ContinueOnError)
	flags.SetOutput(out)
	only := flags.String("run", "", "run only scenarios whose name, or goals whose name, match this `regexp`")
	seeds := flags.Int("seeds", 0, "run each scenario with this many seeds (default: as each one says)")
	first := flags.Uint64("seed", 1, "the first of the seeds: each scenario is run with it and those that follow")
	protect := flags.String("protect", "latency", "protections to run, with commas between them, or all: "+strings.Join(names(all), ", "))
	rules := flags.String("rules", "", "protect the service with the rules of this `file`, beside those that -protect names")
	files := flags.String("scenes", "", "run the scenes of this `file or folder` only")
	verbose := flags.Bool("v", false, "write the calls of each second, by class, and limits")
	var s settings
	if writesDocs {
		flags.StringVar(&s.docs, "docs", "", "write the comparison of all protections into overload.md of this `folder`, and its pictures")
	}
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
	s.seeds, s.verbose = *seeds, *verbose
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
	others, err := named(all, *protect)
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

// named returns the protections in a list with commas.
func named(all []protection, list string) ([]protection, error) {
	if list == "all" {
		return all, nil
	}
	var found []protection
	for name := range strings.SplitSeq(list, ",") {
		i := slices.IndexFunc(all, func(p protection) bool { return p.name == name })
		if i < 0 {
			return nil, fmt.Errorf("-protect: there is no %q: choose of %s", name, strings.Join(names(all), ", "))
		}
		found = append(found, all[i])
	}
	return found, nil
}

var errMissed = errors.New("goals were missed")
