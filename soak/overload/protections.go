package main

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
func compared() []protection {
	return slices.DeleteFunc(protections(), func(p protection) bool { return p.name == "none" })
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

func findProtection(name string) (protection, bool) {
	for _, p := range protections() {
		if p.name == name {
			return p, true
		}
	}
	return protection{}, false
}

func protectionNames() []string {
	var names []string
	for _, p := range protections() {
		names = append(names, p.name)
	}
	return names
}
