package scenario

import (
	"context"
	"time"

	"go.yaml.in/yaml/v4"

	"github.com/penstock-go/penstock/list"
	"github.com/penstock-go/penstock/rule"
	"github.com/penstock-go/penstock/rules"
	"github.com/penstock-go/penstock/simulate"
)

// Case is one test: calls, and what is expected of them.
type Case struct {
	Name string
	Line int // where the case begins

	// Lists are the lists that rules name; nil if there are none.
	Lists *list.Registry

	kinds        []rule.Definition // beside those that come with Penstock
	column       int
	load         Load
	duration     time.Duration
	instances    int // of the service; 0 for one
	expectations []expectation
}

// Run runs the case under the rules and returns the expectations that do not hold.
// The error is that of a simulation that could not be run.
func (c Case) Run(ctx context.Context, set rules.Set) ([]Failure, error) {
	result, err := simulate.Run(ctx, set, c.load.Load, simulate.Options{
		Duration: c.duration, Instances: c.instances, Events: c.asksEvents(), Lists: c.Lists, Kinds: c.kinds,
	})
	if err != nil {
		return nil, c.load.Explain(err)
	}
	var failures []Failure
	for _, e := range c.expectations {
		if failure := e.run(result, set); failure != nil {
			failure.Calls = e.calls.String()
			failure.Line, failure.Column, failure.Field, failure.Resource = e.at.line, e.at.column, e.field, e.resource
			failures = append(failures, *failure)
		}
	}
	return failures, nil
}

// run compares the expectation with the outcome of a simulation.
func (e expectation) run(result simulate.Result, set rules.Set) *Failure {
	o := observe(result, e.resource, set)
	if e.calls.all() {
		return e.check(o)
	}
	return e.checkCalls(result, o)
}

func (c Case) asksEvents() bool {
	for _, e := range c.expectations {
		if e.events || !e.calls.all() {
			return true
		}
	}
	return false
}

// readCase reads a case. The duration is for one without its own.
func (r *reader) readCase(n *yaml.Node, length time.Duration) Case {
	c := Case{Line: n.Line, column: n.Column, duration: length}
	var expect *yaml.Node
	var seed uint64
	found := r.mapping(n, "a case",
		field{"name", func(n *yaml.Node) { c.Name = r.text(n, "name") }},
		field{"load", func(n *yaml.Node) { c.load = r.caseLoad(n) }},
		field{"duration", func(n *yaml.Node) { c.duration = r.positive(n, "duration") }},
		field{"instances", func(n *yaml.Node) { c.instances = r.instances(n) }},
		field{"seed", func(n *yaml.Node) { seed = r.seed(n) }},
		field{"expect", func(n *yaml.Node) { expect = n }},
	)
	if found == nil {
		return c
	}
	if _, ok := found["seed"]; ok {
		c.load.Seed = seed
	}
	for _, required := range []struct{ field, what string }{
		{"name", "say in words what is tested"},
		{"load", `write what calls come, such as "orders 100/s for 10s"`},
		{"expect", "write what you expect of the calls"},
	} {
		if _, ok := found[required.field]; !ok {
			r.fail(placeOf(n), required.field, "is missing: %s", required.what)
		}
	}
	if expect != nil {
		c.expectations = r.expectations(expect, c.load)
	}
	return c
}

// caseLoad reads a load as load files have it, or its streams alone.
func (r *reader) caseLoad(n *yaml.Node) Load {
	before := len(r.problems)
	load := Load{document: r.document}
	if n.Kind == yaml.MappingNode {
		load = r.load(n)
	} else {
		r.streams(&load, n)
		r.validate(load)
	}
	load.bad = len(r.problems) > before
	return load
}
