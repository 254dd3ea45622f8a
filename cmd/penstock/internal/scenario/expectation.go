package scenario

import (
	"slices"

	"go.yaml.in/yaml/v4"
)

// expectation is one thing that a case expects of the calls.
type expectation struct {
	field    string
	resource string // "" for all resources together
	at       place
	calls    calls

	events    bool // it is about single calls
	each      bool // it is about single resources
	whole     bool // it is about resources, not about some of their calls
	perSecond bool // it has a number for each second

	// check compares it with the outcome, nil when that is as expected.
	check func(observation) *Failure
}

// expectations reads one mapping, or a list of them, for a resource each.
func (r *reader) expectations(n *yaml.Node, load Load) []expectation {
	var all []expectation
	before := len(r.problems)
	for _, item := range items(n) {
		all = append(all, r.expected(item, load)...)
	}
	if len(all) == 0 && len(r.problems) == before {
		r.fail(placeOf(n), "expect", "is empty: write what you expect of the calls, such as passed: 100x10")
	}
	return all
}

// expected reads what is expected of one resource, or of all together.
func (r *reader) expected(n *yaml.Node, load Load) []expectation {
	var list []expectation
	resource := ""
	var some callsReader
	add := func(name string, read func(*yaml.Node) expectation) field {
		return field{name, func(n *yaml.Node) {
			e := read(n)
			e.field, e.at = name, placeOf(n)
			list = append(list, e)
		}}
	}
	fields := []field{
		{"resource", func(n *yaml.Node) { resource = r.resource(n, load) }},
		{"value", func(n *yaml.Node) { some.value = n }},
		{"attrs", func(n *yaml.Node) { some.attrs = n }},
		{"each", func(n *yaml.Node) { some.each = n }},
		add("waits", r.expectWaits),
		add("maxWait", r.expectMaxWait),
		add("blockedBy", r.expectBlockedBy),
		add("states", r.expectStates),
		{"total", func(n *yaml.Node) { list = append(list, r.expectTotals(n)...) }},
	}
	for _, c := range columns() {
		fields = append(fields, add(c.name, func(n *yaml.Node) expectation { return r.expectSeconds(n, c) }))
	}
	r.mapping(n, "expect", fields...)
	meant := some.read(r, load, resource)
	for i, e := range list {
		list[i].resource, list[i].calls = resource, meant
		if e.whole && !some.all() {
			r.fail(e.at, e.field, "is not known of single values: write it without value, attrs and each")
		}
		if e.each && resource == "" && len(load.resources()) > 1 {
			r.fail(e.at, e.field, "is that of a single resource: name it, resource: %s", load.resources()[0])
		}
	}
	return list
}

// resource reads which of the load's resources is meant.
func (r *reader) resource(n *yaml.Node, load Load) string {
	name := r.text(n, "resource")
	if known := load.resources(); name != "" && len(known) > 0 && !slices.Contains(known, name) {
		r.unknown(placeOf(n), "resource", name, known)
	}
	return name
}

// expectSeconds reads what a column is expected to be, second by second.
func (r *reader) expectSeconds(n *yaml.Node, c column) expectation {
	expected := r.wants(n, c.name, c.unit)
	return expectation{each: c.each, whole: c.whole, perSecond: true, check: func(o observation) *Failure {
		return compare("second", expected, o.column(c), c.unit)
	}}
}

// expectTotals reads what the sums of columns are expected to be.
func (r *reader) expectTotals(n *yaml.Node) []expectation {
	var list []expectation
	var fields []field
	for _, c := range columns() {
		if !c.total {
			continue
		}
		fields = append(fields, field{c.name, func(n *yaml.Node) {
			expected := r.want(n, "total."+c.name, counts())
			list = append(list, expectation{field: "total." + c.name, at: placeOf(n), check: func(o observation) *Failure {
				return compareOne(expected, o.sum(c), counts())
			}})
		}})
	}
	r.mapping(n, "total", fields...)
	return list
}

// expectWaits reads how long each call that passes is expected to wait.
func (r *reader) expectWaits(n *yaml.Node) expectation {
	expected := r.wants(n, "waits", seconds())
	return expectation{events: true, check: func(o observation) *Failure {
		return compare("pass", expected, o.waits, seconds())
	}}
}

// expectMaxWait reads how long the longest wait of a call that passes is
// expected to be.
func (r *reader) expectMaxWait(n *yaml.Node) expectation {
	expected := r.want(n, "maxWait", seconds())
	return expectation{events: true, check: func(o observation) *Failure {
		longest := 0.0
		for _, wait := range o.waits {
			longest = max(longest, wait)
		}
		return compareOne(expected, longest, seconds())
	}}
}
