package penstockprom

import (
	"cmp"
	"math"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/list"
	"github.com/penstock-go/penstock/rule"
)

// exposition collects the metrics of a scrape. Creating them cannot fail: label
// values are valid UTF-8, and a collector with invalid constant labels cannot be
// registered.
type exposition struct {
	families *families
	metrics  []prometheus.Metric
	shared   map[rule.Key]bool // rules that several resources share and that were exposed
}

func (e *exposition) counter(family *prometheus.Desc, value uint64, labels ...string) {
	e.metrics = append(e.metrics,
		prometheus.MustNewConstMetric(family, prometheus.CounterValue, float64(value), labels...))
}

func (e *exposition) gauge(family *prometheus.Desc, value float64, labels ...string) {
	e.metrics = append(e.metrics,
		prometheus.MustNewConstMetric(family, prometheus.GaugeValue, value, labels...))
}

func (e *exposition) resource(name string, series *resourceSeries, buckets []time.Duration) {
	f := e.families
	e.counter(f.passed, series.counts[passed], name)
	e.counter(f.blocked, series.counts[blocked], name)
	e.counter(f.failed, series.counts[failed], name)
	e.gauge(f.inFlight, float64(series.inFlight), name)
	e.gauge(f.waiting, float64(series.waiting), name)
	for by, count := range series.refusals {
		family := f.ruleBlocked
		if by.shadow {
			family = f.shadowBlocked
		}
		e.counter(family, count, name, by.kind, by.rule)
	}
	e.metrics = append(e.metrics,
		prometheus.MustNewConstHistogram(f.responseTime,
			series.counts[completed], seconds(series.counts[responseTime]), series.histogram(buckets), name),
		prometheus.MustNewConstSummary(f.wait,
			series.counts[waited], seconds(series.counts[waitTime]), nil, name))
}

// histogram returns the cumulative counts by upper bound in seconds.
func (s *resourceSeries) histogram(buckets []time.Duration) map[float64]uint64 {
	cumulative := make(map[float64]uint64, len(buckets))
	var upTo uint64
	for i, bound := range buckets {
		// Counts of a bucket that is finer than those of the engine are
		// estimates. Sums of them may be out of order by one call.
		upTo = max(upTo, s.counts[firstBucket+i])
		cumulative[bound.Seconds()] = upTo
	}
	return cumulative
}

// rulesOn exposes the state of the rules on resources that have their own series.
func (e *exposition) rulesOn(resources []core.ResourceSnapshot, separate map[string]bool) {
	e.shared = make(map[rule.Key]bool)
	exposed := make(map[string]bool, len(resources))
	for i := range resources {
		r := &resources[i]
		name := label(r.Name)
		if (separate[r.Name] || r.Name == core.Overflow) && !exposed[name] { // otherwise another name has the same label
			exposed[name] = true
			for j := range r.Rules {
				e.rule(name, &r.Rules[j])
			}
		}
	}
}

// rule exposes the state of a rule on a resource. A limiter that several resources share
// is exposed once, under the pattern of the rule.
func (e *exposition) rule(resource string, of *core.RuleSnapshot) {
	f := e.families.kinds[of.Kind]
	name := label(of.Name)
	if of.Quota != nil && f.effectiveLimit != nil {
		e.gauge(f.effectiveLimit, of.Quota.Effective/of.Quota.Window.Seconds(), resource, name)
	}
	if target := of.Rule.Target(); target.Shared {
		key := rule.Key{Kind: of.Kind, Name: of.Name}
		if e.shared[key] {
			return
		}
		e.shared[key] = true
		resource = label(target.Match)
	}
	if of.Fleet != nil && f.fleetGranted != nil {
		e.gauge(f.fleetGranted, of.Fleet.Granted, resource, name)
		e.gauge(f.fleetDemand, of.Fleet.Demand, resource, name)
		e.gauge(f.fleetOutage, boolValue(of.Fleet.Outage), resource, name)
	}
	for i, gauge := range f.gauges {
		if value := of.Gauges[i]; !math.IsNaN(value) {
			e.ofKind(gauge, value, resource, name)
		}
	}
	for _, state := range of.Rule.Type().States() {
		e.gauge(f.state, boolValue(state == of.State), resource, name, state)
	}
	for _, t := range of.Transitions {
		e.counter(f.transitions, t.Count, resource, name, t.From, t.To)
	}
}

// ofKind exposes a gauge of a rule.
func (e *exposition) ofKind(gauge gaugeFamily, value float64, resource, name string) {
	labels, valueType := []string{resource, name}, prometheus.GaugeValue
	if gauge.Label != "" {
		labels = append(labels, gauge.LabelValue)
	}
	if gauge.Counter {
		valueType = prometheus.CounterValue
	}
	e.metrics = append(e.metrics, prometheus.MustNewConstMetric(gauge.desc, valueType, value, labels...))
}

func (e *exposition) rules(s *core.Snapshot) {
	f := e.families
	e.gauge(f.rules, float64(s.Status.Rules))
	e.gauge(f.unmatched, float64(s.Status.Unmatched.Count))
	e.gauge(f.revision, float64(s.Status.Revision))
	e.gauge(f.appliedAt, float64(s.Status.AppliedAt)/float64(time.Second))
	e.counter(f.rejections, s.Rejected)
	for _, forced := range s.Status.ForcedKinds {
		e.gauge(f.forced, 1, string(forced.Kind), forced.State)
	}
}

// fleet exposes how the engine shares limits.
func (e *exposition) fleet(of *core.FleetStatus) {
	if of == nil {
		return
	}
	f := e.families
	e.gauge(f.fleetRules, float64(of.Rules))
	e.gauge(f.fleetConnected, boolValue(of.Connected))
	e.gauge(f.fleetInstances, float64(of.Instances))
	e.gauge(f.fleetRequestTime, of.Latency.Seconds())
	e.counter(f.fleetOutages, uint64(max(0, of.Outages)))
	e.counter(f.fleetRequests, uint64(max(0, of.Requests)))
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
		e.gauge(e.families.signalKnown, boolValue(s.Err == nil), name)
		if s.Err == nil {
			e.gauge(e.families.signal, s.Value, name)
		}
	}
}

// listFromCode is the source of lists that the program itself has made.
const listFromCode = "code"

// lists exposes the lists in force, and of which lists the present version is not. Entries
// of lists are never exposed.
func (e *exposition) lists(lists []list.Status) {
	type series struct{ name, source string }
	exposed, rejected := make(map[string]bool), make(map[series]bool)
	for i := range lists {
		s := &lists[i]
		of := series{label(s.Name), label(cmp.Or(s.Source, listFromCode))}
		rejected[of] = rejected[of] || s.Err != nil // a source may have several documents of a name
		if !s.InForce || exposed[of.name] {
			continue
		}
		exposed[of.name] = true
		e.gauge(e.families.listEntries, float64(s.Entries), of.name, of.source)
		if s.Since != 0 { // unknown of lists from code
			e.gauge(e.families.listLoadedAt, float64(s.Since)/float64(time.Second), of.name, of.source)
		}
	}
	for of, is := range rejected {
		e.gauge(e.families.listRejected, boolValue(is), of.name, of.source)
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
		rejected := 0
		for j := range s.Documents {
			if s.Documents[j].Rejected != nil {
				rejected++
			}
		}
		e.gauge(e.families.connected, boolValue(s.Connected), name)
		e.gauge(e.families.staleness, staleness(s, snapshot.At).Seconds(), name)
		e.gauge(e.families.onCopy, boolValue(s.CopiedAt != 0), name)
		e.gauge(e.families.heldBack, boolValue(s.HeldBack != nil), name)
		e.gauge(e.families.sourceRevision, float64(s.Revision), name)
		e.gauge(e.families.sourceRejectedDocuments, float64(rejected), name)
	}
}

// staleness returns the time since the state of a source was last known, or since
// it was followed if it was never read.
func staleness(s *core.SourceStatus, now clock.Instant) time.Duration {
	since := s.KnownUntil(now)
	if since == 0 {
		since = s.Since
	}
	return max(0, now.Sub(since)) // a copy may come from a machine whose clock is ahead
}

func boolValue(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

func seconds(nanoseconds uint64) float64 { return float64(nanoseconds) / float64(time.Second) }
