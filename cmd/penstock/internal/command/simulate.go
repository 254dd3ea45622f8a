package command

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/penstock-go/penstock/cmd/penstock/internal/chart"
	"github.com/penstock-go/penstock/cmd/penstock/internal/documents"
	"github.com/penstock-go/penstock/cmd/penstock/internal/scenario"
	"github.com/penstock-go/penstock/cmd/penstock/internal/wording"
	"github.com/penstock-go/penstock/rule"
	"github.com/penstock-go/penstock/rules"
	"github.com/penstock-go/penstock/simulate"
)

const simulateLong = `Simulate sends calls through the rules on a virtual clock, with the same engine
that services run, and shows second by second how many pass. The same rules and
load always give the same result.

The load is YAML:

  streams:
    - {resource: orders, rate: 2000, until: 20s}
    - {resource: orders, rate: 10, shape: poisson, from: 5, until: 8, origin: mobile, tokens: 2}
    - {resource: pay, times: [0, 0.1, 0.1], attrs: {user: [u1, u2]}, priority: low, inbound: true}
    - {resource: pay, rate: 50, until: 30, serviceTime: 20ms, fails: 0.3, timeout: 500ms}
    - {resource: pay, rate: 50, phases: [{until: 10, serviceTime: 20ms}, {until: 20, fails: 1}, {}], until: 30}
    - orders 100/s from 5s to 8s     # or in short
  servers:                           # serve the calls of some resources, one after the other
    - name: db
      resources: ["orders*"]
      workers: 8
      service: {mean: 10ms, shape: exponential}   # constant, exponential, lognormal, bimodal
      timeSlice: 10ms                # calls share the workers in turns, as processors
      quota: {time: 150ms, period: 100ms}         # of processor time, for all workers
      slowdown: 0.02                 # by each call that waits for a worker
      changes: [{at: 20s, service: {mean: 40ms}}]
      stalls: [{at: 25s, for: 500ms}]
    - name: archive
      resources: ["orders*"]
      share: 0.1                     # of the calls; the others go on without it
      unlimited: true                # in place of workers: nobody waits for one
      service: {mean: 20ms}
      services: [{resources: orders, mean: 200ms}]   # of some of the resources
  signals: [{at: 10s, cpu: 0.9}]     # what rules read that look at signals of the system
  recharges: [{at: 10d, rule: credit, tokens: 1000, attrs: {tenant: acme}}]   # of balances
  fleet:                             # how instances share the limits of rules with scope fleet
    latency: 2ms                     # of a round trip to the backend that counts, or as service of a server
    loss: 0.01                       # the share of replies that get lost
    outages: [{from: 5s, until: 7s, empty: true}]   # empty: the backend has lost its counts afterwards
    skew: 0.9                        # the share of the calls that goes to the first instance
  start: 2026-03-28T22:00:00Z        # for windows of the calendar, such as days
  seed: 7                            # of all that is random

Times are in seconds or have a unit, as 500ms and 40d. Without --duration, streams
need an until, and the simulation ends with the second in which the last call
arrives. "-" reads the rules or the load from standard input. With --instances, so many instances of
the service share the load, each with an engine and servers of its own; results are
those of all together. docs/testing-rules.md describes every field of loads and
results.

With --calls in place of --load it replays calls that penstock record has written, at
the instants at which they came: how many of whom the rules would have refused, beside
what happened and, with --against, beside what other rules would have done.
docs/recording.md says what a replay can know.

Text is a chart for the terminal and a table; json has a row for each second and
resource, for each change of a rule's state, for each second and limit that a rule
finds by itself or that instances share and, with --events, for each call, with times
in seconds; svg is a picture.

Exit code: 0 when it is done, 1 when there are mistakes in the rules or the load,
2 for a wrong command line, 3 when a file cannot be read or written.`

// simulation is the flags of penstock simulate.
type simulation struct {
	rules      []string
	load, file string
	lists      *string
	duration   seconds
	instances  int
	events     bool
	output     *format
	recorded   replayFlags
}

func newSimulate(env Env) *cobra.Command {
	var s simulation
	cmd := &cobra.Command{
		Use:   "simulate --rules PATH... {--load FILE | --calls FILE} [flags]",
		Short: "Show what rules do to a load, second by second, or to recorded calls",
		Long:  simulateLong,
		Example: `  penstock simulate --rules rules/ --load peak.yaml
  penstock simulate --rules rules/ --load peak.yaml --output svg --file peak.svg
  penstock simulate --rules rules/ --load peak.yaml --output json | jq '.seconds[].passed'
  penstock simulate --rules rules/ --load peak.yaml --instances 50
  penstock simulate --rules new/ --calls friday.calls --against old/`,
		RunE: func(cmd *cobra.Command, more []string) error {
			s.rules = append(s.rules, more...) // "--rules a b" leaves b behind
			if err := s.check(cmd); err != nil {
				return err
			}
			if s.recorded.calls != "" {
				return s.replay(cmd, env)
			}
			return s.run(cmd, env)
		},
	}
	flags := cmd.Flags()
	flags.StringArrayVarP(&s.rules, "rules", "r", nil, "take the rules of this `path`: a file or a directory; may be given again")
	flags.StringVarP(&s.load, "load", "l", "", "send the calls that this `file` describes")
	s.lists = listsFlag(cmd)
	flags.VarP(&s.duration, "duration", "d", "simulate for this long (default until the last call)")
	flags.IntVar(&s.instances, "instances", 1, "simulate a fleet of this `number` of instances that share the load")
	flags.BoolVar(&s.events, "events", false, "list each call and its outcome")
	s.recorded.add(cmd)
	s.output = formatFlag(cmd, asSVG)
	flags.StringVarP(&s.file, "file", "f", "", "write the answer to this `file`")
	return cmd
}

// check returns what is wrong with the command line.
func (s simulation) check(cmd *cobra.Command) error {
	if err := s.recorded.check(cmd); err != nil {
		return err
	}
	switch {
	case len(s.rules) == 0:
		return errors.New("name the rules: --rules PATH")
	case s.recorded.calls != "" && *s.output == asSVG:
		return errors.New("there is no picture of recorded calls: write them as text or json")
	case s.recorded.calls != "":
		return nil
	case s.load == "":
		return errors.New("name the load: --load FILE, or recorded calls: --calls FILE")
	case slices.Contains(s.rules, "-") && s.load == "-":
		return errors.New("standard input holds the rules or the load, not both: name a file for one of them")
	case cmd.Flags().Changed("duration") && (s.duration <= 0 || time.Duration(s.duration) > simulate.MaxDuration):
		return fmt.Errorf("--duration %v: must be longer than 0s and at most %v", time.Duration(s.duration), simulate.MaxDuration)
	case s.instances < 1 || s.instances > simulate.MaxInstances:
		return fmt.Errorf("--instances %d: must be from 1 to %d", s.instances, simulate.MaxInstances)
	case *s.output == asSVG && s.events:
		return errors.New("a picture has no room for --events: write them as text or json")
	default:
		return nil
	}
}

func (s simulation) run(cmd *cobra.Command, env Env) error {
	set, err := env.judgeSound(cmd.Context(), s.rules, documents.Mistakes)
	if err != nil {
		return err
	}
	lists, err := env.readLists(cmd.Context(), *s.lists)
	if err != nil {
		return err
	}
	env.warnOfLists(set.Rules, lists, *s.lists)
	load, source, err := s.readLoad(cmd.Context(), env)
	if err != nil {
		return err
	}
	bar := progress{out: env.Err, patience: 500 * time.Millisecond, silent: !env.ErrIsTerminal}
	result, err := simulate.Run(cmd.Context(), set.Rules, load.Load,
		simulate.Options{
			Duration: time.Duration(s.duration), Instances: s.instances, Events: s.events, Lists: lists, Progress: bar.show,
			Kinds: env.Kinds,
		})
	bar.end()
	if err != nil {
		return env.mistaken(source, load.Explain(err))
	}
	return s.write(env, result)
}

func (s simulation) readLoad(ctx context.Context, env Env) (scenario.Load, documents.Document, error) {
	read, err := documents.Read(ctx, env.input(), s.load)
	if err != nil {
		return scenario.Load{}, documents.Document{}, failure{ExitFailed, err}
	}
	if len(read) != 1 {
		return scenario.Load{}, documents.Document{}, failure{ExitFailed, fmt.Errorf("%s is a directory: name the file with the load", s.load)}
	}
	source := read[0]
	source.Place = cmp.Or(source.Place, source.Name)
	load, err := scenario.ParseLoad(source.Place, source.Data)
	if err != nil {
		return load, source, env.mistaken(source, err)
	}
	return load, source, nil
}

// mistaken shows what is wrong with a document, if that is what the error is
// about, and returns the failure.
func (env Env) mistaken(source documents.Document, err error) error {
	var problems rules.Problems
	if !errors.As(err, &problems) {
		return failure{ExitFailed, err}
	}
	documents.Collection{Documents: []documents.Document{source}, Problems: problems}.Show(env.Err)
	return failure{ExitNo, errors.New(wording.Count(len(problems), "mistake") + " in " + source.Place)}
}

// write writes the result to where it is wanted.
func (s simulation) write(env Env, result simulate.Result) error {
	terminal := env.terminal()
	if s.file != "" {
		terminal = chart.Terminal{}
	}
	return s.writeTo(env, func(w io.Writer) error { return s.draw(w, result, terminal, env.Kinds) })
}

// writeTo has an answer written to where it is wanted.
func (s simulation) writeTo(env Env, draw func(io.Writer) error) error {
	var b bytes.Buffer
	var err error
	if s.file == "" {
		err = draw(env.Out)
	} else if err = draw(&b); err == nil {
		err = os.WriteFile(s.file, b.Bytes(), 0o644) //nolint:gosec // as any file that a user writes
	}
	if err != nil {
		return failure{ExitFailed, err}
	}
	return nil
}

// encodeJSON writes a value as one line of JSON.
func encodeJSON(w io.Writer, value any) error {
	encoder := json.NewEncoder(w)
	encoder.SetEscapeHTML(false)
	return encoder.Encode(value)
}

func (s simulation) draw(w io.Writer, result simulate.Result, terminal chart.Terminal, own []rule.Definition) error {
	kinds := rules.NewTable(own...).Definitions()
	switch *s.output {
	case asJSON:
		return encodeJSON(w, result)
	case asSVG:
		return chart.SVG(w, fmt.Sprintf("%s under %s", s.load, strings.Join(s.rules, ", ")), result, kinds...)
	default:
		if err := chart.Text(w, result, terminal, kinds...); err != nil || !s.events {
			return err
		}
		return chart.Events(w, result.Events)
	}
}

// terminal returns what is known of the one that the answer goes to.
func (env Env) terminal() chart.Terminal {
	t := chart.Terminal{Colour: env.painter().colours, Width: env.Width}
	if columns, err := strconv.Atoi(env.Getenv("COLUMNS")); err == nil && columns > 0 {
		t.Width = columns // the user knows better
	}
	return t
}
