package inspect

import (
	"cmp"
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/rule"
	"github.com/penstock-go/penstock/stat"
)

const (
	// maxPageSize is about how many bytes the resources of a page have: names may be long, and a page
	// ends before it is larger.
	maxPageSize = 8 << 20

	// maxResourceRules is how many rules a resource of a page shows.
	maxResourceRules = 20
)

// Resources is a page of the resources that an engine knows: those that rules name, and those that
// were called in the last minute.
type Resources struct {
	Time      time.Time  `json:"time"`
	Resources []Resource `json:"resources"`
	Total     int        `json:"total"` // that the query selects, on all pages

	// Next is the offset of the next page, 0 if this is the last one. The order may change in between.
	Next int `json:"next,omitempty"`
}

// Resource is what happened on a resource of late. Times are in seconds.
type Resource struct {
	// Name is the name of the resource; [rule.OtherResources] stands for all names beyond
	// [core.Config.MaxResources]. What is not UTF-8 in it is replaced.
	Name string `json:"name"`

	InFlight int64 `json:"inFlight"` // calls under way now
	Waiting  int64 `json:"waiting"`  // calls that rules have wait now

	Second Calls `json:"second"` // in the last second that is over
	Minute Calls `json:"minute"` // in the last 60 seconds, of which the present one is the last

	// ResponseTimes is nil if no call has ended of late.
	ResponseTimes *ResponseTimes `json:"responseTimes,omitempty"`

	// Rules are those that guard the resource: in a page those that have refused or would have refused a
	// call, those that refused most in the last minute first, at most 20.
	Rules     []ResourceRule `json:"rules,omitempty"`
	MoreRules int            `json:"moreRules,omitempty"` // that are left out beyond that

	// Seconds is nil unless it was asked for.
	Seconds *Seconds `json:"seconds,omitempty"`
}

// Calls counts the calls of a resource in a time.
type Calls struct {
	Passed    uint64 `json:"passed"`
	Refused   uint64 `json:"refused"`
	Waited    uint64 `json:"waited"`    // ended a wait, however it ended
	Completed uint64 `json:"completed"` // ended, failed ones included
	Failed    uint64 `json:"failed"`    // ended with a failure

	MeanResponseTime float64 `json:"meanResponseTime"` // of the calls that ended, in seconds
	MaxResponseTime  float64 `json:"maxResponseTime"`
	MaxInFlight      uint64  `json:"maxInFlight"` // the most that were under way at once, as seen when calls passed
}

// ResponseTimes are percentiles of the response times of calls that ended, in seconds, right within
// 3.2 %. Waits that rules demanded are not part of them.
type ResponseTimes struct {
	P50 float64 `json:"p50"`
	P90 float64 `json:"p90"`
	P99 float64 `json:"p99"`

	// Count is how many calls they are of: those that ended since the instant Since, which is within the
	// last minute or so if the handler showed the resource then. If it did not, they are of all calls
	// since the engine knows the resource, and Since is left out.
	Count uint64    `json:"count"`
	Since time.Time `json:"since,omitzero"`
}

// ResourceRule is what a rule did to the calls of a resource.
type ResourceRule struct {
	Kind   rule.Kind `json:"kind"`
	Rule   string    `json:"rule"`
	Shadow bool      `json:"shadow,omitempty"`
	Off    bool      `json:"off,omitempty"` // it is switched off

	// Second and Minute count the calls that the rule refused in the times of the resource. They are
	// left out for all but the first four rules that have come to the resource: of the others only the
	// sum is kept.
	Second *uint64 `json:"second,omitempty"`
	Minute *uint64 `json:"minute,omitempty"`

	// Refused counts the calls that the rule refused since it guards the resource, and WouldBlock
	// those that it would have refused while it was a shadow.
	Refused    uint64 `json:"refused"`
	WouldBlock uint64 `json:"wouldBlock"`

	// Demoted counts those that it gave the lowest priority in place of refusing them.
	Demoted uint64 `json:"demoted,omitempty"`

	// Seconds are the calls that it refused in each of the Seconds of the resource, if these are shown.
	Seconds []uint64 `json:"seconds,omitempty"`
}

// Seconds is what happened in each of the last 60 seconds, the oldest first. The last one is the
// present one, which goes on. Times are in seconds.
type Seconds struct {
	Start time.Time `json:"start"` // of the first

	Passed           []uint64  `json:"passed"`
	Refused          []uint64  `json:"refused"`
	Waited           []uint64  `json:"waited"`
	Completed        []uint64  `json:"completed"`
	Failed           []uint64  `json:"failed"`
	MeanResponseTime []float64 `json:"meanResponseTime"`
	MaxResponseTime  []float64 `json:"maxResponseTime"`
	MaxInFlight      []uint64  `json:"maxInFlight"`
}

// resources answers with a page of resources.
func (h handler) resources(w http.ResponseWriter, r *http.Request) {
	filter, err := parseResourceQuery(r.URL.RawQuery, "match", "sort", "limit", "offset", "seconds")
	if err != nil {
		answer(w, http.StatusBadRequest, Failure{err.Error()})
		return
	}
	found, total := h.orderedResources(&filter)
	page := struct {
		Resources
		Encoded []json.RawMessage `json:"resources"` // in place of those of the page
	}{
		Resources: Resources{Time: timeOf(h.engine.Clock(), h.engine.Clock().Now()), Total: total},
		Encoded:   []json.RawMessage{},
	}
	size, shown := 0, min(filter.Offset, len(found))
	_, asValue := w.(ContentWriter)
	for ; shown < len(found) && size <= maxPageSize; shown++ {
		of := h.resourceOf(found[shown].view, filter.Seconds)
		if asValue {
			page.Resources.Resources = append(page.Resources.Resources, of)
			continue
		}
		encoded, _ := json.Marshal(of) // never fails: numbers are finite
		page.Encoded = append(page.Encoded, encoded)
		size += len(encoded)
	}
	if shown < total && filter.Offset < total {
		page.Next = shown
	}
	if asValue {
		answer(w, http.StatusOK, page.Resources)
		return
	}
	answer(w, http.StatusOK, page)
}

// selected is a resource that a query selects, with what it is sorted by.
type selected struct {
	view        core.ResourceView
	first, then uint64 // the greatest come first
}

func (a *selected) compare(b *selected) int {
	return cmp.Or(cmp.Compare(b.first, a.first), cmp.Compare(b.then, a.then), strings.Compare(a.view.Name, b.view.Name))
}

// firstOf are the first resources in an order. It holds at most twice as many as are wanted.
type firstOf struct {
	most  int
	list  []selected
	worst *selected // of the first ones, once there are enough
}

func (f *firstOf) add(s selected) {
	if f.worst != nil && f.worst.compare(&s) < 0 {
		return
	}
	if f.list = append(f.list, s); len(f.list) >= 2*f.most {
		f.prune()
	}
}

func (f *firstOf) prune() {
	slices.SortFunc(f.list, func(a, b selected) int { return a.compare(&b) })
	if len(f.list) >= f.most {
		f.list = f.list[:f.most]
		worst := f.list[f.most-1]
		f.worst = &worst
	}
}

// selectResources returns the resources that a query selects, in its order, up to the end of the page,
// and how many there are on all pages.
func (h handler) selectResources(f *resourceFilter) (list []selected, total int) {
	found := firstOf{most: f.Offset + f.Limit}
	for view := range h.engine.Views() {
		if !f.matches(view.Name) {
			continue
		}
		s := selected{view: view}
		switch f.Sort {
		case SortRefused:
			s.then, s.first = view.CallsOfMinute()
		case SortPassed:
			s.first, s.then = view.CallsOfMinute()
		case SortInFlight:
			sums := view.Sums()
			s.first, s.then = uint64(max(0, sums.InFlight)), uint64(sums.Waiting)
		case SortP99:
			if times, _ := h.recent.of(view); times.Count > 0 {
				s.first = uint64(times.Quantile(0.99))
			}
		case SortName:
		}
		total++
		found.add(s)
	}
	found.prune()
	return found.list, total
}

// resourceOf returns what happened on a resource of late.
func (h handler) resourceOf(view core.ResourceView, withSeconds bool) Resource {
	minute, sums := view.Minute(), view.Sums()
	of := Resource{
		Name: view.Name, InFlight: max(0, sums.InFlight), Waiting: sums.Waiting,
		Second: callsOf(minute[len(minute)-2:][:1]), Minute: callsOf(minute),
		ResponseTimes: h.responseTimesOf(view),
	}
	if withSeconds {
		of.Seconds = secondsOf(minute, h.engine.Clock())
	}
	for _, r := range view.Rules() {
		if r.Refused+r.WouldRefuse+r.Demoted > 0 {
			of.Rules = append(of.Rules, resourceRuleOf(&r, withSeconds))
		}
	}
	slices.SortStableFunc(of.Rules, func(a, b ResourceRule) int {
		return cmp.Or(cmp.Compare(valueOf(b.Minute), valueOf(a.Minute)), cmp.Compare(b.Refused, a.Refused))
	})
	if more := len(of.Rules) - maxResourceRules; more > 0 {
		of.Rules, of.MoreRules = of.Rules[:maxResourceRules], more
	}
	return of
}

func valueOf(n *uint64) uint64 {
	if n == nil {
		return 0
	}
	return *n
}

func resourceRuleOf(v *core.RuleView, withSeconds bool) ResourceRule {
	of := ResourceRule{Kind: v.Kind, Rule: v.Name, Shadow: v.Shadow, Off: v.Off, Refused: v.Refused, WouldBlock: v.WouldRefuse, Demoted: v.Demoted}
	minute := v.Minute()
	if minute == nil {
		return of
	}
	sum, second := uint64(0), minute[len(minute)-2]
	for _, n := range minute {
		sum += n
	}
	of.Second, of.Minute = &second, &sum
	if withSeconds {
		of.Seconds = minute
	}
	return of
}

// callsOf sums up seconds.
func callsOf(seconds []stat.Second) Calls {
	var sum stat.Second
	for i := range seconds {
		s := &seconds[i]
		sum.Passed += s.Passed
		sum.Blocked += s.Blocked
		sum.Waited += s.Waited
		sum.Completed += s.Completed
		sum.Failed += s.Failed
		sum.ResponseTime += s.ResponseTime
		sum.MaxResponseTime = max(sum.MaxResponseTime, s.MaxResponseTime)
		sum.MaxInFlight = max(sum.MaxInFlight, s.MaxInFlight)
	}
	return Calls{
		Passed: sum.Passed, Refused: sum.Blocked, Waited: sum.Waited, Completed: sum.Completed, Failed: sum.Failed,
		MeanResponseTime: sum.MeanResponseTime().Seconds(), MaxResponseTime: sum.MaxResponseTime.Seconds(),
		MaxInFlight: sum.MaxInFlight,
	}
}

func secondsOf(minute []stat.Second, c clock.Clock) *Seconds {
	counts, times := make([]uint64, 6*len(minute)), make([]float64, 2*len(minute))
	column := func(n int) []uint64 { return counts[n*len(minute):][:len(minute):len(minute)] }
	s := &Seconds{
		Start: timeOf(c, minute[0].Start), Passed: column(0), Refused: column(1), Waited: column(2), Completed: column(3),
		Failed: column(4), MaxInFlight: column(5), MeanResponseTime: times[:len(minute)], MaxResponseTime: times[len(minute):],
	}
	for i := range minute {
		of := &minute[i]
		s.Passed[i], s.Refused[i], s.Waited[i] = of.Passed, of.Blocked, of.Waited
		s.Completed[i], s.Failed[i], s.MaxInFlight[i] = of.Completed, of.Failed, of.MaxInFlight
		s.MeanResponseTime[i], s.MaxResponseTime[i] = of.MeanResponseTime().Seconds(), of.MaxResponseTime.Seconds()
	}
	return s
}
