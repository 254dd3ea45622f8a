package chart

import (
	"cmp"
	"slices"

	"github.com/penstock-go/penstock/simulate"
)

// lane is the states of one rule over time.
type lane struct {
	rule, kind string
	changes    int    // of state, until the end
	spans      []span // one after the other, from 0 to the end
}

// span is a time, in seconds, during which a rule is in a state.
type span struct {
	from, to float64
	state    string
}

// lanes returns the states of the rules that concern a resource until the end:
// those on it, and those on what is no resource of the load, such as all
// resources together. Rules whose state never changes have no lane.
func lanes(states []simulate.StateChange, resource string, resources []string, end float64) []lane {
	var list []lane
	index := make(map[simulate.StateChange]int) // of the lane of a rule
	for _, s := range states {
		if s.Resource != resource && slices.Contains(resources, s.Resource) {
			continue
		}
		key := simulate.StateChange{Resource: s.Resource, Kind: s.Kind, Rule: s.Rule}
		i, known := index[key]
		if !known {
			i = len(list)
			index[key] = i
			list = append(list, lane{rule: s.Rule, kind: s.Kind, spans: []span{{0, end, s.From}}})
		}
		if s.T <= end {
			list[i].change(s.T, s.To)
		}
	}
	return list
}

// change changes the state at a time, which is not before that of the last change.
func (l *lane) change(at float64, to string) {
	l.changes++
	last := &l.spans[len(l.spans)-1]
	end := last.to
	last.to = at
	if last.from == at { // it lasted no time
		l.spans = l.spans[:len(l.spans)-1]
	}
	if at < end {
		l.spans = append(l.spans, span{at, end, to})
	}
}

// weight is how much the time in a state counts: an outage of the backend is shown however
// short it is.
func weight(state string) float64 {
	if state == backendAnswers {
		return 1e-9
	}
	return 1
}

// states returns the states that the legend explains: closed, halfOpen and open if a rule has one of
// them, and then the others in the order of their appearance.
func (p panel) states() []string {
	if len(p.outages) > 0 {
		return withStates([]string{backendAnswers}, p.lanes[:1])
	}
	familiar := []string{"closed", "halfOpen", "open"}
	list := withStates(familiar, p.lanes)
	others := list[len(familiar):]
	isFamiliar := func(s span) bool { return slices.Contains(familiar, s.state) }
	for _, l := range p.lanes {
		if slices.ContainsFunc(l.spans, isFamiliar) {
			return list
		}
	}
	return others
}

// withStates returns the list with the states of the lanes that it lacks.
func withStates(list []string, lanes []lane) []string {
	for _, l := range lanes {
		for _, s := range l.spans {
			if !slices.Contains(list, s.state) {
				list = append(list, s.state)
			}
		}
	}
	return list
}

// longest returns the state that a rule is in for most of a time.
func (l lane) longest(from, to float64) string {
	lasted := make(map[string]float64)
	state := ""
	first, _ := slices.BinarySearchFunc(l.spans, from, func(s span, at float64) int {
		return cmp.Or(cmp.Compare(s.to, at), -1) // the first that ends later
	})
	for _, s := range l.spans[first:] {
		if s.from >= to {
			break
		}
		lasted[s.state] += weight(s.state) * (min(s.to, to) - max(s.from, from))
		if state == "" || lasted[s.state] > lasted[state] {
			state = s.state
		}
	}
	return state
}

// thinned returns the spans or, where there are more than that, so many columns
// of equal width with the state that lasts longest in each.
func (l lane) thinned(most int) []span {
	if len(l.spans) <= most {
		return l.spans
	}
	end := l.spans[len(l.spans)-1].to
	var list []span
	for i := range most {
		next := span{end * float64(i) / float64(most), end * float64(i+1) / float64(most), ""}
		next.state = l.longest(next.from, next.to)
		if last := len(list) - 1; last >= 0 && list[last].state == next.state {
			list[last].to = next.to
			continue
		}
		list = append(list, next)
	}
	return list
}
