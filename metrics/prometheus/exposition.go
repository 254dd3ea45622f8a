package penstockprom

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/rule"
)

// exposition gathers what a scrape exposes. Nothing that an engine can hold
// makes one of its metrics invalid: labels have been made UTF-8, and a faulty
// set of constant labels is not registered.
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

func (e *exposition) resource(name string, a *account, buckets []time.Duration) {
	f := e.families
	e.counter(f.passed, a.counts[passed], name)
	e.counter(f.blocked, a.counts[blocked], name)
	e.counter(f.failed, a.counts[failed], name)
	e.gauge(f.inFlight, float64(a.inFlight), name)
	e.gauge(f.waiting, float64(a.waiting), name)
	for by, count := range a.refusals {
		family := f.ruleBlocked
		if by.shadow {
			family = f.shadowBlocked
		}
		e.counter(family, count, name, by.kind, by.rule)
	}
	e.metrics = append(e.metrics,
		prometheus.MustNewConstHistogram(f.responseTime,
			a.counts[completed], seconds(a.counts[responseTime]), a.histogram(buckets), name),
		prometheus.MustNewConstSummary(f.wait,
			a.counts[waited], seconds(a.counts[waitTime]), nil, name))
}

// histogram returns the cumulative counts by upper bound in seconds.
func (a *account) histogram(buckets []time.Duration) map[float64]uint64 {
	cumulative := make(map[float64]uint64, len(buckets))
	var upTo uint64
	for i, bound := range buckets {
		// Counts in a bucket that is finer than what the engine keeps are
		// estimates. In sums over time they may be out of order by a call.
		upTo = max(upTo, a.counts[firstBucket+i])
		cumulative[bound.Seconds()] = upTo
	}
	return cumulative
}

// rulesOn exposes the rules on the resources that have accounts of their own.
func (e *exposition) rulesOn(resources []core.ResourceSnapshot, shown map[string]bool) {
	e.shared = make(map[rule.Key]bool)
	exposed := make(map[string]bool, len(resources))
	for i := range resources {
		r := &resources[i]
		name := label(r.Name)
		if (shown[r.Name] || r.Name == core.Overflow) && !exposed[name] { // else mended into the same
			exposed[name] = true
			for j := range r.Rules {
				e.rule(name, &r.Rules[j])
			}
		}
	}
}

// rule exposes the state of a rule on a resource. A limiter that several resources share
// is exposed once, under the rule's pattern.
func (e *exposition) rule(resource string, of *core.RuleSnapshot) {
	f := e.families.kinds[of.Kind]
	name := label(of.Name)
	if of.Quota != nil && f.ceiling != nil {
		e.gauge(f.ceiling, of.Quota.Effective/of.Quota.Window.Seconds(), resource, name)
	}
	if target := of.Rule.Target(); target.Shared {
		key := rule.Key{Kind: of.Kind, Name: of.Name}
		if e.shared[key] {
			return
		}
		e.shared[key] = true
		resource = label(target.Match)
	}
	for i, gauge := range f.gauges {
		e.gauge(gauge, of.Gauges[i], resource, name)
	}
	for _, state := range of.Rule.Type().States() {
		e.gauge(f.state, truth(state == of.State), resource, name, state)
	}
	for _, t := range of.Transitions {
		e.counter(f.transitions, t.Count, resource, name, t.From, t.To)
	}
}

func (e *exposition) rules(s *core.Snapshot) {
	f := e.families
	e.gauge(f.rules, float64(s.Status.Rules))
	e.gauge(f.unmatched, float64(s.Status.Unmatched.Count))
	e.gauge(f.revision, float64(s.Status.Revision))
	e.gauge(f.appliedAt, float64(s.Status.AppliedAt)/float64(time.Second))
	e.counter(f.rejections, s.Rejected)
}

func (e *exposition) sources(snapshot *core.Snapshot) {
	sources := snapshot.Status.Sources
	exposed := make(map[string]bool, len(sources))
	for i := range sources {
		s := &sources[i]
		name := label(s.Name)
		if exposed[name] {
			continue // another one's name was mended into the same
		}
		exposed[name] = true
		rejected := 0
		for j := range s.Documents {
			if s.Documents[j].Rejected != nil {
				rejected++
			}
		}
		e.gauge(e.families.connected, truth(s.Connected), name)
		e.gauge(e.families.staleness, staleness(s, snapshot.At).Seconds(), name)
		e.gauge(e.families.onCopy, truth(s.CopiedAt != 0), name)
		e.gauge(e.families.heldBack, truth(s.HeldBack != nil), name)
		e.gauge(e.families.sourceRevision, float64(s.Revision), name)
		e.gauge(e.families.sourceRejectedDocuments, float64(rejected), name)
	}
}

// staleness returns for how long it has not been known what a source holds; of
// one that was never read, for how long it has been wanted in vain.
func staleness(s *core.SourceStatus, now clock.Instant) time.Duration {
	since := s.KnownUntil(now)
	if since == 0 {
		since = s.Since
	}
	return max(0, now.Sub(since)) // a copy may be from a machine whose clock is fast
}

func truth(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

func seconds(nanoseconds uint64) float64 { return float64(nanoseconds) / float64(time.Second) }
