// Overload measures what a real HTTP service under an adaptive rule gets done in
// overload, beside what a simulation of the same service says. The service is a process
// of its own on one processor; its clients are another process, on another processor, and
// come whether or not earlier requests were answered.
//
//	go run ./cmd/overload                              # everything, about ten minutes
//	go run ./cmd/overload -services sleep -loads 3,10  # some of it
//
// Services:
//
//   - sleep: 8 workers that wait 10 ms for each request on average, as for a database.
//   - cpu: each request computes for 10 ms on average. As in most services, nothing limits
//     how many do so at once.
//   - quota: the same in a cgroup that may use half of a processor. Needs the right to
//     make cgroups; without it, this service is left out.
//
// Service times are exponential. The capacity is measured before each run, without the
// rule, by clients that make their next request when the one before was answered.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/penstock-go/penstock/bench/internal/report"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "overload:", err)
		stop()
		os.Exit(1) //nolint:gocritic // stop has been called
	}
}

// run is the program, or one of the processes that it starts.
func run(ctx context.Context, args []string) error {
	if len(args) > 0 {
		switch args[0] {
		case roleServe:
			return serveProcess(ctx, args[1:])
		case roleGenerate:
			return generateProcess(ctx, args[1:])
		}
	}
	s, err := parseSettings(args)
	if err != nil {
		return err
	}
	return measureAll(ctx, s)
}

// settings are what the command line says.
type settings struct {
	services []service
	loads    []float64 // multiples of the capacity
	warmUp   time.Duration
	duration time.Duration
	rounds   int
	docs     string
}

func parseSettings(args []string) (settings, error) {
	flags := flag.NewFlagSet("overload", flag.ContinueOnError)
	names := flags.String("services", "sleep,cpu,quota", "`names` of services, with commas between them")
	loads := flags.String("loads", "0.5,0.9,1.5,3,10", "`multiples` of the capacity, with commas between them")
	rules := flags.String("rules", "", "protect the service with the rules of this `file` rather than with an adaptive one")
	var s settings
	flags.DurationVar(&s.warmUp, "warmup", 15*time.Second, "how long each load lasts before it is measured")
	flags.DurationVar(&s.duration, "for", 15*time.Second, "how long the capacity and each load are measured")
	flags.IntVar(&s.rounds, "rounds", 1, "how often everything is measured; the table has the medians")
	flags.StringVar(&s.docs, "docs", "", "put the table into this `document`")
	if err := flags.Parse(args); err != nil {
		return s, err
	}
	if s.rounds < 1 || s.duration < time.Second {
		return s, errors.New("-rounds must be 1 or more, and -for 1s or more")
	}
	var err error
	if s.services, err = servicesNamed(*names); err != nil {
		return s, err
	}
	if s.loads, err = parseLoads(*loads); err != nil {
		return s, err
	}
	if *rules != "" {
		text, err := os.ReadFile(*rules)
		if err != nil {
			return s, err
		}
		for i := range s.services {
			s.services[i].rule = string(text)
		}
	}
	return s, nil
}

func parseLoads(list string) (loads []float64, err error) {
	for text := range strings.SplitSeq(list, ",") {
		load, err := strconv.ParseFloat(text, 64)
		if err != nil || load <= 0 || load > 100 {
			return nil, fmt.Errorf("-loads: %q must be a number above 0 and at most 100", text)
		}
		loads = append(loads, load)
	}
	return loads, nil
}

// measureAll measures each service under each load and publishes a table.
func measureAll(ctx context.Context, s settings) error {
	var all [][]result
	for _, of := range s.services {
		for _, load := range s.loads {
			var rounds []result
			for range s.rounds {
				r, err := measure(ctx, s, of, load)
				if errors.Is(err, errNoQuota) {
					fmt.Fprintf(os.Stderr, "%s: left out: %v\n", of.name, err)
					break
				}
				if err != nil {
					return fmt.Errorf("%s at %g ×: %w", of.name, load, err)
				}
				fmt.Fprintln(os.Stderr, r.String())
				rounds = append(rounds, r)
			}
			if len(rounds) > 0 {
				all = append(all, rounds)
			}
		}
	}
	return report.Publish(s.docs, "overload", report.Environment(report.Command()), tableOf(all))
}

// measure measures a service under a load, and simulates that.
func measure(ctx context.Context, s settings, of service, load float64) (result, error) {
	server, err := startServer(ctx, of)
	if err != nil {
		return result{}, err
	}
	defer server.stop()
	capacity, err := server.generate(ctx, generatorSettings{
		Path: pathFree, Clients: 2 * of.workers, WarmUp: time.Second, Duration: s.duration,
	})
	if err != nil {
		return result{}, err
	}
	r := result{service: of, load: load, capacity: capacity.Goodput}
	if r.capacity == 0 {
		return r, errors.New("the service answers nothing, even without overload")
	}
	r.real, err = server.generate(ctx, generatorSettings{
		Path: pathGuarded, Rate: load * r.capacity, WarmUp: s.warmUp, Duration: s.duration,
	})
	if err != nil {
		return r, err
	}
	r.simulated, err = simulateService(ctx, of, r.capacity, load)
	return r, err
}
