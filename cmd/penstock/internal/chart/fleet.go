package chart

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/penstock-go/penstock/simulate"
)

// The states of the backend that a fleet shares, as the band of it shows them.
const (
	backendAnswers = "answers"
	backendAway    = "away"
	backendEmptied = "away, loses its counts"
)

// fleetPanels returns what to draw of the limits that instances share: what all of them
// together let through, with the limit as the ceiling.
func fleetPanels(result simulate.Result, fit, ticks int) []panel {
	var list []panel
	for _, rows := range fleetByRule(result.Fleet) {
		of := rows[0]
		p := newPanel(fleetTitle(of), fleetSeconds(rows), fit, ticks)
		p.unit = "tokens per second"
		p.more = p.fleetGraphs(rows)
		p.outages = result.Outages
		if len(result.Outages) > 0 {
			p.lanes = []lane{backendLane(result.Outages, float64(len(rows)))}
		}
		list = append(list, p)
	}
	if len(list) > 0 {
		last := &list[len(list)-1]
		last.more = append(last.more, last.backendGraph(result.Backend))
	}
	return list
}

// fleetTitle names a limit.
func fleetTitle(of simulate.FleetSecond) string {
	title := of.Rule + " (" + of.Kind + ")"
	if of.Resource != of.Rule {
		title += " of " + of.Resource
	}
	return title + ", the whole fleet"
}

func fleetByRule(rows []simulate.FleetSecond) [][]simulate.FleetSecond {
	return byLimiter(rows, func(r simulate.FleetSecond) limiter { return limiter{r.Kind, r.Rule, r.Resource} })
}

// fleetSeconds returns the rows of a limit as those of a resource.
func fleetSeconds(rows []simulate.FleetSecond) []simulate.Second {
	list := make([]simulate.Second, len(rows))
	for i, row := range rows {
		list[i] = simulate.Second{
			Second: i, Resource: row.Resource, Ceiling: row.Limit,
			Offered: row.Passed + row.Refused, Passed: row.Passed, Blocked: row.Refused,
		}
	}
	return list
}

// fleetGraphs draws the parts of the instances and how many the backend answers.
func (p panel) fleetGraphs(rows []simulate.FleetSecond) []graph {
	of := func(value func(simulate.FleetSecond) int) []float64 {
		return p.perPoint(len(rows), func(i int) (float64, float64) { return rows[i].T, float64(value(rows[i])) })
	}
	parts := newGraph("", "most passed per second by one instance", of(func(r simulate.FleetSecond) int { return r.Most }))
	parts.line, parts.what = of(func(r simulate.FleetSecond) int { return r.Least }), "least"
	connected := newGraph("", "instances that the backend answers", of(func(r simulate.FleetSecond) int { return r.Connected }))
	return []graph{parts, connected}
}

func (p panel) backendGraph(rows []simulate.BackendSecond) graph {
	return newGraph("", "requests to the backend per second", p.perPoint(len(rows), func(i int) (float64, float64) {
		return rows[i].T, float64(rows[i].Requests)
	}))
}

// backendLane returns the states of the backend until the end.
func backendLane(outages []simulate.OutageSpan, end float64) lane {
	l := lane{rule: "backend", kind: "fleet", spans: []span{{0, end, backendAnswers}}}
	for _, o := range outages {
		if o.From >= end {
			break
		}
		state := backendAway
		if o.Empty {
			state = backendEmptied
		}
		l.change(o.From, state)
		if o.Until < end {
			l.change(o.Until, backendAnswers)
		}
	}
	return l
}

// stateGraphs draws, for each rule that has states on each of several instances, on how many
// of them it is in which state that is not good.
func (p panel) stateGraphs(states []simulate.StateChange, resources []string, first firstStates) []graph {
	var list []graph
	for _, changes := range statesByRule(states) {
		of := changes[0]
		if of.Resource != p.resource && slices.Contains(resources, of.Resource) {
			continue
		}
		for _, state := range statesIn(changes, lane{first: first[of.Kind]}) {
			list = append(list, newGraph(of.Rule+" ("+of.Kind+"): ", "instances "+state, p.inState(changes, state)))
		}
	}
	return list
}

// statesByRule returns the changes of each rule on all instances, in the order of the first.
func statesByRule(states []simulate.StateChange) [][]simulate.StateChange {
	index := make(map[simulate.StateChange]int)
	var list [][]simulate.StateChange
	for _, s := range states {
		key := simulate.StateChange{Resource: s.Resource, Kind: s.Kind, Rule: s.Rule}
		i, known := index[key]
		if !known {
			i = len(list)
			index[key] = i
			list = append(list, nil)
		}
		list[i] = append(list[i], s)
	}
	return list
}

// statesIn returns the states that are not good, in order of appearance.
func statesIn(changes []simulate.StateChange, of lane) []string {
	var list []string
	for _, c := range changes {
		for _, state := range []string{c.From, c.To} {
			if of.show(state).look != good && !slices.Contains(list, state) {
				list = append(list, state)
			}
		}
	}
	return list
}

// inState returns on how many instances a rule is in a state, on average over each point.
func (p panel) inState(changes []simulate.StateChange, state string) []float64 {
	means := make([]float64, len(p.points))
	count, known := 0.0, make(map[int]bool) // instances whose state is known
	for _, c := range changes {
		if !known[c.Instance] && c.From == state {
			count++
		}
		known[c.Instance] = true
	}
	t := 0.0
	spend := func(until float64) { // what is left of the time until then, in the present state
		first, _ := slices.BinarySearchFunc(p.points, t, func(at point, t float64) int { return cmp.Or(cmp.Compare(float64(at.to), t), -1) })
		for i := first; i < len(p.points) && float64(p.points[i].from) < until; i++ {
			from, to := float64(p.points[i].from), float64(p.points[i].to)
			means[i] += count * max(0, min(to, until)-max(from, t)) / (to - from)
		}
		t = max(t, until)
	}
	for _, c := range changes {
		spend(c.T)
		if c.From == state {
			count--
		}
		if c.To == state {
			count++
		}
	}
	spend(math.Inf(1))
	return means
}

// outages shades the times in which the backend does not answer.
func (o picture) outages(p panel) {
	if len(p.points) == 0 {
		return
	}
	end := float64(p.points[len(p.points)-1].to)
	for _, outage := range p.outages {
		left, right := plotWidth*min(outage.From, end)/end, plotWidth*min(outage.Until, end)/end
		o.line(`<rect fill="#b03a00" fill-opacity=".18" x="%.2f" y="0" width="%.2f" height="%d"><title>the backend is away from %s s to %s s</title></rect>`,
			left, right-left, plotHeight, figure(outage.From), figure(outage.Until))
	}
}

// backendTotals says in a sentence what the backend was asked; "" if there is none.
func backendTotals(rows []simulate.BackendSecond) string {
	var requests, roundTrips, unanswered int
	for _, row := range rows {
		requests += row.Requests
		roundTrips += row.RoundTrips
		unanswered += row.Unanswered
	}
	if len(rows) == 0 {
		return ""
	}
	return fmt.Sprintf("backend: %s requests in %s round trips, %s of them unanswered",
		count(requests), count(roundTrips), count(unanswered))
}
