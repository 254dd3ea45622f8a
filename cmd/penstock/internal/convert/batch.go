package convert

import (
	"cmp"
	"slices"

	"github.com/penstock-go/penstock/access"
	"github.com/penstock-go/penstock/adaptive"
	"github.com/penstock-go/penstock/breaker"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/hotparam"
	"github.com/penstock-go/penstock/isolation"
	"github.com/penstock-go/penstock/rules"
)

// batch is the converted rules of one or more files.
type batch struct {
	flow      []converted[flow.Rule]
	isolation []converted[isolation.Rule]
	breaker   []converted[breaker.Rule]
	hotParam  []converted[hotparam.Rule]
	access    []converted[access.Rule]
	adaptive  []converted[adaptive.Rule]
	serve     []rules.Domain
}

// converted is a rule and what it was converted from.
type converted[R any] struct {
	rule R
	source
}

// source is a rule of Sentinel.
type source struct {
	offset   int    // in the file
	resource string // as Sentinel has it: a name or a pattern

	// pattern is a regular expression that the rule applies to in Sentinel only where
	// no rule of the same kind names the resource; "" if the rule has none.
	pattern string

	notes []string // what all such rules do differently
}

func (b *batch) add(other batch) {
	b.flow = append(b.flow, other.flow...)
	b.isolation = append(b.isolation, other.isolation...)
	b.breaker = append(b.breaker, other.breaker...)
	b.hotParam = append(b.hotParam, other.hotParam...)
	b.access = append(b.access, other.access...)
	b.adaptive = append(b.adaptive, other.adaptive...)
	for _, d := range other.serve {
		if !slices.Contains(b.serve, d) {
			b.serve = append(b.serve, d)
		}
	}
}

func (b *batch) rules() rules.Set {
	return rules.Set{
		Flow: rulesOf(b.flow), Isolation: rulesOf(b.isolation), Breaker: rulesOf(b.breaker), HotParam: rulesOf(b.hotParam),
		Access: rulesOf(b.access), Adaptive: rulesOf(b.adaptive), Serve: b.serve,
	}
}

// rulesOf returns nil for no rules, as a document without them does.
func rulesOf[R any](list []converted[R]) (of []R) {
	for i := range list {
		of = append(of, list[i].rule)
	}
	return of
}

// notes reports what all rules of a kind do differently, once for each file.
func (b *batch) notes() []Finding {
	sources := slices.Concat(sourcesOf(b.flow), sourcesOf(b.isolation), sourcesOf(b.breaker), sourcesOf(b.hotParam),
		sourcesOf(b.access), sourcesOf(b.adaptive))
	slices.SortFunc(sources, func(a, b source) int { return cmp.Compare(a.offset, b.offset) })
	var findings []Finding
	reported := make(map[string]bool)
	for _, s := range sources {
		for _, note := range s.notes {
			if !reported[note] {
				reported[note] = true
				findings = append(findings, Finding{Kind: Differs, offset: s.offset, Message: note})
			}
		}
	}
	return findings
}

func sourcesOf[R any](list []converted[R]) (sources []source) {
	for i := range list {
		sources = append(sources, list[i].source)
	}
	return sources
}
