package main

import (
	"fmt"
	"math"
	"slices"
)

// protection is rules that protect a service.
type protection struct {
	name     string
	document func(workers int) string // the rules, for a service with so many workers
}

// protections are those that are compared. Only the fixed limits know how many workers
// the service has.
func protections() []protection {
	return []protection{
		{"latency", adaptiveRule("latency")},
		{"bbr", adaptiveRule("bbr")},
		{"gradient", adaptiveRule("gradient")},
		{"threshold", adaptiveRule("threshold, cpu: 0.9")},
		{"none", func(int) string { return "{}" }},
		{"fixed", func(workers int) string { return fixedLimit(rightLimit(workers)) }},
		{"fixed-3x", func(workers int) string { return fixedLimit(3 * rightLimit(workers)) }},
	}
}

// compared are the protections that the docs compare: all but none at all.
func compared() []protection {
	return slices.DeleteFunc(protections(), func(p protection) bool { return p.name == "none" })
}

// adaptiveRule returns an adaptive rule for all inbound calls.
func adaptiveRule(strategy string) func(int) string {
	return func(int) string { return "adaptive: [{strategy: " + strategy + "}]" }
}

// rightLimit returns how many calls keep all workers busy nearly all of the time, with
// few that wait for a worker.
func rightLimit(workers int) float64 { return float64(workers) + math.Sqrt(float64(workers)) }

// fixedLimit returns a rule that lets so many calls be under way and no call wait.
func fixedLimit(limit float64) string {
	return fmt.Sprintf("isolation: [{name: fixed, resource: work, limit: %.0f}]", math.Ceil(limit))
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
