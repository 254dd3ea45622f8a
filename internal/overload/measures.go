package overload

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/penstock-go/penstock/simulate"
)

// classes returns the indexes of the classes that names or globs mean; all for none.
func (s scenario) classes(patterns []string) ([]bool, error) {
	all := s.classNames()
	chosen := make([]bool, len(all))
	for i := range all {
		chosen[i] = len(patterns) == 0
	}
	for _, p := range patterns {
		found := false
		for i, name := range all {
			if matches([]string{p}, name) {
				chosen[i], found = true, true
			}
		}
		if !found {
			return nil, fmt.Errorf("class %q: no stream calls it", p)
		}
	}
	return chosen, nil
}

// classNames returns the resources of a scenario, sorted: each is a class of calls.
func (s scenario) classNames() []string {
	var names []string
	for _, stream := range s.load(s.service).Streams {
		names = append(names, stream.Resource)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// measureNames are the measures that goals of scenes may have:
//
//   - refused: the share of the calls that were refused
//   - worstSecondRefused: the same of the second in which it is highest
//   - lost: the share of the calls that were refused, failed or came too late
//   - served: the share of the calls that ended well, in time
//   - p99: the 99th percentile of what clients waited for calls that were not refused
//   - p99Wait, longestWait: the 99th percentile of how long calls waited for rules, refused ones included, and the longest
//   - goodput: what ended well, of what is possible at best, by the share of the capacity
//     that calls take
//   - worst: the same for the class that fares worst
//   - worstTenth: the same for the tenth of the classes that fare worst
func measureNames() []string {
	return []string{"refused", "worstSecondRefused", "lost", "served", "p99", "p99Wait", "longestWait", "goodput", "worst", "worstTenth"}
}

// unit says how a measure is written.
type unit int

const (
	plain unit = iota
	percent
	milliseconds
)

// measureOf returns the measure with the name for some of the classes, in a part of a run.
func measureOf(name string, of []bool, in span) (func(*outcome) float64, unit) {
	is := func(c call) bool { return of[c.class] }
	switch name {
	case "refused":
		return func(o *outcome) float64 { return o.shareOf(in, is, isRefused) }, percent
	case "worstSecondRefused":
		return func(o *outcome) float64 {
			worst := 0.0
			for t := in.from; t+second <= in.to; t += second {
				if share := o.shareOf(span{t, t + second}, is, isRefused); !math.IsNaN(share) {
					worst = max(worst, share)
				}
			}
			return worst
		}, percent
	case "lost":
		return func(o *outcome) float64 { return o.shareOf(in, is, isLost) }, percent
	case "served":
		return func(o *outcome) float64 { return 1 - o.shareOf(in, is, isLost) }, plain
	case "p99":
		return func(o *outcome) float64 { return o.latencyOf(in, is, 99) }, milliseconds
	case "p99Wait":
		return func(o *outcome) float64 { return o.waits(in, is, 99) }, milliseconds
	case "longestWait":
		return func(o *outcome) float64 { return o.waits(in, is, 100) }, milliseconds
	case "goodput":
		return func(o *outcome) float64 {
			done, possible := 0.0, 0.0
			for class, c := range o.compare(in) {
				if of[class] {
					done, possible = done+c.done, possible+c.possible
				}
			}
			return done / possible
		}, plain
	case "worst":
		return func(o *outcome) float64 { return o.worst(in, of, 1) }, plain
	case "worstTenth":
		return func(o *outcome) float64 { return o.worst(in, of, 10) }, plain
	}
	return nil, plain
}

// comparison is what a class got and what it could have got, in seconds of the capacity
// of the server of which it takes the most, or in calls if it needs none with a bound.
type comparison struct{ done, possible float64 }

// compare compares what each class got with what is possible at best.
func (o *outcome) compare(in span) []comparison {
	capacity := newCapacities(o.load, o.classes)
	result := make([]comparison, len(o.classes))
	for _, part := range capacity.segments(in) {
		needs := capacity.at(part.from)
		flows, good := o.flows(part, needs)
		divide(flows, len(o.load.Servers))
		for _, f := range flows {
			weight := cmp.Or(need(f.needs), 1)
			result[f.class].possible += f.rate * part.seconds() * weight
		}
		for class, n := range good {
			result[class].done += float64(n) * cmp.Or(need(needs[class]), 1)
		}
	}
	return result
}

// flows returns the demand in a part of a run, and how many calls of each class ended well
// in it.
func (o *outcome) flows(in span, needs [][]float64) (flows []flow, good []int) {
	type key struct {
		class    int
		priority string
	}
	demand := make(map[key]int)
	good = make([]int, len(o.classes))
	for _, c := range o.calls {
		if in.includes(c.arrived) {
			demand[key{c.class, c.priority}]++
		}
		if c.good && in.includes(c.ended) {
			good[c.class]++
		}
	}
	for k, n := range demand {
		flows = append(flows, flow{class: k.class, priority: k.priority, demand: float64(n) / in.seconds(), needs: needs[k.class]})
	}
	return flows, good
}

// worst returns what the worst of the classes got, of what is possible: of all together
// that are the worst one in so many.
func (o *outcome) worst(in span, of []bool, oneIn int) float64 {
	var list []comparison
	for class, c := range o.compare(in) {
		if of[class] && c.possible > 0 {
			list = append(list, c)
		}
	}
	slices.SortFunc(list, func(a, b comparison) int { return cmp.Compare(a.done/a.possible, b.done/b.possible) })
	if oneIn == 1 {
		oneIn = max(1, len(list))
	}
	done, possible := 0.0, 0.0
	for _, c := range list[:max(1, len(list)/oneIn)] {
		done, possible = done+c.done, possible+c.possible
	}
	return done / possible
}

// patience returns how long clients wait for calls of each class: their timeout.
func patience(load simulate.Load, classes []string) []float64 {
	list := make([]float64, len(classes))
	for i, class := range classes {
		list[i] = math.Inf(1)
		for _, s := range load.Streams {
			if s.Resource == class && s.Timeout > 0 {
				list[i] = s.Timeout.Seconds()
			}
		}
	}
	return list
}
