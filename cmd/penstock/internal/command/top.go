package command

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/penstock-go/penstock/cmd/penstock/internal/connection"
	"github.com/penstock-go/penstock/cmd/penstock/internal/wording"
	"github.com/penstock-go/penstock/inspect"
)

const (
	// topInterval is how often top asks, and topTimeout how long a service may take to answer: one that
	// does not is named, and the others are shown.
	topInterval = time.Second
	topTimeout  = 3 * time.Second
)

func newTop(env Env) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "top --engine ADDRESS [flags]",
		Short: "Watch what passes and what is refused in running services",
		Long: `Top shows the resources of running services with their traffic, once a second, until
q or Ctrl-C: the calls that passed and were refused in the last second, response
times, calls in flight and waiting, the rule that refuses most, and the last minute.
The resources that refuse most come first; r, p, n, 9 and f sort by refused, passed,
name, 99th percentile and in flight.

The services must serve the handler of the package inspect; --engine is its address,
as host and port or as a URL. With several, or with --app, the numbers of a resource
are added up; its response times are those of the slowest service. Of each service the
first --limit resources are asked for. A service that does not answer is named, and
is not part of the numbers. With --app the services are the instances that report an
address to etcd (Options.Inspect).

With --once, with -o json, or where the output is no terminal, it prints one table
and ends.

Exit code: 0 when all services have answered, 2 for a wrong command line, 3 when one
of them or etcd failed.

` + connection.Help,
		Example: `  penstock top --engine 127.0.0.1:6060
  penstock top --engine 10.0.0.7:6060 --engine 10.0.0.8:6060 --match 'orders:*' --sort p99
  penstock top --app shop
  penstock top --engine 127.0.0.1:6060 -o json | jq '.resources[] | select(.second.refused > 0)'`,
		Args: arguments(0, 0, ""),
	}
	t := topOptions{query: inspect.ResourceQuery{Seconds: true}}
	t.addFlag(cmd)
	cmd.Flags().StringVar(&t.query.Match, "match", "", "show only resources whose names match the `pattern`")
	cmd.Flags().StringVar((*string)(&t.query.Sort), "sort", string(inspect.SortRefused), "sort by refused, passed, name, p99 or inFlight")
	cmd.Flags().IntVarP(&t.query.Limit, "limit", "n", 50, "show no more than `n` resources")
	cmd.Flags().BoolVar(&t.once, "once", false, "print one table and end")
	output := formatFlag(cmd)
	connection.AddFlags(cmd.Flags())
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if err := t.check(cmd); err != nil {
			return err
		}
		if len(t.engines) == 0 {
			if err := t.find(env, cmd); err != nil {
				return err
			}
		}
		if t.once || *output == asJSON || !env.OutIsTerminal || env.Terminal == nil {
			return env.topOnce(cmd.Context(), t, *output)
		}
		return env.topLive(cmd.Context(), t)
	}
	return cmd
}

// topOptions say what top shows.
type topOptions struct {
	services

	query inspect.ResourceQuery
	once  bool
}

func (t *topOptions) check(cmd *cobra.Command) error {
	if err := t.services.check(cmd); err != nil {
		return err
	}
	if err := t.query.Validate(); err != nil {
		return errors.New("--" + strings.TrimPrefix(err.Error(), "inspect: "))
	}
	return nil
}

// topAnswer is what the services have said.
type topAnswer struct {
	Time      time.Time          `json:"time"` // of the service whose clock is ahead of the others
	Engines   []topEngine        `json:"engines"`
	Silent    []string           `json:"silent,omitempty"` // instances that report no address
	Resources []inspect.Resource `json:"resources"`
	Total     int                `json:"total"` // the greatest number of resources that a service has
}

type topEngine struct {
	Engine string `json:"engine"`
	Error  string `json:"error,omitempty"`
}

// failed counts the services that have not answered.
func (a *topAnswer) failed() (n int) {
	for _, e := range a.Engines {
		if e.Error != "" {
			n++
		}
	}
	return n
}

// ask asks all services at once.
func (t *topOptions) ask(ctx context.Context) topAnswer {
	ctx, cancel := context.WithTimeout(ctx, topTimeout)
	defer cancel()
	pages := make([]inspect.Resources, len(t.engines))
	answer := topAnswer{Engines: make([]topEngine, len(t.engines)), Silent: t.silent}
	var all sync.WaitGroup
	for i, address := range t.engines {
		answer.Engines[i].Engine = shownAddress(address)
		all.Go(func() {
			if err := askEngine(ctx, address, "resources", t.query.Query(), &pages[i]); err != nil {
				answer.Engines[i].Error, pages[i] = err.Error(), inspect.Resources{}
			}
		})
	}
	all.Wait()
	for _, page := range pages {
		answer.Total = max(answer.Total, page.Total)
		if page.Time.After(answer.Time) {
			answer.Time = page.Time
		}
	}
	answer.Resources = sumResources(pages)
	sortResources(answer.Resources, t.query.Sort)
	answer.Resources = answer.Resources[:min(len(answer.Resources), t.query.Limit)]
	return answer
}

// topOnce prints what the services say now.
func (env Env) topOnce(ctx context.Context, t topOptions, output format) error {
	answer := t.ask(ctx)
	if err := ctx.Err(); err != nil {
		return err
	}
	failed := answer.failed()
	switch {
	case output == asJSON:
		env.writeJSON(answer)
	case failed == len(answer.Engines):
		return failure{ExitFailed, answer.err()}
	default:
		for _, line := range topLines(&answer, t.query.Sort, env.Width, env.painter()) {
			fmt.Fprintln(env.Out, line)
		}
	}
	if failed > 0 {
		return failure{code: ExitFailed}
	}
	return nil
}

// err returns what the services that have not answered failed with.
func (a *topAnswer) err() error {
	var all []error
	for _, e := range a.Engines {
		if e.Error != "" {
			all = append(all, errors.New(e.Error))
		}
	}
	return errors.Join(all...)
}

// engineLines name the services that have not answered, and those that are not asked.
func (a *topAnswer) engineLines() (lines []string) {
	for _, e := range a.Engines {
		if e.Error != "" {
			why := e.Error
			if asked, ok := strings.CutPrefix(why, "asking the engine at "); ok { // that has its address
				_, why, _ = strings.Cut(asked, ": ")
			}
			lines = append(lines, wording.Cell("no answer from "+e.Engine+": "+why))
		}
	}
	if len(a.Silent) > 0 {
		lines = append(lines, "no address is known of "+wording.Cell(wording.List(a.Silent)))
	}
	return lines
}
