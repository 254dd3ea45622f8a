package scenario

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/penstock-go/penstock/cmd/penstock/internal/wording"
	"github.com/penstock-go/penstock/rule"
	"github.com/penstock-go/penstock/simulate"
)

// maxNumbers bounds how many numbers an expectation of each value compares.
const maxNumbers = 10_000_000

// calls says which calls an expectation is about. The zero value stands for all.
type calls struct {
	first []any       // values of the first attribute, of which a call has one; nil for any
	attrs []callsWith // all of them hold
	each  []string    // the expectation is about the calls of each value of these attributes
}

// callsWith is the calls with one of some values of an attribute.
type callsWith struct {
	name   string
	values []any
}

func (c calls) all() bool { return c.first == nil && c.attrs == nil && c.each == nil }

// include says whether a call is one of those that are meant.
func (c calls) include(e *simulate.Event) bool {
	if c.first != nil && !slices.Contains(c.first, e.Value) {
		return false
	}
	for _, attr := range c.attrs {
		if !slices.Contains(attr.values, e.Attrs.Get(attr.name)) {
			return false
		}
	}
	for _, name := range c.each {
		if e.Attrs.Get(name) == nil {
			return false
		}
	}
	return true
}

// String returns the calls for messages, "" for all.
func (c calls) String() string {
	var parts []string
	if c.first != nil {
		parts = append(parts, showValues(c.first))
	}
	for _, attr := range c.attrs {
		parts = append(parts, attr.name+" "+showValues(attr.values))
	}
	if c.each != nil {
		parts = append(parts, "each "+strings.Join(c.each, ", "))
	}
	return strings.Join(parts, ", ")
}

// group is the calls that an expectation is about; of one with each, those of one value.
type group struct {
	value string // "" without each
	calls []*simulate.Event
}

// group returns the calls of a resource, "" for all, in groups by what each says.
func (c calls) group(events []simulate.Event, resource string) []group {
	var groups []group
	if c.each == nil {
		groups = []group{{}}
	}
	index := make(map[string]int)
	for i := range events {
		e := &events[i]
		if resource != "" && e.Resource != resource || !c.include(e) {
			continue
		}
		at := 0
		if c.each != nil {
			key := c.key(e)
			known, ok := index[key]
			if !ok {
				known = len(groups)
				index[key] = known
				groups = append(groups, group{value: key})
			}
			at = known
		}
		groups[at].calls = append(groups[at].calls, e)
	}
	return groups
}

// key returns the values of a call that each speaks of. Different values have different
// keys.
func (c calls) key(e *simulate.Event) string {
	values := make([]string, len(c.each))
	for i, name := range c.each {
		value := e.Attrs.Get(name)
		values[i] = showValue(value)
		if text, ok := value.(string); ok && len(c.each) > 1 && strings.ContainsAny(text, `/"`) {
			values[i] = strconv.Quote(text)
		}
	}
	return strings.Join(values, "/")
}

// showValues returns values for messages.
func showValues(values []any) string {
	const most = 60 // characters of a value
	texts := make([]string, len(values))
	for i, v := range values {
		texts[i] = showValue(v)
		if utf8.RuneCountInString(texts[i]) > most {
			texts[i] = wording.Quote(texts[i])
		}
	}
	return strings.Join(texts, ", ")
}

// showValue returns a value of an attribute as test files write it: a text that would be
// something else without quotes is in quotes.
func showValue(value any) string {
	text, ok := value.(string)
	if !ok {
		return fmt.Sprint(value)
	}
	plain, _ := rule.ParseAttribute(text).Text()
	if plain != text || text == "" || wording.Printable(text) != text {
		return strconv.Quote(text)
	}
	return text
}

// checkCalls compares an expectation about some of the calls with the outcome of a
// simulation. The observation is that of all calls of the resource.
func (e expectation) checkCalls(result simulate.Result, o observation) *Failure {
	groups := e.calls.group(result.Events, e.resource)
	if len(groups) == 0 {
		return &Failure{Message: "is about no call: none has " + strings.Join(e.calls.each, " and ")}
	}
	seconds := 1
	if e.perSecond {
		seconds = len(o.seconds)
	}
	if len(groups) > 1 && len(groups)*seconds > maxNumbers {
		return &Failure{Message: fmt.Sprintf("would be %d numbers, one for each second of %d values: at most %d can be compared; write total instead",
			len(groups)*seconds, len(groups), maxNumbers)}
	}
	var all Failure
	wrong := 0
	for _, g := range groups {
		of := o.of(g.calls, seconds)
		failure := e.check(of)
		if failure == nil {
			continue
		}
		if e.calls.each == nil {
			return failure
		}
		if failure.wrongLength {
			failure.Message = "of " + g.value + " " + failure.Message
			return failure
		}
		wrong++
		for _, d := range failure.Differences {
			d.Where = strings.TrimSuffix(g.value+", "+d.Where, ", ")
			all.Differences = append(all.Differences, d)
		}
	}
	if wrong == 0 {
		return nil
	}
	all.Message = fmt.Sprintf("is not as expected for %d of %d values", wrong, len(groups))
	return &all
}

// of returns the outcome of some of the calls. Of one second alone, it holds what
// happened in all of the seconds of the observation.
func (o observation) of(events []*simulate.Event, seconds int) observation {
	duration := len(o.seconds)
	some := observation{rules: o.rules, blockers: make(map[string]int), seconds: make([]simulate.Second, seconds)}
	for i := range some.seconds {
		some.seconds[i].Second = i
	}
	row := func(at time.Duration) *simulate.Second {
		switch second := int(at / time.Second); {
		case second >= duration:
			return new(simulate.Second) // it is not counted
		case seconds < duration:
			return &some.seconds[0]
		default:
			return &some.seconds[second]
		}
	}
	responses := make([][]float64, seconds)
	for _, e := range events {
		some.addEvent(e, row)
		if end, ok := endOf(e); ok && end < time.Duration(duration)*time.Second && seconds == duration {
			second := int(end / time.Second)
			responses[second] = append(responses[second], *e.End-e.T-e.Wait)
		}
	}
	for i, times := range responses {
		if len(times) > 0 {
			slices.Sort(times)
			some.seconds[i].RTP50, some.seconds[i].RTP99 = percentile(times, 50), percentile(times, 99)
		}
	}
	some.countInFlight(events)
	return some
}

// addEvent counts a call in the seconds in which it came, passed and ended.
func (o *observation) addEvent(e *simulate.Event, row func(time.Duration) *simulate.Second) {
	came := row(nanoseconds(e.T))
	came.Offered++
	if e.Outcome != simulate.Pass {
		came.Blocked++
		o.blockers[o.label(rule.Key{Kind: rule.Kind(e.Kind), Name: e.Rule})]++
		return
	}
	o.waits = append(o.waits, e.Wait)
	passed := row(nanoseconds(e.T + e.Wait))
	passed.Passed++
	if e.Wait > 0 {
		passed.Waited++
	}
	if end, ok := endOf(e); ok {
		ended := row(end)
		if ended.Completed++; e.Failed {
			ended.Failed++
		} else {
			ended.Good++
		}
	}
}

// countInFlight fills in the highest number of calls that were under way in each second.
func (o *observation) countInFlight(events []*simulate.Event) {
	type change struct {
		at time.Duration
		by int
	}
	var changes []change
	for _, e := range events {
		begin := nanoseconds(e.T + e.Wait)
		if end, ok := endOf(e); ok && end > begin {
			changes = append(changes, change{begin, 1}, change{end, -1})
		}
	}
	slices.SortFunc(changes, func(a, b change) int { return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.by, b.by)) })
	next, under := 0, 0
	for i := range o.seconds {
		begin := time.Duration(i) * time.Second
		for ; next < len(changes) && (changes[next].at < begin || changes[next].at == begin && changes[next].by < 0); next++ {
			under += changes[next].by
		}
		o.seconds[i].InFlight = under
		for ; next < len(changes) && changes[next].at < begin+time.Second; next++ {
			under += changes[next].by
			o.seconds[i].InFlight = max(o.seconds[i].InFlight, under)
		}
	}
}

// endOf returns when a call ended; false for one that was refused.
func endOf(e *simulate.Event) (time.Duration, bool) {
	if e.End == nil {
		return 0, false
	}
	return nanoseconds(*e.End), true
}

// nanoseconds returns a time that events give in seconds.
func nanoseconds(seconds float64) time.Duration {
	return time.Duration(math.Round(seconds * float64(time.Second)))
}

// percentile returns the least of the sorted times that so many percent of them do not
// exceed.
func percentile(sorted []float64, percent int) *float64 {
	return &sorted[(len(sorted)*percent+99)/100-1]
}
