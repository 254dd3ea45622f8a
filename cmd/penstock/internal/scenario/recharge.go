package scenario

import (
	"fmt"
	"math"

	"go.yaml.in/yaml/v4"

	"github.com/penstock-go/penstock/simulate"
)

// recharges reads when tokens are added to balances, and notes where the fields stand.
func (r *reader) recharges(n *yaml.Node, nested given) []simulate.Recharge {
	var list []simulate.Recharge
	for i, item := range items(n) {
		var of simulate.Recharge
		path := fmt.Sprintf("recharges[%d]", i)
		found := r.mapping(item, "a recharge",
			field{"at", func(n *yaml.Node) { of.At = r.duration(n, "at") }},
			field{"rule", func(n *yaml.Node) { of.Rule = r.text(n, "rule") }},
			field{"resource", func(n *yaml.Node) { of.Resource = r.text(n, "resource") }},
			field{"tokens", func(n *yaml.Node) { of.Tokens = r.long(n, "tokens") }},
			field{"attrs", func(n *yaml.Node) { of.Attrs = r.oneEach(n, path+".attrs") }},
			field{"origin", func(n *yaml.Node) { of.Origin = r.text(n, "origin") }},
		)
		nested.add(path, item, found)
		list = append(list, of)
	}
	return list
}

// long reads a whole number that may be large.
func (r *reader) long(n *yaml.Node, field string) int64 {
	before := len(r.problems)
	v := r.number(n, field)
	if len(r.problems) == before && (v != math.Trunc(v) || math.Abs(v) > 1<<53) {
		r.fail(placeOf(n), field, "is %s: must be a whole number", describe(n))
		return 0
	}
	return int64(v)
}

// oneEach reads attributes with one value each.
func (r *reader) oneEach(n *yaml.Node, path string) map[string]any {
	if n.Kind != yaml.MappingNode {
		r.fail(placeOf(n), "attrs", "is %s: must be a mapping of names to values, such as {user: u1}", describe(n))
		return nil
	}
	attrs := make(map[string]any)
	for i := 0; i+1 < len(n.Content); i += 2 {
		attrs[r.text(n.Content[i], "attrs")] = r.attribute(n.Content[i+1], path)
	}
	return attrs
}
