package inspect

import (
	"cmp"
	"fmt"
	"math"
	"net/url"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/rule"
)

const (
	// maxLimiters is how many limiters a [Status] has at the most.
	maxLimiters = 1000

	// maxValueLimiters is how many of these have [Limiter.Values].
	maxValueLimiters = 100

	// maxValues is how many values a limiter shows at the most.
	maxValues = 10

	// maxValueLength is how many bytes of a value are shown.
	maxValueLength = 256
)

// Limiter is the state of a rule on a resource, for kinds of rules that have states,
// gauges or values, such as circuit breakers and limits on concurrency.
type Limiter struct {
	// Resource is the resource that the rule guards, or the pattern of a rule that
	// several resources share.
	Resource string `json:"resource"`

	Kind   rule.Kind `json:"kind"`
	Rule   string    `json:"rule"`
	Shadow bool      `json:"shadow,omitempty"`
	Off    bool      `json:"off,omitempty"` // it is switched off

	State  string  `json:"state,omitempty"` // such as "open"; "" for kinds that have no states
	Gauges []Gauge `json:"gauges,omitempty"`

	// Notes say in plain words what the state is and why, such as what showed an overload.
	Notes []Note `json:"notes,omitempty"`

	// Values are the values of attributes, such as users, that the limiter has seen most
	// often of late, the most frequent first, at most ten.
	Values []Value `json:"values,omitempty"`
}

// Note is a sentence about the state of a limiter, and since when it is true.
type Note struct {
	Since time.Time `json:"since"`
	Text  string    `json:"text"`
}

// Value tells of the calls with one value of an attribute. The counts are estimates.
type Value struct {
	Value   string `json:"value"` // perhaps cut, or masked if the rule says so
	Passed  uint64 `json:"passed"`
	Refused uint64 `json:"refused"`
}

// Limiters are the limiters of an engine, or some of them.
type Limiters struct {
	// Limiters are at most 1,000: those that are not in the first of their
	// states before the others, then by resource, kind and rule. If there are more,
	// those that have refused most calls of late are among them.
	Limiters []Limiter `json:"limiters,omitempty"`

	// MoreLimiters counts those that are left out.
	MoreLimiters int `json:"moreLimiters,omitempty"`

	// MoreValues counts the limiters whose values are left out: only the
	// 100 that have refused most calls of late have them.
	MoreValues int `json:"moreValues,omitempty"`
}

// limitersOf returns limiters of an engine, if changed is true only those that are not in their first state. It takes a time in proportion to the rules on
// the resources that the engine knows.
func limitersOf(engine *core.Engine, q RuleQuery, changed bool) Limiters {
	c := limiterCollector{clock: engine.Clock(), changed: changed}
	include := func(r rule.Rule) bool { return q.mayShow(r, changed) }
	for resource, of := range engine.RuleStates(include) {
		if q.Resource == "" || q.Resource == resource {
			c.add(resource, &of)
		}
	}
	return c.result()
}

// mayShow says whether limiters of a rule may have something to show, and are selected.
func (q RuleQuery) mayShow(r rule.Rule, changed bool) bool {
	kind := r.Type()
	return q.includes(r) && (len(kind.States()) > 0 || !changed && (len(kind.Gauges()) > 0 || len(r.Attributes()) > 0))
}

// parseLimiterQuery reads the limiters that a request asks about.
func parseLimiterQuery(query string) (RuleQuery, error) {
	values, err := url.ParseQuery(query)
	if err != nil {
		return RuleQuery{}, fmt.Errorf("inspect: %w", err)
	}
	if err := checkParameters(values, "resource", "kind", "rule"); err != nil {
		return RuleQuery{}, err
	}
	return RuleQuery{
		Resource: values.Get("resource"), Kind: rule.Kind(values.Get("kind")), Rule: values.Get("rule"),
	}, nil
}

// limiterCollector keeps the limiters that matter most. It never holds more than twice as
// many as it returns.
type limiterCollector struct {
	clock    clock.Clock
	changed  bool // only those that are not in their first state are kept
	limiters []collectedLimiter
	more     int // were left out
	values   int // limiters with values, of all
}

type collectedLimiter struct {
	Limiter
	hasChanged bool   // it is in another state than the first
	refused    uint64 // calls with its values
	calls      uint64
}

func (c *limiterCollector) add(resource string, of *core.RuleSnapshot) {
	states := of.Rule.Type().States()
	hasChanged := of.State != "" && of.State != states[0]
	if c.changed && !hasChanged {
		return
	}
	l := collectedLimiter{Limiter: Limiter{
		Resource: resource, Kind: of.Kind, Rule: of.Name, Shadow: of.Shadow, Off: of.Off, State: of.State,
		Gauges: gaugesOf(of), Notes: notesOf(c.clock, of), Values: valuesOf(of),
	}}
	if len(states)+len(l.Gauges)+len(l.Values) == 0 {
		return
	}
	l.hasChanged = hasChanged
	for _, v := range l.Values {
		l.refused += v.Refused
		l.calls += v.Passed + v.Refused
	}
	if len(l.Values) > 0 {
		c.values++
	}
	c.limiters = append(c.limiters, l)
	if len(c.limiters) >= 2*maxLimiters {
		c.prune()
	}
}

// prune leaves out all but the limiters that matter most.
func (c *limiterCollector) prune() {
	slices.SortFunc(c.limiters, func(a, b collectedLimiter) int {
		return cmp.Or(a.compareState(&b), a.compareCalls(&b), a.compareName(&b.Limiter))
	})
	if left := len(c.limiters) - maxLimiters; left > 0 {
		clear(c.limiters[maxLimiters:])
		c.limiters = c.limiters[:maxLimiters]
		c.more += left
	}
}

func (c *limiterCollector) result() Limiters {
	c.prune()
	slices.SortFunc(c.limiters, func(a, b collectedLimiter) int { return cmp.Or(a.compareCalls(&b), a.compareName(&b.Limiter)) })
	shown := 0
	for i := range c.limiters {
		l := &c.limiters[i]
		if len(l.Values) > 0 && shown == maxValueLimiters {
			l.Values = nil
		}
		if len(l.Values) > 0 {
			shown++
		}
	}
	slices.SortFunc(c.limiters, func(a, b collectedLimiter) int { return cmp.Or(a.compareState(&b), a.compareName(&b.Limiter)) })
	found := Limiters{MoreLimiters: c.more, MoreValues: c.values - shown}
	for i := range c.limiters {
		found.Limiters = append(found.Limiters, c.limiters[i].Limiter)
	}
	return found
}

// compareState puts limiters that are not in their first state before the others.
func (l *collectedLimiter) compareState(m *collectedLimiter) int {
	switch {
	case l.hasChanged == m.hasChanged:
		return 0
	case l.hasChanged:
		return -1
	}
	return 1
}

// compareCalls puts limiters that have refused more calls of late before the others, then
// those that have seen more.
func (l *collectedLimiter) compareCalls(m *collectedLimiter) int {
	return cmp.Or(cmp.Compare(m.refused, l.refused), cmp.Compare(m.calls, l.calls))
}

func (l *Limiter) compareName(m *Limiter) int {
	return cmp.Or(cmp.Compare(l.Resource, m.Resource), cmp.Compare(l.Kind, m.Kind), cmp.Compare(l.Rule, m.Rule))
}

// gaugesOf returns the gauges that a rule has, with their names.
func gaugesOf(of *core.RuleSnapshot) []Gauge {
	var gauges []Gauge
	for i, gauge := range of.Rule.Type().Gauges() {
		if value := of.Gauges[i]; !math.IsNaN(value) {
			gauges = append(gauges, Gauge{gauge.Name, value, gauge.Label, gauge.LabelValue})
		}
	}
	return gauges
}

// notesOf returns the notes on the state of a rule.
func notesOf(c clock.Clock, of *core.RuleSnapshot) (notes []Note) {
	for _, n := range of.Notes {
		notes = append(notes, Note{timeOf(c, n.Since), n.Text})
	}
	return notes
}

// valuesOf returns the values that a rule has seen most often.
func valuesOf(of *core.RuleSnapshot) []Value {
	var values []Value
	for _, v := range of.Values[:min(len(of.Values), maxValues)] {
		values = append(values, Value{shorten(v.Value), v.Passed, v.Refused})
	}
	return values
}

// shorten cuts a value that is too long to be shown.
func shorten(value string) string {
	if len(value) <= maxValueLength {
		return strings.ToValidUTF8(value, "\uFFFD")
	}
	end := maxValueLength
	for end > maxValueLength-utf8.UTFMax && !utf8.RuneStart(value[end]) {
		end--
	}
	return strings.ToValidUTF8(value[:end], "\uFFFD") + "…"
}
