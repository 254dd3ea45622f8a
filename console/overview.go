package console

import (
	"cmp"
	"context"
	"net/url"
	"slices"
	"time"

	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/inspect"
	"github.com/penstock-go/penstock/rule"
)

const (
	overviewResources = 50  // rows
	overviewRefusers  = 12  // rules
	overviewEvents    = 100 // kept on the page
)

// overview shows all resources, those that refuse most first, the rules that refuse, and events.
type overview struct {
	h      *handler
	query  inspect.ResourceQuery
	gather gatherer[inspect.Resources]
	log    *eventLog
}

func newOverview(h *handler, query url.Values) (*overview, error) {
	o := &overview{h: h, log: newEventLog(), query: inspect.ResourceQuery{
		Match: query.Get("match"), Sort: inspect.ResourceSort(query.Get("sort")), Limit: overviewResources, Seconds: true,
	}}
	if err := o.query.Validate(); err != nil {
		return nil, errRequest{err.Error()}
	}
	return o, nil
}

// overviewShown is what the page gets.
type overviewShown struct {
	Total     int             `json:"total"` // resources of the instance that has most
	Instances []instanceShown `json:"instances"`
	Sum       series          `json:"sum"` // of the resources that are shown
	Resources []resourceRow   `json:"resources"`
	Refusers  []refuser       `json:"refusers"`
	Events    []loggedEvent   `json:"events"`
}

// instanceShown says whether an instance is part of the numbers.
type instanceShown struct {
	Name    string `json:"name"`
	Address string `json:"address,omitempty"`
	Error   string `json:"error,omitempty"`
}

// resourceRow is a resource, of all instances together.
type resourceRow struct {
	Name     string  `json:"name"`
	Seconds  series  `json:"seconds"`
	P99      float64 `json:"p99"` // of the slowest instance, in seconds; 0 if it is not known
	InFlight int64   `json:"inFlight"`
	Waiting  int64   `json:"waiting"`

	// States are those of its rules that are not in their first state, such as open.
	States []string `json:"states,omitempty"`

	Off bool `json:"off,omitempty"` // a rule that has refused its calls is switched off, or all of its rules are

	// Refuser is the rule that refused most in the minute.
	Refuser *refuser `json:"refuser,omitempty"`

	calls [2]uint64 // refused and passed in the minute
	rules map[rule.Key]*refuser
}

// refuser is a rule and how many calls it refused.
type refuser struct {
	Kind   rule.Kind `json:"kind"`
	Rule   string    `json:"rule"`
	Minute uint64    `json:"minute"`        // refused in it
	Off    bool      `json:"off,omitempty"` // it is switched off, on an instance at least
}

func (o *overview) read(ctx context.Context) (any, error) {
	all, err := o.h.fleet.list(ctx)
	if err != nil {
		return nil, err
	}
	events := o.log.read(ctx, all, isNoRefusal)
	answers := o.gather.ask(ctx, all, func(ctx context.Context, i instance) (page inspect.Resources, err error) {
		return page, i.ask(ctx, "resources", o.query.Query(), &page)
	})
	shown := overviewShown{Events: events, Resources: []resourceRow{}, Refusers: []refuser{}}
	var starts []time.Time
	for _, a := range answers {
		shown.Instances = append(shown.Instances, instanceShown{a.instance.name, a.instance.address, a.err})
		shown.Total = max(shown.Total, a.value.Total)
		for _, r := range a.value.Resources[:min(1, len(a.value.Resources))] {
			if r.Seconds != nil {
				starts = append(starts, r.Seconds.Start)
			}
		}
	}
	o.addUp(&shown, answers, startOf(starts))
	o.addStates(ctx, shown.Resources)
	return shown, nil
}

// addUp adds up the resources of the instances.
func (o *overview) addUp(shown *overviewShown, answers []answered[inspect.Resources], start int64) {
	rows := make(map[string]*resourceRow)
	for _, a := range answers {
		for i := range a.value.Resources {
			r := &a.value.Resources[i]
			row := rows[r.Name]
			if row == nil {
				row = &resourceRow{Name: r.Name, Seconds: newBriefSeries(start), rules: make(map[rule.Key]*refuser)}
				rows[r.Name] = row
			}
			row.add(r)
		}
	}
	refusers := make(map[rule.Key]*refuser)
	for _, row := range rows {
		for _, r := range row.rules {
			addRefuser(refusers, *r)
		}
		if most := sortedRefusers(row.rules, 1); len(most) > 0 {
			row.Refuser = &most[0]
		}
		shown.Resources = append(shown.Resources, *row)
	}
	shown.Refusers = sortedRefusers(refusers, overviewRefusers)
	sortRows(shown.Resources, o.query.Sort)
	shown.Resources = shown.Resources[:min(len(shown.Resources), overviewResources)]
	shown.Sum = newSeries(start)
	for i := range shown.Resources {
		row := &shown.Resources[i]
		addAll(shown.Sum.Passed, row.Seconds.Passed)
		addAll(shown.Sum.Waited, row.Seconds.Waited)
		addAll(shown.Sum.Refused, row.Seconds.Refused)
		addAll(shown.Sum.Failed, row.Seconds.Failed)
		row.Seconds.Failed = nil // the table does not show them
	}
}

// addStates adds the states of rules to their resources, and which resources are switched off.
func (o *overview) addStates(ctx context.Context, rows []resourceRow) {
	strip := o.h.strip(ctx)
	for _, s := range strip.Switches {
		for i := range rows {
			if s.State == core.SwitchOff && s.Resource == rows[i].Name {
				rows[i].Off = true
			}
		}
	}
	for _, s := range strip.States {
		i := slices.IndexFunc(rows, func(r resourceRow) bool { return r.Name == s.Resource })
		if i >= 0 && !slices.Contains(rows[i].States, s.State) {
			rows[i].States = append(rows[i].States, s.State)
		}
	}
}

func (row *resourceRow) add(r *inspect.Resource) {
	row.Seconds.add(r.Seconds)
	row.InFlight += r.InFlight
	row.Waiting += r.Waiting
	row.calls[0] += r.Minute.Refused
	row.calls[1] += r.Minute.Passed
	if r.ResponseTimes != nil {
		row.P99 = max(row.P99, r.ResponseTimes.P99)
	}
	for i := range r.Rules {
		of := &r.Rules[i]
		row.Off = row.Off || of.Off
		addRefuser(row.rules, refuser{of.Kind, of.Rule, valueOf(of.Minute), of.Off})
	}
}

func addRefuser(to map[rule.Key]*refuser, r refuser) {
	if r.Minute == 0 {
		return
	}
	key := rule.Key{Kind: r.Kind, Name: r.Rule}
	of := to[key]
	if of == nil {
		of = &refuser{Kind: r.Kind, Rule: r.Rule}
		to[key] = of
	}
	of.Minute += r.Minute
	of.Off = of.Off || r.Off
}

// sortedRefusers returns the rules that refused most.
func sortedRefusers(of map[rule.Key]*refuser, most int) []refuser {
	list := []refuser{}
	for _, r := range of {
		list = append(list, *r)
	}
	slices.SortFunc(list, func(a, b refuser) int {
		return cmp.Or(cmp.Compare(b.Minute, a.Minute), cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Rule, b.Rule))
	})
	return list[:min(len(list), most)]
}

// sortRows sorts as an instance does.
func sortRows(rows []resourceRow, by inspect.ResourceSort) {
	slices.SortFunc(rows, func(a, b resourceRow) int {
		refused, passed := cmp.Compare(b.calls[0], a.calls[0]), cmp.Compare(b.calls[1], a.calls[1])
		name := cmp.Compare(a.Name, b.Name)
		switch by {
		case inspect.SortName:
			return name
		case inspect.SortPassed:
			return cmp.Or(passed, refused, name)
		case inspect.SortP99:
			return cmp.Or(cmp.Compare(b.P99, a.P99), name)
		case inspect.SortInFlight:
			return cmp.Or(cmp.Compare(b.InFlight, a.InFlight), cmp.Compare(b.Waiting, a.Waiting), name)
		default:
			return cmp.Or(refused, passed, name)
		}
	})
}
