package main

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/perf/benchfmt"
	"golang.org/x/perf/benchmath"
)

// key says what was measured: Benchmark<scenario>/<subject>/<variant>-<cores>.
type key struct {
	scenario, subject, variant string
	cores                      int
}

// results are the measurements of several rounds.
type results struct {
	environment string
	order       []key                        // as first met
	samples     map[key]map[string][]float64 // by unit: "sec/op", "B/op", "allocs/op"
}

// read reads files of benchmark results. A failed benchmark is an error, since its
// figures would be missing from the tables.
func read(files []string) (*results, error) {
	r := &results{samples: make(map[key]map[string][]float64)}
	in := benchfmt.Files{Paths: files, AllowStdin: true}
	for in.Scan() {
		switch record := in.Result().(type) {
		case *benchfmt.SyntaxError:
			return nil, record
		case *benchfmt.Result:
			if err := r.add(record); err != nil {
				return nil, err
			}
		}
	}
	if err := in.Err(); err != nil {
		return nil, err
	}
	if len(r.order) == 0 {
		return nil, fmt.Errorf("no results in %s", strings.Join(files, ", "))
	}
	return r, nil
}

func (r *results) add(result *benchfmt.Result) error {
	k, err := parse(result.Name)
	if err != nil {
		return err
	}
	if r.environment == "" {
		r.environment = result.GetConfig("environment")
	}
	if r.samples[k] == nil {
		r.samples[k] = make(map[string][]float64)
		r.order = append(r.order, k)
	}
	for _, value := range result.Values {
		r.samples[k][value.Unit] = append(r.samples[k][value.Unit], value.Value)
	}
	return nil
}

func parse(name benchfmt.Name) (key, error) {
	scenario, parts := name.Parts()
	k := key{scenario: string(scenario), cores: 1}
	if last := len(parts) - 1; last >= 0 && parts[last][0] == '-' {
		k.cores, _ = strconv.Atoi(string(parts[last][1:]))
		parts = parts[:last]
	}
	if len(parts) != 2 {
		return key{}, fmt.Errorf("benchmark %q is not named scenario/subject/variant", name)
	}
	k.subject, k.variant = string(parts[0][1:]), string(parts[1][1:])
	return k, nil
}

// median returns the median of a measurement, false if there is none.
func (r *results) median(k key, unit string) (benchmath.Summary, bool) {
	values := r.samples[k][unit]
	if len(values) == 0 {
		return benchmath.Summary{}, false
	}
	sample := benchmath.NewSample(slices.Clone(values), &benchmath.DefaultThresholds)
	return benchmath.AssumeNothing.Summary(sample, 0.95), true
}

// distinct returns the distinct values of a part of the keys, in order of appearance.
func distinct[T comparable](keys []key, part func(key) T) (list []T) {
	for _, k := range keys {
		if p := part(k); !slices.Contains(list, p) {
			list = append(list, p)
		}
	}
	return list
}

// of returns the keys of one scenario.
func (r *results) of(scenario string) (keys []key) {
	for _, k := range r.order {
		if k.scenario == scenario {
			keys = append(keys, k)
		}
	}
	return keys
}
