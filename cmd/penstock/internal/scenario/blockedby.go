package scenario

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/penstock-go/penstock/cmd/penstock/internal/wording"
	"github.com/penstock-go/penstock/rule"
)

// expectBlockedBy reads which rules are expected to refuse calls: the name of
// one, a list of names, or a mapping of names to how many calls. No other rule
// may refuse any.
func (r *reader) expectBlockedBy(n *yaml.Node) expectation {
	atLeastOne := want{low: 1, high: math.Inf(1), text: "1.."}
	expected := make(map[string]want)
	if n.Kind == yaml.MappingNode {
		for i := 0; i+1 < len(n.Content); i += 2 {
			name := r.text(n.Content[i], "blockedBy")
			expected[name] = r.want(n.Content[i+1], "blockedBy", counts())
		}
	} else {
		for _, item := range items(n) {
			expected[r.text(item, "blockedBy")] = atLeastOne
		}
	}
	return expectation{events: true, check: func(o observation) *Failure { return compareBlockers(expected, o) }}
}

func compareBlockers(expected map[string]want, o observation) *Failure {
	var failure Failure
	nothing := want{text: "0"}
	for _, name := range slices.Sorted(maps.Keys(expected)) {
		got := float64(o.blockers[name])
		switch {
		case o.unknownRule(name) != "":
			failure.differ(o.unknownRule(name), counts().show(got), expected[name])
		case !expected[name].holds(got):
			failure.differ("by "+wording.Quote(name), counts().show(got), expected[name])
		}
	}
	for _, name := range slices.Sorted(maps.Keys(o.blockers)) {
		if _, known := expected[name]; !known {
			failure.differ("by "+wording.Quote(name), fmt.Sprint(o.blockers[name]), nothing)
		}
	}
	if len(failure.Differences) == 0 {
		return nil
	}
	failure.Message = "is not as expected"
	return &failure
}

// unknownRule returns a message about a label that no rule has, "" if one has it.
func (o observation) unknownRule(label string) string {
	var labels, meant []string
	for _, key := range o.rules {
		of := o.label(key)
		if of == label {
			return ""
		}
		labels = append(labels, of)
		if key.Name == label {
			meant = append(meant, wording.Quote(of))
		}
	}
	if len(meant) > 0 {
		return fmt.Sprintf("%d rules are called %s: write %s", len(meant), wording.Quote(label), strings.Join(meant, " or "))
	}
	message := "no rule is called " + wording.Quote(label)
	if near := rule.Nearest(label, labels); near != "" {
		message += ": did you mean " + wording.Quote(near) + "?"
	}
	return message
}
