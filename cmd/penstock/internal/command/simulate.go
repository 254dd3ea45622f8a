package command

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/penstock-go/penstock/cmd/penstock/internal/chart"
	"github.com/penstock-go/penstock/cmd/penstock/internal/documents"
	"github.com/penstock-go/penstock/cmd/penstock/internal/scenario"
	"github.com/penstock-go/penstock/rules"
	"github.com/penstock-go/penstock/simulate"
)

const simulateLong = `Simulate sends calls through the rules on a virtual clock, with the very
controllers that services run, and shows what became of the calls second by
second. The same rules and load always give the same answer.

The load is YAML:

  streams:
    - {resource: orders, rate: 2000, until: 20s}
    - {resource: orders, rate: 10, shape: poisson, from: 5, until: 8, origin: mobile, tokens: 2}
    - {resource: orders, times: [0, 0.1, 0.1], serviceTime: 20ms, args: [42]}
    - orders 100/s from 5s to 8s     # or in short
  seed: 7                            # of the poisson streams

Times are in seconds or have a unit. Without --duration, streams need an until,
and the simulation ends with the second in which the last call arrives. --load -
reads standard input.

Text is a chart for the terminal and a table; json has a row for each second and
resource and, with --events, one for each call; svg is a picture.

Exit codes: 0 it is done, 1 there are mistakes in the rules or the load, 2 the
command line is wrong, 3 a file cannot be read or written.`

// simulation is the flags of penstock simulate.
type simulation struct {
	rules        []string
	load         string
	duration     time.Duration
	events       bool
	output, file string
}

const asSVG format = "svg"

func newSimulate(env Env) *cobra.Command {
	var s simulation
	cmd := &cobra.Command{
		Use:   "simulate --rules PATH... --load FILE",
		Short: "Show what rules do to a load, second by second",
		Long:  simulateLong,
		Example: `  penstock simulate --rules rules/ --load peak.yaml
  penstock simulate --rules rules/ --load peak.yaml --output svg --file peak.svg
  penstock simulate --rules rules/ --load peak.yaml --output json | jq '.seconds[].passed'`,
		RunE: func(cmd *cobra.Command, more []string) error {
			s.rules = append(s.rules, more...) // "--rules a b" leaves b behind
			if err := s.check(cmd); err != nil {
				return err
			}
			return s.run(cmd, env)
		},
	}
	flags := cmd.Flags()
	flags.StringArrayVarP(&s.rules, "rules", "r", nil, "take the rules of this `path`: a file or a directory; may be given again")
	flags.StringVarP(&s.load, "load", "l", "", "send the calls that this `file` describes")
	flags.DurationVarP(&s.duration, "duration", "d", 0, "simulate so long (default: until the last call)")
	flags.BoolVar(&s.events, "events", false, "tell of each call what became of it")
	flags.StringVarP(&s.output, "output", "o", string(asText), "write the answer as `text|json|svg`")
	flags.StringVarP(&s.file, "file", "f", "", "write the answer to this `file`")
	return cmd
}

// check returns what is wrong with the command line.
func (s simulation) check(cmd *cobra.Command) error {
	switch {
	case len(s.rules) == 0:
		return errors.New("name the rules: --rules PATH")
	case s.load == "":
		return errors.New("name the load: --load FILE")
	case cmd.Flags().Changed("duration") && (s.duration <= 0 || s.duration > simulate.MaxDuration):
		return fmt.Errorf("--duration %v: must be longer than 0s and at most %v", s.duration, simulate.MaxDuration)
	}
	switch format(s.output) {
	case asText, asJSON:
		return nil
	case asSVG:
		if s.events {
			return errors.New("a picture has no room for --events: write them as text or json")
		}
		return nil
	default:
		return fmt.Errorf("--output %q: must be %s, %s or %s", s.output, asText, asJSON, asSVG)
	}
}

func (s simulation) run(cmd *cobra.Command, env Env) error {
	set, err := env.judgeSound(s.rules)
	if err != nil {
		return err
	}
	load, source, err := s.readLoad(env)
	if err != nil {
		return err
	}
	bar := progress{out: env.Err, patience: 500 * time.Millisecond, silent: !isTerminal(env.Err)}
	result, err := simulate.Run(cmd.Context(), set.Rules, load.Load,
		simulate.Options{Duration: s.duration, Events: s.events, Progress: bar.show})
	bar.end()
	if err != nil {
		return env.mistaken(source, load.Explain(err))
	}
	return s.write(env, result)
}

func (s simulation) readLoad(env Env) (scenario.Load, documents.Document, error) {
	read, err := documents.Read(env.In, s.load)
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
	return failure{ExitNo, errors.New(documents.Count(len(problems), "mistake") + " in " + source.Place)}
}

// write writes the result to where it is wanted.
func (s simulation) write(env Env, result simulate.Result) error {
	if s.file == "" {
		if err := s.draw(env.Out, result, env.terminal()); err != nil {
			return failure{ExitFailed, err}
		}
		return nil
	}
	var b bytes.Buffer
	err := s.draw(&b, result, chart.Terminal{})
	if err == nil {
		err = os.WriteFile(s.file, b.Bytes(), 0o644) //nolint:gosec // as any file that a user writes
	}
	if err != nil {
		return failure{ExitFailed, err}
	}
	return nil
}

func (s simulation) draw(w io.Writer, result simulate.Result, terminal chart.Terminal) error {
	switch format(s.output) {
	case asJSON:
		encoder := json.NewEncoder(w)
		encoder.SetEscapeHTML(false)
		return encoder.Encode(result)
	case asSVG:
		return chart.SVG(w, fmt.Sprintf("%s under %s", s.load, strings.Join(s.rules, ", ")), result.Seconds)
	default:
		if err := chart.Text(w, result.Seconds, terminal); err != nil || !s.events {
			return err
		}
		return chart.Events(w, result.Events)
	}
}

// terminal returns what is known of the one that the answer goes to.
func (env Env) terminal() chart.Terminal {
	t := chart.Terminal{Colour: env.painter().colours}
	if file, ok := env.Out.(*os.File); ok {
		t.Width, _, _ = term.GetSize(int(file.Fd())) // 0 when it is none
	}
	return t
}

func isTerminal(w io.Writer) bool {
	file, ok := w.(*os.File)
	return ok && term.IsTerminal(int(file.Fd()))
}
