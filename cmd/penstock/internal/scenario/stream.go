package scenario

import (
	"fmt"
	"maps"
	"time"

	"go.yaml.in/yaml/v4"

	"github.com/penstock-go/penstock/rule"
	"github.com/penstock-go/penstock/simulate"
)

// stream is a stream of calls and where it is written.
type stream struct {
	simulate.Stream
	at     place
	fields given
	bad    bool // it could not be read at all
}

// longStream reads a stream that is written as a mapping.
func (r *reader) longStream(n *yaml.Node) stream {
	s := stream{at: placeOf(n), bad: n.Kind != yaml.MappingNode}
	nested := make(given)
	s.fields = r.mapping(n, "a stream",
		field{"resource", func(n *yaml.Node) { s.Resource = r.text(n, "resource") }},
		field{"rate", func(n *yaml.Node) { s.Rate = r.rate(n, "rate") }},
		field{"times", func(n *yaml.Node) { s.Times = r.times(n) }},
		field{"shape", func(n *yaml.Node) { s.Shape = simulate.Shape(r.text(n, "shape")) }},
		field{"from", func(n *yaml.Node) { s.From = r.duration(n, "from") }},
		field{"until", func(n *yaml.Node) { s.Until = r.positive(n, "until") }},
		field{"tokens", func(n *yaml.Node) { s.Tokens = r.tokens(n) }},
		field{"cost", func(n *yaml.Node) { s.Cost = r.cost(n, nested) }},
		field{"origin", func(n *yaml.Node) { s.Origin = r.text(n, "origin") }},
		field{"inbound", func(n *yaml.Node) { s.Inbound = r.boolean(n, "inbound") }},
		field{"priority", func(n *yaml.Node) { s.Priority = r.priority(n, "priority") }},
		field{"attrs", func(n *yaml.Node) { s.Attrs = r.attributes(n, nested) }},
		field{"serviceTime", func(n *yaml.Node) { s.ServiceTime = r.duration(n, "serviceTime") }},
		field{"fails", func(n *yaml.Node) { s.Fails = r.number(n, "fails") }},
		field{"timeout", func(n *yaml.Node) { s.Timeout = r.positive(n, "timeout") }},
		field{"retries", func(n *yaml.Node) { s.Retries = r.whole(n, "retries") }},
		field{"retryDelay", func(n *yaml.Node) { s.RetryDelay = r.duration(n, "retryDelay") }},
		field{"phases", func(n *yaml.Node) { s.Phases = r.phases(n, nested) }},
		removed("args", argsRemoved, r),
	)
	if s.fields != nil {
		maps.Copy(s.fields, nested)
	}
	return s
}

// cost reads what calls cost that is known only at their end.
func (r *reader) cost(n *yaml.Node, nested given) *simulate.Cost {
	c := new(simulate.Cost)
	found := r.mapping(n, "cost",
		field{"estimate", func(n *yaml.Node) { c.Estimate = r.whole(n, "cost.estimate") }},
		field{"actual", func(n *yaml.Node) {
			found := r.mapping(n, "cost.actual",
				field{"mean", func(n *yaml.Node) { c.Mean = r.number(n, "cost.actual.mean") }},
				field{"shape", func(n *yaml.Node) { c.Shape = simulate.Shape(r.text(n, "cost.actual.shape")) }},
				field{"sigma", func(n *yaml.Node) { c.Sigma = r.number(n, "cost.actual.sigma") }},
				field{"max", func(n *yaml.Node) { c.Max = r.whole(n, "cost.actual.max") }},
			)
			nested.add("cost.actual", n, found)
		}},
	)
	nested.add("cost", n, found)
	return c
}

// argsRemoved is the message about a field of earlier versions.
const argsRemoved = "was replaced by attrs, which rules name: write attrs: {user: u1}"

// removed is a field that is no longer there.
func removed(name, advice string, r *reader) field {
	return field{name, func(n *yaml.Node) { r.fail(placeOf(n), name, "%s", advice) }}
}

// phases reads the phases of a stream and notes where their fields stand.
func (r *reader) phases(n *yaml.Node, nested given) []simulate.Phase {
	var list []simulate.Phase
	for i, item := range items(n) {
		var p simulate.Phase
		found := r.mapping(item, "a phase",
			field{"until", func(n *yaml.Node) { p.Until = r.positive(n, "until") }},
			field{"serviceTime", func(n *yaml.Node) { p.ServiceTime = new(r.duration(n, "serviceTime")) }},
			field{"fails", func(n *yaml.Node) { p.Fails = new(r.number(n, "fails")) }},
		)
		nested.add(fmt.Sprintf("phases[%d]", i), item, found)
		list = append(list, p)
	}
	return list
}

// attributes reads what rules may look at: names with a value, a list of values
// or how many there are.
func (r *reader) attributes(n *yaml.Node, nested given) []simulate.Attr {
	if n.Kind != yaml.MappingNode {
		r.fail(placeOf(n), "attrs", "is %s: must be a mapping of names to values, such as {user: u1}", describe(n))
		return nil
	}
	var list []simulate.Attr
	for i := 0; i+1 < len(n.Content); i += 2 {
		attr := simulate.Attr{Name: r.text(n.Content[i], "attrs")}
		value, path := n.Content[i+1], "attrs."+attr.Name
		before := len(r.problems)
		if value.Kind == yaml.MappingNode {
			found := r.mapping(value, path,
				field{"count", func(n *yaml.Node) { attr.Count = r.whole(n, path+".count") }},
				field{"shape", func(n *yaml.Node) { attr.Shape = simulate.Shape(r.text(n, path+".shape")) }},
			)
			nested.add(path, value, found)
		} else {
			for _, item := range items(value) {
				attr.Values = append(attr.Values, r.attribute(item, path))
			}
		}
		nested[path] = givenField{placeOf(value), len(r.problems) > before}
		list = append(list, attr)
	}
	return list
}

// attribute reads a value of an attribute: a whole number, true or false, or else
// text.
func (r *reader) attribute(n *yaml.Node, path string) any {
	if !isScalar(n) {
		r.fail(placeOf(n), path, "is %s: must be text, a number, true or false, a list of them, or {count: 100}", describe(n))
		return ""
	}
	if n.Style&quoted != 0 {
		return n.Value
	}
	return parseAttribute(n.Value)
}

// parseAttribute reads a value as [rule.ParseAttribute] does.
func parseAttribute(text string) any {
	value := rule.ParseAttribute(text)
	if number, ok := value.Number(); ok {
		return number
	}
	if boolean, ok := value.Boolean(); ok {
		return boolean
	}
	plain, _ := value.Text()
	return plain
}

func (r *reader) times(n *yaml.Node) []time.Duration {
	times := make([]time.Duration, 0, len(items(n)))
	for _, item := range items(n) {
		times = append(times, r.duration(item, "times"))
	}
	return times
}

// positive reads a duration for which zero is not the same as left out.
func (r *reader) positive(n *yaml.Node, field string) time.Duration {
	before := len(r.problems)
	d := r.duration(n, field)
	if d <= 0 && len(r.problems) == before {
		r.fail(placeOf(n), field, "is %v: must be longer than 0s", d)
	}
	return d
}

// tokens reads how many tokens a call takes, for which zero is not the same as
// left out.
func (r *reader) tokens(n *yaml.Node) int {
	before := len(r.problems)
	tokens := r.whole(n, "tokens")
	if tokens < 1 && len(r.problems) == before {
		r.fail(placeOf(n), "tokens", "is %d: must be 1 or more", tokens)
	}
	return tokens
}
