package scenario

import (
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/penstock-go/penstock/cmd/penstock/internal/wording"
	"github.com/penstock-go/penstock/rule"
	"github.com/penstock-go/penstock/rules"
	"github.com/penstock-go/penstock/simulate"
)

// stateWant is one change of a rule's state that is expected.
type stateWant struct {
	at       want
	rule, to string
}

func (w stateWant) String() string { return w.at.text + " " + w.rule + " " + w.to }

func (w stateWant) holds(got simulate.StateChange, label string) bool {
	return w.at.holds(got.T) && (w.rule == got.Rule || w.rule == label) && w.to == got.To
}

// expectStates reads which changes of state are expected: all of them, in order of
// time, or with … at the end the first ones.
func (r *reader) expectStates(n *yaml.Node) expectation {
	var expected []stateWant
	open := false
	for _, item := range items(n) {
		if open {
			r.fail(placeOf(item), "states", "go on behind the …, which leaves the rest open: remove one of them")
		}
		if isScalar(item) && (item.Value == "…" || item.Value == "...") {
			open = true
			continue
		}
		expected = append(expected, r.stateWant(item))
	}
	return expectation{whole: true, check: func(o observation) *Failure { return compareStates(expected, open, o) }}
}

func (r *reader) stateWant(n *yaml.Node) stateWant {
	w := stateWant{at: want{any: true, text: "_"}}
	found := r.mapping(n, "a change of state",
		field{"at", func(n *yaml.Node) { w.at = r.want(n, "at", seconds()) }},
		field{"rule", func(n *yaml.Node) { w.rule = r.text(n, "rule") }},
		field{"to", func(n *yaml.Node) { w.to = r.state(n) }},
	)
	for _, required := range []struct{ field, advice string }{
		{"rule", "name the rule whose state changes"},
		{"to", "say what the state becomes, such as open"},
	} {
		if _, ok := found[required.field]; !ok && found != nil {
			r.fail(placeOf(n), required.field, "is missing: %s", required.advice)
		}
	}
	return w
}

// state reads the name of a state that a kind of rule has.
func (r *reader) state(n *yaml.Node) string {
	state := r.text(n, "to")
	var known []string
	for _, kind := range rules.NewTable(r.kinds...).Definitions() {
		known = append(known, kind.States()...)
	}
	if meant := rule.Nearest(state, known); isScalar(n) && !slices.Contains(known, state) {
		advice := "must be " + strings.Join(known, ", ")
		if meant != "" {
			advice = "did you mean " + wording.Quote(meant) + "?"
		}
		r.fail(placeOf(n), "to", "is %s: %s", describe(n), advice)
	}
	return state
}

func compareStates(expected []stateWant, open bool, o observation) *Failure {
	failure := Failure{Message: "are not as expected", Got: sequenceOf(o.states)}
	differ := func(where, got, want string) {
		failure.Differences = append(failure.Differences, Difference{Where: where, Got: got, Want: want})
	}
	for i, w := range expected {
		where := fmt.Sprintf("change %d", i+1)
		isCalled := func(key rule.Key) bool { return key.Name == w.rule }
		if unknown := o.unknownRule(w.rule); unknown != "" && !slices.ContainsFunc(o.rules, isCalled) {
			where += ", " + unknown
		}
		switch {
		case i >= len(o.states):
			differ(where, "none", w.String())
		case !w.holds(o.states[i], o.label(rule.Key{Kind: rule.Kind(o.states[i].Kind), Name: o.states[i].Rule})):
			differ(where, sequenceOf(o.states[i:i+1]), w.String())
		}
	}
	for i := len(expected); i < len(o.states) && !open; i++ {
		differ(fmt.Sprintf("change %d", i+1), sequenceOf(o.states[i:i+1]), "none")
	}
	if len(failure.Differences) == 0 {
		return nil
	}
	return &failure
}

// sequenceOf writes changes of state in one line.
func sequenceOf(states []simulate.StateChange) string {
	list := make([]string, len(states))
	for i, s := range states {
		list[i] = seconds().show(s.T) + " " + s.Rule + " " + s.To
	}
	return strings.Join(list, ", ")
}
