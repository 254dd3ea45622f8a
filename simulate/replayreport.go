package simulate

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/recording"
	"github.com/penstock-go/penstock/rule"
	"github.com/penstock-go/penstock/rules"
)

// maxReplayRows is how many origins, and how many values, a report has at the most: those whose calls
// fare differently first.
const maxReplayRows = 100

// ReplayReport is what rules would have done to recorded calls. The command line writes it as JSON.
type ReplayReport struct {
	From    time.Time `json:"from"` // of the recording
	Seconds float64   `json:"seconds"`

	// WarmUp is how much of it is not counted, as the state of rules is not known there.
	WarmUp float64 `json:"warmUp"`

	Instances []ReplayInstance `json:"instances"`

	// Notes say what the replay cannot know.
	Notes []string `json:"notes"`

	Total     ReplayRow    `json:"total"`
	Resources []ReplayRow  `json:"resources"` // those whose calls fare differently first, as in the following
	Origins   []ReplayRow  `json:"origins"`
	Values    []ReplayRow  `json:"values"` // of attributes: "user=alice", or the hash of the value
	Rules     []ReplayRule `json:"rules"`  // that have refused calls, those whose number changes most first

	// Unjudged are the rules that were tried and could not be judged.
	Unjudged []UnjudgedRule `json:"unjudged"`

	// States are the changes of states of rules in the replay, the first thousand; T is in seconds since
	// From.
	States []StateChange `json:"states"`
}

// ReplayInstance is an instance of which calls were replayed, or not.
type ReplayInstance struct {
	Name    string    `json:"name"`
	From    time.Time `json:"from"`
	Seconds float64   `json:"seconds"`
	Error   string    `json:"error,omitempty"` // why it was not recorded
}

// ReplayRow compares what became of some calls.
type ReplayRow struct {
	Name  string `json:"name"` // "" of all calls
	Calls int    `json:"calls"`

	Recorded ReplayCounts  `json:"recorded"`          // what happened
	Against  *ReplayCounts `json:"against,omitempty"` // under the rules to compare with, if there are any
	Replayed ReplayCounts  `json:"replayed"`          // under the rules that are tried

	// How many of the calls are refused, or give up, that passed before, and the other way round: under the
	// rules to compare with, if there are any, else when they were recorded.
	NewlyRefused int `json:"newlyRefused"`
	NewlyPassed  int `json:"newlyPassed"`
}

// ReplayCounts counts calls by what became of them.
type ReplayCounts struct {
	Passed  int `json:"passed"`
	Refused int `json:"refused"`
	GaveUp  int `json:"gaveUp"` // while they waited
	Waited  int `json:"waited"` // of all

	MeanWait float64 `json:"meanWait"` // seconds, of those that waited
	MaxWait  float64 `json:"maxWait"`

	// MaxInFlight is the greatest number under way at a time; nil where it is not counted.
	MaxInFlight *int `json:"maxInFlight,omitempty"`
}

// ReplayRule compares how many calls a rule refuses.
type ReplayRule struct {
	Kind     string `json:"kind"`
	Rule     string `json:"rule"`
	Recorded int    `json:"recorded"`
	Against  *int   `json:"against,omitempty"`
	Replayed int    `json:"replayed"`
}

// isSame says whether a call is one that passes both times, or neither.
func isSame(a, b recording.Outcome) bool { return (a == recording.Passed) == (b == recording.Passed) }

func (c *ReplayCounts) add(what recording.Outcome, wait time.Duration) {
	switch what {
	case recording.Passed:
		c.Passed++
	case recording.Refused:
		c.Refused++
	default:
		c.GaveUp++
	}
	if wait > 0 {
		c.Waited++
		c.MeanWait += (seconds(wait) - c.MeanWait) / float64(c.Waited)
		c.MaxWait = max(c.MaxWait, seconds(wait))
	}
}

// changes says how many of the calls fare differently.
func (r *ReplayRow) changes() int { return r.NewlyRefused + r.NewlyPassed }

// reporter makes a report.
type reporter struct {
	calls         *replayCalls
	tried, before *replay // before is nil without rules to compare with

	total     ReplayRow
	resources []ReplayRow
	origins   []ReplayRow
	values    map[recording.Attribute]*ReplayRow
	rules     map[rule.Key]*ReplayRule
}

func newReplayReport(calls *replayCalls, tried, before *replay, set rules.Set) ReplayReport {
	r := reporter{
		calls: calls, tried: tried, before: before,
		resources: make([]ReplayRow, len(calls.Resources)), origins: make([]ReplayRow, max(1, len(calls.Origins))),
		values: make(map[recording.Attribute]*ReplayRow), rules: make(map[rule.Key]*ReplayRule),
	}
	for i := range calls.Calls {
		if !calls.warms(&calls.Calls[i]) {
			r.count(i)
		}
	}
	r.countInFlight()
	from, until := calls.Span()
	report := ReplayReport{
		From: from.Time(), Seconds: seconds(until.Sub(from)), WarmUp: seconds(max(0, calls.warm.Sub(from))), Total: r.total, Notes: r.notes(set), States: tried.states,
		Resources: rowsOf(r.resources, calls.Resources, len(r.resources)),
		Origins:   rowsOf(r.origins[1:], calls.Origins[min(1, len(calls.Origins)):], maxReplayRows),
		Values:    r.valueRows(), Rules: r.ruleRows(), Unjudged: tried.unjudged.list(),
	}
	if report.States == nil {
		report.States = []StateChange{} // in JSON an empty list
	}
	for _, of := range calls.Instances {
		report.Instances = append(report.Instances, ReplayInstance{of.Name, of.From.Time(), seconds(of.Until.Sub(of.From)), of.Error})
	}
	return report
}

// count counts a call in each of its rows.
func (r *reporter) count(i int) {
	call := &r.calls.Calls[i]
	r.countIn(&r.total, i)
	r.countIn(&r.resources[call.Resource], i)
	if call.Origin != 0 {
		r.countIn(&r.origins[call.Origin], i)
	}
	for _, a := range r.calls.AttributesOf(call) {
		row := r.values[a]
		if row == nil {
			row = new(ReplayRow)
			r.values[a] = row
		}
		r.countIn(row, i)
	}
	if call.Outcome == recording.Refused {
		of := r.calls.Rules[call.Rule]
		r.ruleOf(rule.Key{Kind: rule.Kind(of.Kind), Name: of.Name}).Recorded++
	}
	if o := r.tried.outcomes[i]; o.rule >= 0 {
		r.ruleOf(r.tried.rules[o.rule]).Replayed++
	}
	if r.before != nil {
		if o := r.before.outcomes[i]; o.rule >= 0 {
			*r.ruleOf(r.before.rules[o.rule]).Against++
		}
	}
}

func (r *reporter) countIn(row *ReplayRow, i int) {
	call, tried := &r.calls.Calls[i], &r.tried.outcomes[i]
	row.Calls++
	row.Recorded.add(call.Outcome, call.Wait)
	row.Replayed.add(tried.what, tried.wait)
	was := call.Outcome
	if r.before != nil {
		if row.Against == nil {
			row.Against = new(ReplayCounts)
		}
		before := &r.before.outcomes[i]
		row.Against.add(before.what, before.wait)
		was = before.what
	}
	switch {
	case isSame(was, tried.what):
	case tried.what == recording.Passed:
		row.NewlyPassed++
	default:
		row.NewlyRefused++
	}
}

func (r *reporter) ruleOf(key rule.Key) *ReplayRule {
	row := r.rules[key]
	if row == nil {
		row = &ReplayRule{Kind: string(key.Kind), Rule: key.Name}
		if r.before != nil {
			row.Against = new(int)
		}
		r.rules[key] = row
	}
	return row
}

// countInFlight adds how many calls of each resource, and of all, were under way at a time.
func (r *reporter) countInFlight() {
	recorded := recordedInFlight(r.calls.Recording)
	rows := make([]*ReplayRow, 0, len(r.resources)+1)
	for i := range r.resources {
		rows = append(rows, &r.resources[i])
	}
	for i, row := range append(rows, &r.total) {
		row.Recorded.MaxInFlight, row.Replayed.MaxInFlight = &recorded.most[i], &r.tried.inFlight.most[i]
		if row.Against != nil {
			row.Against.MaxInFlight = &r.before.inFlight.most[i]
		}
	}
}

// recordedInFlight counts the calls that were under way at a time when they were recorded.
func recordedInFlight(of *recording.Recording) inFlightCounts {
	type ended struct {
		at       clock.Instant
		resource uint16
	}
	ends := heap[ended]{before: func(a, b ended) bool { return a.at < b.at }}
	counts := newInFlightCounts(len(of.Resources))
	for i := range of.Calls {
		c := &of.Calls[i]
		if c.Outcome != recording.Passed {
			continue
		}
		for ends.len() > 0 && ends.top().at <= c.At {
			counts.end(ends.pop().resource)
		}
		counts.begin(c.Resource)
		if c.Duration >= 0 {
			ends.push(ended{c.At.Add(min(c.Duration, MaxDuration)), c.Resource})
		}
	}
	return counts
}

// rowsOf returns the rows with calls under their names, those with most changes first.
func rowsOf(rows []ReplayRow, names []string, most int) []ReplayRow {
	found := []ReplayRow{}
	for i := range rows {
		if rows[i].Calls > 0 {
			rows[i].Name = names[i]
			found = append(found, rows[i])
		}
	}
	slices.SortFunc(found, func(a, b ReplayRow) int {
		return cmp.Or(
			cmp.Compare(b.changes(), a.changes()), cmp.Compare(b.Replayed.Refused, a.Replayed.Refused),
			cmp.Compare(b.Calls, a.Calls), cmp.Compare(a.Name, b.Name),
		)
	})
	return found[:min(len(found), most)]
}

func (r *reporter) valueRows() []ReplayRow {
	rows, names := make([]ReplayRow, 0, len(r.values)), make([]string, 0, len(r.values))
	for a, row := range r.values {
		rows = append(rows, *row)
		names = append(names, fmt.Sprintf("%s=%v", r.calls.Keys[a.Key], r.calls.valueOf(a)))
	}
	return rowsOf(rows, names, maxReplayRows)
}

func (r *reporter) ruleRows() []ReplayRule {
	rows := []ReplayRule{}
	for _, row := range r.rules {
		rows = append(rows, *row)
	}
	change := func(of ReplayRule) int {
		was := of.Recorded
		if of.Against != nil {
			was = *of.Against
		}
		return max(was-of.Replayed, of.Replayed-was)
	}
	slices.SortFunc(rows, func(a, b ReplayRule) int {
		return cmp.Or(
			cmp.Compare(change(b), change(a)), cmp.Compare(b.Replayed, a.Replayed),
			cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Rule, b.Rule),
		)
	})
	return rows
}

// notes say what the replay cannot know.
func (r *reporter) notes(set rules.Set) []string {
	notes := []string{"what rules knew before the recording is not known: windows longer than the time to warm up (--warm-up)," +
		" buckets that were not full since, and rules that were in another state may decide otherwise than they did"}
	add := func(format string, args ...any) { notes = append(notes, fmt.Sprintf(format, args...)) }
	if n := r.tried.drawn; n > 0 {
		add("%d calls pass that were refused or gave up: how long they last was drawn from the calls of their resource", n)
	}
	moves, fleet := false, false
	for of := range set.All() {
		moves = moves || of.Type().LimitMoves()
		fleet = fleet || of.Fleet()
	}
	if moves {
		add("rules that find their limits themselves depend on the machine: response times are as recorded, and signals of the system are not read")
	}
	if fleet {
		add("limits of the whole fleet hold in each engine of the replay")
	}
	notes = append(notes, r.tried.unjudged.notes(r.before != nil)...)
	if r.others() {
		add("names beyond the tables of the recorder are one: %s", recording.Other)
	}
	return notes
}

// others says whether calls have a name that stands for several.
func (r *reporter) others() bool {
	at := slices.Index(r.calls.Resources, recording.Other)
	from := slices.Index(r.calls.Origins, recording.Other)
	return at >= 0 && r.resources[at].Calls > 0 || from > 0 && r.origins[from].Calls > 0
}
