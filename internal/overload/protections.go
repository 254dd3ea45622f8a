package overload

import (
	"fmt"
	"math"
	"slices"

	"github.com/penstock-go/penstock/rule"
)

// protection is rules that protect a service.
type protection struct {
	name     string
	document func(scenario) string // its rules
	kinds    []rule.Definition     // of these, beside those of Penstock
	within   func(run func())      // runs a simulation, nil for just so
}

// Library is a protection by a limiter of another library, which reads the time of its
// process.
type Library struct {
	Name  string
	Rules string            // a document
	Kinds []rule.Definition // of its rules

	// Within runs a simulation where that time is virtual. The simulation begins at the
	// time that it tells then; limiters move it on to that of their calls.
	Within func(run func())
}

func protectionsBy(libraries []Library) (list []protection) {
	for _, l := range libraries {
		list = append(list, protection{name: l.Name, document: constantly(l.Rules), kinds: l.Kinds, within: l.Within})
	}
	return list
}

// protections are those that are compared. Only the fixed limits know what is served: for
// one kind of calls, how many workers there are; for scenes, how many calls are under way
// at the start.
func protections() []protection {
	return []protection{
		{name: "latency", document: adaptiveRule("strategy: latency")},
		{name: "endpoints", document: adaptiveRule(`match: "*", inbound: true, strategy: latency`)},
		{name: "threshold", document: adaptiveRule("strategy: threshold, cpu: 0.9")},
		{name: "envoy", document: constantly(`envoy: [{name: all, match: "*", perResource: false}]`), kinds: []rule.Definition{envoyKind()}},
		{name: "envoy-endpoints", document: constantly(`envoy: [{match: "*"}]`), kinds: []rule.Definition{envoyKind()}},
		{name: "none", document: constantly("{}")},
		{name: "fixed", document: func(s scenario) string { return fixedLimit(s, 1) }},
		{name: "fixed-3x", document: func(s scenario) string { return fixedLimit(s, 3) }},
	}
}

// compared are the protections that the docs compare: all but none at all.
func compared(all []protection) []protection {
	return slices.DeleteFunc(slices.Clone(all), func(p protection) bool { return p.name == "none" })
}

// adaptiveRule returns a document with an adaptive rule.
func adaptiveRule(fields string) func(scenario) string {
	return constantly("adaptive: [{" + fields + "}]")
}

func constantly(document string) func(scenario) string {
	return func(scenario) string { return document }
}

// rightLimit returns how many calls keep all workers busy nearly all of the time, with
// few that wait for a worker; of a scene twice as many as are under way at the start.
func rightLimit(s scenario) float64 {
	if workers := float64(s.service.workers); !s.isScene() {
		return workers + math.Sqrt(workers)
	}
	load := s.load(s.service)
	capacity := newCapacities(load, nil)
	sum := 0.0
	for _, stream := range load.Streams {
		if stream.From == 0 {
			sum += stream.Rate * max(capacity.unloaded(stream.Resource), stream.ServiceTime.Seconds())
		}
	}
	return max(4, 2*sum)
}

// fixedLimit returns a rule that lets so many times the right number of calls be under way
// and no call wait.
func fixedLimit(s scenario, times float64) string {
	return fmt.Sprintf(`isolation: [{name: fixed, match: "*", perResource: false, limit: %.0f}]`, math.Ceil(times*rightLimit(s)))
}

// names returns the names of protections.
func names(of []protection) (list []string) {
	for _, p := range of {
		list = append(list, p.name)
	}
	return list
}
