package console

import (
	"cmp"
	"context"
	"errors"
	"math"
	"net/http"
	"net/url"
	"slices"
	"time"

	"github.com/penstock-go/penstock/inspect"
	"github.com/penstock-go/penstock/rule"
)

// resource shows all of one resource.
type resource struct {
	h      *handler
	name   string
	gather gatherer[*inspect.ResourceDetail]
	keys   gatherer[inspect.Explanation] // which attributes rules look at
	log    *eventLog
}

func newResource(h *handler, query url.Values) (*resource, error) {
	name := query.Get("name")
	switch {
	case name == "":
		return nil, errRequest{"the name of the resource is missing"}
	case len(name) > rule.MaxNameLength:
		return nil, errRequest{"the name of the resource is too long"}
	}
	return &resource{h: h, name: name, log: newEventLog()}, nil
}

// resourceShown is what the page gets.
type resourceShown struct {
	Name      string                 `json:"name"`
	Instances []instanceShown        `json:"instances"`
	Known     int                    `json:"known"` // instances that know the resource
	Seconds   series                 `json:"seconds"`
	Times     *inspect.ResponseTimes `json:"responseTimes,omitempty"` // of the slowest instance
	InFlight  int64                  `json:"inFlight"`
	Waiting   int64                  `json:"waiting"`
	Rules     []ruleShown            `json:"rules"`
	Events    []loggedEvent          `json:"events"`
}

// ruleShown is a rule of a resource, with its limiters of all instances.
type ruleShown struct {
	Kind     rule.Kind       `json:"kind"`
	Rule     string          `json:"rule"`
	Shadow   bool            `json:"shadow"`
	Off      int             `json:"off"` // instances on which it is switched off
	Document string          `json:"document,omitempty"`
	Line     int             `json:"line,omitempty"`
	Fields   []inspect.Field `json:"fields"`

	Second  uint64   `json:"second"` // refused
	Minute  uint64   `json:"minute"`
	Refused uint64   `json:"refused"` // since the rule guards the resource
	Would   uint64   `json:"would"`   // and would have, as a shadow
	Seconds []uint64 `json:"seconds,omitempty"`

	Gauge  *gauge          `json:"gauge,omitempty"`
	States []namedState    `json:"states,omitempty"`
	First  string          `json:"first,omitempty"` // the state in which rules of the kind begin
	Notes  []string        `json:"notes,omitempty"`
	Values []inspect.Value `json:"values,omitempty"`
	Keys   []string        `json:"keys,omitempty"` // attributes that it looks at

	// Waits say who waits at the rule on each instance where somebody does.
	Waits []waitShown `json:"waits,omitempty"`

	// Rate is the effective limit as calls a second, if it is one.
	Rate float64 `json:"rate,omitempty"`
}

// waitShown says who waits at a rule on an instance.
type waitShown struct {
	Instance string  `json:"instance"`
	Waiting  float64 `json:"waiting"` // calls; 0 if the kind does not tell

	// Of a rule with fairBy: how many tenants wait, and the most calls of one of them; 0 of others.
	Tenants float64 `json:"tenants,omitempty"`
	Longest float64 `json:"longest,omitempty"`

	// Who says whose calls they are and who is in front, and Since when the oldest of them came.
	Who   string    `json:"who,omitempty"`
	Since time.Time `json:"since,omitzero"`
}

// waitOf says who waits at a limiter; false if nobody does.
func waitOf(instance string, of *inspect.State) (w waitShown, ok bool) {
	w.Instance = instance
	for _, name := range []string{"waiting", "queued"} {
		n, _ := gaugeNamed(of.Gauges, name)
		w.Waiting += n
	}
	w.Tenants, _ = gaugeNamed(of.Gauges, "tenants_waiting")
	w.Longest, _ = gaugeNamed(of.Gauges, "longest_waiting")
	if w.Tenants > 0 && len(of.Notes) > 0 { // that of those who wait is the last
		note := of.Notes[len(of.Notes)-1]
		w.Who, w.Since = note.Text, note.Since
	}
	return w, w.Waiting+w.Tenants > 0
}

// gauge says how much of a limit is used.
type gauge struct {
	Used  float64 `json:"used"`
	Limit float64 `json:"limit"`
	Unit  string  `json:"unit"`
}

func (s *resource) read(ctx context.Context) (any, error) {
	all, err := s.h.fleet.list(ctx)
	if err != nil {
		return nil, err
	}
	ofResource := func(e *inspect.Event) bool { return isNoRefusal(e) && (e.Resource == s.name || e.Resource == "") }
	shown := resourceShown{Name: s.name, Rules: []ruleShown{}, Events: s.log.read(ctx, all, ofResource)}
	answers := s.gather.ask(ctx, all, s.ask)
	var starts []time.Time
	for _, a := range answers {
		shown.Instances = append(shown.Instances, instanceShown{a.instance.name, a.instance.address, a.err})
		if a.value != nil {
			shown.Known++
			starts = append(starts, a.value.Seconds.Start)
		}
	}
	shown.Seconds = newSeries(startOf(starts))
	var seconds []*inspect.Seconds
	for _, a := range answers {
		if of := a.value; of != nil {
			shown.Seconds.add(of.Seconds)
			seconds = append(seconds, of.Seconds)
			shown.Times = slower(shown.Times, of.ResponseTimes)
			shown.InFlight += of.InFlight
			shown.Waiting += of.Waiting
			s.addRules(&shown, of, a.instance.name)
		}
	}
	addMeans(&shown.Seconds, seconds)
	call := inspect.Call{Resource: s.name}
	for _, a := range s.keys.ask(ctx, all, func(ctx context.Context, i instance) (e inspect.Explanation, err error) {
		return e, i.ask(ctx, "explain", call.Query(), &e)
	}) {
		shown.addKeys(a.value.Rules)
	}
	return shown, nil
}

// ask returns what an instance knows of the resource, nil if it does not know it.
func (s *resource) ask(ctx context.Context, i instance) (*inspect.ResourceDetail, error) {
	detail := new(inspect.ResourceDetail)
	err := i.ask(ctx, inspect.ResourcePath(s.name), nil, detail)
	if failed := (answerError{}); errors.As(err, &failed) && failed.status == http.StatusNotFound {
		return nil, nil //nolint:nilnil // it has no calls, and no rule names it
	}
	if err == nil && detail.Seconds == nil {
		return nil, errors.New("it answers without seconds")
	}
	return detail, err
}

// addRules adds the rules of an instance.
func (s *resource) addRules(shown *resourceShown, of *inspect.ResourceDetail, instance string) {
	for n := range of.Limiters {
		l := &of.Limiters[n]
		i := slices.IndexFunc(shown.Rules, func(r ruleShown) bool { return r.Kind == l.Kind && r.Rule == l.Name })
		if i < 0 {
			i = len(shown.Rules)
			shown.Rules = append(shown.Rules, ruleShown{
				Kind: l.Kind, Rule: l.Name, Shadow: l.Shadow, Document: l.Document, Line: l.Line, Fields: l.Fields,
				First: s.h.firstState(l.Kind), Seconds: make([]uint64, length),
			})
		}
		if l.Off {
			shown.Rules[i].Off++
		}
		shown.Rules[i].addState(l.State, instance)
	}
	for n := range of.Rules {
		r := &of.Rules[n]
		i := slices.IndexFunc(shown.Rules, func(s ruleShown) bool { return s.Kind == r.Kind && s.Rule == r.Rule })
		if i < 0 {
			continue
		}
		to := &shown.Rules[i]
		to.Second += valueOf(r.Second)
		to.Minute += valueOf(r.Minute)
		to.Refused += r.Refused
		to.Would += r.WouldBlock
		addAll(to.Seconds, shiftedSeconds(&shown.Seconds, of.Seconds, r.Seconds))
	}
}

// addKeys adds the attributes that rules look at.
func (s *resourceShown) addKeys(rules []inspect.Rule) {
	for _, r := range rules {
		i := slices.IndexFunc(s.Rules, func(shown ruleShown) bool { return shown.Kind == r.Kind && shown.Rule == r.Name })
		if i < 0 || s.Rules[i].Keys != nil {
			continue
		}
		for _, a := range r.Attributes {
			s.Rules[i].Keys = append(s.Rules[i].Keys, a.Key)
		}
	}
}

// addState adds the state of a limiter of an instance.
func (r *ruleShown) addState(of *inspect.State, instance string) {
	if of == nil {
		return
	}
	notes := of.Notes
	if w, ok := waitOf(instance, of); ok {
		r.Waits = append(r.Waits, w)
		if w.Who != "" {
			notes = notes[:len(notes)-1]
		}
	}
	if of.State != "" {
		r.States = addState(r.States, namedState{Kind: r.Kind, Rule: r.Rule, State: of.State, Instances: 1})
	}
	for _, n := range notes {
		if !slices.Contains(r.Notes, n.Text) {
			r.Notes = append(r.Notes, n.Text)
		}
	}
	for _, v := range of.Values {
		r.addValue(v)
	}
	if g := gaugeOf(of); g != nil {
		if r.Gauge == nil {
			r.Gauge = &gauge{Unit: g.Unit}
		}
		r.Gauge.Used += g.Used
		r.Gauge.Limit += g.Limit
	}
	if of.Quota != nil && !of.Effective.IsInfinite() && of.Window > 0 {
		r.Rate += min(float64(of.Effective)/of.Window, math.MaxInt64)
	}
}

// addValue adds a value of an attribute that several instances may have seen.
func (r *ruleShown) addValue(v inspect.Value) {
	i := slices.IndexFunc(r.Values, func(w inspect.Value) bool { return w.Value == v.Value })
	if i < 0 {
		r.Values = append(r.Values, v)
	} else {
		r.Values[i].Passed += v.Passed
		r.Values[i].Refused += v.Refused
	}
	slices.SortStableFunc(r.Values, func(a, b inspect.Value) int {
		return cmp.Or(cmp.Compare(b.Refused, a.Refused), cmp.Compare(b.Passed, a.Passed))
	})
	r.Values = r.Values[:min(len(r.Values), maxValues)]
}

// gaugeOf says how much of the limit of a limiter is used; nil if it has no such limit.
func gaugeOf(of *inspect.State) *gauge {
	if of.Quota != nil && !of.Effective.IsInfinite() && !of.Prepaid && !of.Unknown {
		limit := float64(of.Effective)
		return &gauge{Used: max(0, limit-float64(of.Remaining)), Limit: limit, Unit: "per " + windowText(of.Window)}
	}
	limit, hasLimit := gaugeNamed(of.Gauges, "limit")
	flight, hasFlight := gaugeNamed(of.Gauges, "in_flight")
	if hasLimit && hasFlight {
		return &gauge{Used: flight, Limit: limit, Unit: "at once"}
	}
	return nil
}

// gaugeNamed returns the sum of the gauges of a name, which labels tell apart.
func gaugeNamed(all []inspect.Gauge, name string) (sum float64, ok bool) {
	for _, g := range all {
		if g.Name == name {
			sum, ok = sum+g.Value, true
		}
	}
	return sum, ok
}

// windowText says how long a window is, "s" for a second.
func windowText(seconds float64) string {
	if seconds == 1 {
		return "s"
	}
	return time.Duration(seconds * float64(time.Second)).String()
}

// maxValues is how many values of a limiter are shown at the most, as many as one instance tells of.
const maxValues = 10
