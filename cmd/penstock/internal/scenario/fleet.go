package scenario

import (
	"fmt"

	"go.yaml.in/yaml/v4"

	"github.com/penstock-go/penstock/simulate"
)

// fleet reads how the instances of the service share limits, and notes where the fields
// stand.
func (r *reader) fleet(n *yaml.Node, nested given) simulate.Fleet {
	var f simulate.Fleet
	found := r.mapping(n, "fleet",
		field{"latency", func(n *yaml.Node) { f.Latency = r.latency(n, nested) }},
		field{"loss", func(n *yaml.Node) { f.Loss = r.number(n, "loss") }},
		field{"outages", func(n *yaml.Node) { f.Outages = r.outages(n, nested) }},
		field{"skew", func(n *yaml.Node) { f.Skew = new(r.number(n, "skew")) }},
	)
	nested.add("fleet", n, found)
	return f
}

// latency reads how long a reply takes: a time that is always the same, or a
// distribution as servers have it.
func (r *reader) latency(n *yaml.Node, nested given) simulate.Service {
	if isScalar(n) {
		return simulate.Service{Mean: r.positive(n, "latency")}
	}
	return r.service(n, "fleet.latency", nested)
}

// outages reads when the backend does not answer.
func (r *reader) outages(n *yaml.Node, nested given) []simulate.Outage {
	var list []simulate.Outage
	for i, item := range items(n) {
		var o simulate.Outage
		found := r.mapping(item, "an outage",
			field{"from", func(n *yaml.Node) { o.From = r.duration(n, "from") }},
			field{"until", func(n *yaml.Node) { o.Until = r.positive(n, "until") }},
			field{"empty", func(n *yaml.Node) { o.Empty = r.boolean(n, "empty") }},
		)
		nested.add(fmt.Sprintf("fleet.outages[%d]", i), item, found)
		list = append(list, o)
	}
	return list
}

// instances reads the number of instances of a service.
func (r *reader) instances(n *yaml.Node) int {
	before := len(r.problems)
	instances := r.whole(n, "instances")
	if (instances < 1 || instances > simulate.MaxInstances) && len(r.problems) == before {
		r.fail(placeOf(n), "instances", "is %d: must be from 1 to %d", instances, simulate.MaxInstances)
	}
	return instances
}
