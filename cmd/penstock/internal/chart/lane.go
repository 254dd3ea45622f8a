package chart

import (
	"cmp"
	"slices"

	"github.com/penstock-go/penstock/rule"
	"github.com/penstock-go/penstock/simulate"
)

// lane is the states of one rule over time.
type lane struct {
	rule, kind string
	first      string // the state in which rules of the kind begin; "" if the kind is not known
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
func lanes(states []simulate.StateChange, resource string, resources []string, end float64, first firstStates) []lane {
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
			list = append(list, lane{rule: s.Rule, kind: s.Kind, first: first[s.Kind], spans: []span{{0, end, s.From}}})
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

// firstStates are the states in which rules of each kind begin, which are good.
type firstStates map[string]string

func firstStatesOf(kinds []rule.Definition) firstStates {
	first := make(firstStates)
	for _, kind := range kinds {
		if states := kind.States(); len(states) > 0 {
			first[string(kind.Kind())] = states[0]
		}
	}
	return first
}

// look is how a state is drawn: as the state of a breaker that is as good or as bad, or as another one.
type look string

const (
	good    look = "closed"
	bad     look = "open"
	between look = "halfOpen"
	other   look = "other"
)

// shown is a state as the legend explains it.
type shown struct {
	state string
	look  look
}

// show returns how a state of the rule is shown: that in which its kind begins is good, whatever its name.
func (l lane) show(state string) shown {
	switch {
	case state == backendAnswers, state == l.first, l.first == "" && state == string(good):
		return shown{state, good}
	case state == string(bad), state == backendAway:
		return shown{state, bad}
	case state == string(between), state == backendEmptied:
		return shown{state, between}
	}
	return shown{state, other}
}

// states returns the states that the legend explains: closed, halfOpen and open if a rule has one of
// them, and then the others in the order of their appearance.
func (p panel) states() []shown {
	if len(p.outages) > 0 {
		return withStates([]shown{{backendAnswers, good}}, p.lanes[:1])
	}
	familiar := []shown{{string(good), good}, {string(between), between}, {string(bad), bad}}
	list := withStates(familiar, p.lanes)
	others := list[len(familiar):]
	for _, l := range p.lanes {
		if slices.ContainsFunc(l.spans, func(s span) bool { return slices.Contains(familiar, l.show(s.state)) }) {
			return list
		}
	}
	return others
}

// withStates returns the list with the states of the lanes that it lacks.
func withStates(list []shown, lanes []lane) []shown {
	for _, l := range lanes {
		for _, s := range l.spans {
			if of := l.show(s.state); !slices.Contains(list, of) {
				list = append(list, of)
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
