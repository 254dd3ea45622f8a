package penstockprom

import (
	"cmp"
	"math"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"

	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/list"
	"github.com/penstock-go/penstock/rule"
)

// series are those of one scrape.
type series struct {
	numbers       []number
	distributions []distribution
}

// exposition collects the series of a scrape. Label values are valid UTF-8 and no two series
// have the same labels, so a registry refuses none and [Collector.Gather] need not check them.
type exposition struct {
	families *families
	layout   *histogramLayout
	series
	shared map[rule.Key]bool // rules that several resources share and that were exposed
}

func (e *exposition) counter(of *family, value float64, labels []*dto.LabelPair) {
	e.numbers = append(e.numbers, number{of, labels, value, true})
}

func (e *exposition) gauge(of *family, value float64, labels []*dto.LabelPair) {
	e.numbers = append(e.numbers, number{of, labels, value, false})
}

// labels returns the labels of a series.
func labels(of *family, values ...string) []*dto.LabelPair {
	return prometheus.MakeLabelPairs(of.desc, values)
}

// label converts a name to a label value: it replaces invalid UTF-8.
func label(name string) string { return strings.ToValidUTF8(name, "\uFFFD") }

// resources exposes the series of resources, in the order in which the registry sorts them, which
// is quick then.
func (e *exposition) resources(totals []*core.ResourceTotals) {
	for _, t := range totals {
		e.resource(t)
	}
}

func (e *exposition) resource(t *core.ResourceTotals) {
	f := e.families
	of, made := t.Data.([]*dto.LabelPair)
	if !made {
		of = labels(f.passed, t.Name)
		t.Data = of
	}
	e.counter(f.passed, float64(t.Passed), of)
	e.counter(f.blocked, float64(t.Blocked), of)
	e.counter(f.passedTokens, float64(t.PassedTokens), of)
	e.counter(f.blockedTokens, float64(t.BlockedTokens), of)
	e.counter(f.failed, float64(t.Failed), of)
	e.gauge(f.inFlight, float64(t.InFlight), of)
	e.gauge(f.waiting, float64(t.Waiting), of)
	for key, r := range t.Refusals {
		e.refusals(t.Name, key, r)
	}
	took, waits := distribution{of: f.responseTime, labels: of}, distribution{of: f.wait, labels: of}
	took.count, took.sum = t.Completed, seconds(t.ResponseTime)
	took.histogram = e.layout.histogram(t.ResponseTimes, took.sum)
	waits.count, waits.sum = t.Waited, seconds(t.WaitTime)
	e.distributions = append(e.distributions, took, waits)
}

// refusals exposes what a rule has refused on a resource.
func (e *exposition) refusals(resource string, key rule.Key, r *core.RuleRefusals) {
	f := e.families
	of, made := r.Data.([]*dto.LabelPair)
	if !made {
		of = labels(f.ruleBlocked, resource, label(string(key.Kind)), key.Name)
		r.Data = of
	}
	e.counter(f.ruleBlocked, float64(r.Blocked), of)
	if r.Shadow || r.WouldBlock > 0 { // the series of a shadow rule starts at 0
		e.counter(f.shadowBlocked, float64(r.WouldBlock), of)
	}
	if r.Demotes || r.Demoted > 0 {
		e.counter(f.ruleDemoted, float64(r.Demoted), of)
	}
}

// together exposes how many resources the engine knows, how many of them have no series of their
// own, and the calls of names beyond its bound.
func (e *exposition) together(known, withoutSeries int, overflow uint64) {
	f := e.families
	none := labels(f.resources)
	e.gauge(f.resources, float64(known), none)
	e.gauge(f.withoutSeries, float64(withoutSeries), none)
	e.counter(f.overflow, float64(overflow), none)
}

// load exposes how loaded the service is.
func (e *exposition) load(l core.Load) {
	e.gauge(e.families.load, l.Utilization, labels(e.families.load))
	e.gauge(e.families.loadLevel, float64(l.Level), labels(e.families.loadLevel))
}

// rulesOn exposes the state of the rules on resources that have their own series.
func (e *exposition) rulesOn(totals []*core.ResourceTotals, resources []core.ResourceSnapshot) {
	e.shared = make(map[rule.Key]bool)
	for _, t := range totals {
		if t.Index >= 0 {
			on := resources[t.Index].Rules
			for i := range on {
				e.rule(t.Name, &on[i])
			}
		}
	}
}

// rule exposes the state of a rule on a resource. A limiter that several resources share
// is exposed once, under the pattern of the rule.
func (e *exposition) rule(resource string, of *core.RuleSnapshot) {
	f := e.families.kinds[of.Kind]
	name := label(of.Name)
	both := labels(e.families.ofRule, resource, name)
	if of.Quota != nil && !of.Quota.Prepaid && f.effectiveLimit != nil {
		e.gauge(f.effectiveLimit, of.Quota.Effective/of.Quota.Window.Seconds(), both)
	}
	if target := of.Rule.Target(); target.Shared {
		key := rule.Key{Kind: of.Kind, Name: of.Name}
		if e.shared[key] {
			return
		}
		e.shared[key] = true
		resource = label(target.Match)
		both = labels(e.families.ofRule, resource, name)
	}
	if of.Quota != nil && f.used != nil {
		if ratio, known := of.Quota.UsedRatio(); known {
			e.gauge(f.used, ratio, both)
		}
		if left, known := of.Quota.Left(); known {
			e.gauge(f.remaining, left, both)
		}
	}
	if of.Fleet != nil && f.fleetGranted != nil {
		e.gauge(f.fleetGranted, of.Fleet.Granted, both)
		e.gauge(f.fleetDemand, of.Fleet.Demand, both)
		e.gauge(f.fleetOutage, boolValue(of.Fleet.Outage), both)
	}
	for i, gauge := range f.gauges {
		if value := of.Gauges[i]; !math.IsNaN(value) {
			of := both
			if gauge.Label != "" {
				of = labels(gauge.family, resource, name, gauge.LabelValue)
			}
			e.numbers = append(e.numbers, number{gauge.family, of, value, gauge.Counter})
		}
	}
	for _, state := range of.Rule.Type().States() {
		if of.State == "" {
			break // rules of the kind may have none
		}
		e.gauge(f.state, boolValue(state == of.State), labels(f.state, resource, name, state))
	}
	for _, t := range of.Transitions {
		e.counter(f.transitions, float64(t.Count), labels(f.transitions, resource, name, t.From, t.To))
	}
}

func (e *exposition) rules(s *core.Snapshot) {
	f := e.families
	none := labels(f.rules)
	e.gauge(f.rules, float64(s.Status.Rules), none)
	e.gauge(f.unmatched, float64(len(s.Status.Unmatched)+s.Status.MoreUnmatched), none)
	e.gauge(f.revision, float64(s.Status.Revision), none)
	e.gauge(f.appliedAt, float64(s.Status.AppliedAt)/float64(time.Second), none)
	e.counter(f.rejections, float64(s.Rejected), none)
	for _, forced := range s.Status.Forced {
		if forced.Rule == "" { // a whole kind
			e.gauge(f.forced, 1, labels(f.forced, string(forced.Kind), forced.State))
		}
	}
	for _, of := range s.Status.Switches {
		if of.State == core.SwitchOff {
			e.gauge(f.switchedOff, 1, labels(f.switchedOff, string(of.Kind), label(of.Rule), label(of.Resource)))
		}
	}
}

// fleet exposes how the engine shares limits.
func (e *exposition) fleet(of *core.FleetStatus) {
	if of == nil {
		return
	}
	f := e.families
	none := labels(f.fleetRules)
	e.gauge(f.fleetRules, float64(of.Rules), none)
	e.gauge(f.fleetConnected, boolValue(of.Connected), none)
	e.gauge(f.fleetInstances, float64(of.Instances), none)
	e.gauge(f.fleetRequestTime, of.Latency.Seconds(), none)
	e.counter(f.fleetOutages, float64(max(0, of.Outages)), none)
	e.counter(f.fleetRequests, float64(max(0, of.Requests)), none)
}

// signals exposes the signals that rules in force read.
func (e *exposition) signals(signals []core.SignalStatus) {
	exposed := make(map[string]bool)
	for i := range signals {
		s := &signals[i]
		name := label(string(s.Signal))
		if exposed[name] {
			continue // the name of another signal has the same label
		}
		exposed[name] = true
		of := labels(e.families.signal, name)
		e.gauge(e.families.signalKnown, boolValue(s.Err == nil), of)
		if s.Err == nil {
			e.gauge(e.families.signal, s.Value, of)
		}
	}
}

// listFromCode is the source of lists that the program itself has made.
const listFromCode = "code"

// lists exposes the lists in force, and of which lists the present version is not. Entries
// of lists are never exposed.
func (e *exposition) lists(lists []list.Status) {
	type series struct{ name, source string }
	exposed, rejected, heldBack := make(map[string]bool), make(map[series]bool), make(map[series]bool)
	for i := range lists {
		s := &lists[i]
		of := series{label(s.Name), label(cmp.Or(s.Source, listFromCode))}
		rejected[of] = rejected[of] || s.Err != nil // a source may have several documents of a name
		heldBack[of] = heldBack[of] || s.HeldBack != nil
		if !s.InForce || exposed[of.name] {
			continue
		}
		exposed[of.name] = true
		e.gauge(e.families.listEntries, float64(s.Entries), labels(e.families.listEntries, of.name, of.source))
		e.gauge(e.families.listOnCopy, boolValue(s.CopiedAt != 0), labels(e.families.listOnCopy, of.name, of.source))
		if s.Since != 0 { // unknown of lists from code
			e.gauge(e.families.listLoadedAt, float64(s.Since)/float64(time.Second), labels(e.families.listLoadedAt, of.name, of.source))
		}
	}
	for of, is := range rejected {
		e.gauge(e.families.listRejected, boolValue(is), labels(e.families.listRejected, of.name, of.source))
		e.gauge(e.families.listHeldBack, boolValue(heldBack[of]), labels(e.families.listHeldBack, of.name, of.source))
	}
}

// missingLists exposes the lists that are not there though rules in force name them.
func (e *exposition) missingLists(missing []core.MissingList) {
	exposed := make(map[string]bool)
	for _, l := range missing {
		if name := label(l.Name); !exposed[name] {
			exposed[name] = true
			e.gauge(e.families.listMissing, 1, labels(e.families.listMissing, name))
		}
	}
}

func (e *exposition) sources(snapshot *core.Snapshot) {
	sources := snapshot.Status.Sources
	exposed := make(map[string]bool, len(sources))
	for i := range sources {
		s := &sources[i]
		name := label(s.Name)
		if exposed[name] {
			continue // the name of another source has the same label
		}
		exposed[name] = true
		of := labels(e.families.connected, name)
		rejected := 0
		for j := range s.Documents {
			if s.Documents[j].Rejected != nil {
				rejected++
			}
		}
		e.gauge(e.families.connected, boolValue(s.Connected), of)
		e.gauge(e.families.staleness, s.Staleness(snapshot.At).Seconds(), of)
		e.gauge(e.families.onCopy, boolValue(s.CopiedAt != 0), of)
		e.gauge(e.families.heldBack, boolValue(s.HeldBack != nil), of)
		e.gauge(e.families.sourceRevision, float64(s.Revision), of)
		e.gauge(e.families.sourceRejectedDocuments, float64(rejected), of)
	}
}

func boolValue(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

// seconds converts a sum of times, which may be more than a [time.Duration] holds.
func seconds(sum time.Duration) float64 { return float64(uint64(sum)) / float64(time.Second) }
