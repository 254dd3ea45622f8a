package penstockprom

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/penstock-go/penstock/adapters/outgoing"
)

// OutgoingCollector exposes what a throttle and the retry budgets of clients do.
// [NewOutgoingCollector] makes it. It is safe for concurrent use.
type OutgoingCollector struct {
	throttle *outgoing.Throttle
	budgets  *outgoing.RetryBudgets

	requests, refusal, paused, untracked *prometheus.Desc
	retries, retryTokens                 *prometheus.Desc
}

// NewOutgoingCollector returns a collector; either of throttle and budgets may be nil. It
// adds nothing to a call. The label target has what the calls are known by, as many as there
// are [outgoing.ThrottleOptions.MaxTargets].
func NewOutgoingCollector(
	throttle *outgoing.Throttle, budgets *outgoing.RetryBudgets, constLabels prometheus.Labels,
) *OutgoingCollector {
	family := func(name, help string, labels ...string) *prometheus.Desc {
		return prometheus.NewDesc("penstock_outgoing_"+name, help, labels, constLabels)
	}
	return &OutgoingCollector{
		throttle: throttle, budgets: budgets,
		requests:    family("requests_total", "Calls of a target, by what became of them.", "target", "outcome"),
		refusal:     family("refusal_ratio", "The share of calls that are refused because the target rejects too many.", "target"),
		paused:      family("paused_seconds", "How long it takes until the target wants all calls.", "target"),
		untracked:   family("untracked_total", "Calls that were not throttled because there are too many targets."),
		retries:     family("retries_total", "Retries, by whether the budget allowed them.", "target", "outcome"),
		retryTokens: family("retry_tokens", "How many retries the budget allows now.", "target"),
	}
}

// Describe implements [prometheus.Collector].
func (c *OutgoingCollector) Describe(descs chan<- *prometheus.Desc) {
	for _, desc := range []*prometheus.Desc{c.requests, c.refusal, c.paused, c.untracked, c.retries, c.retryTokens} {
		descs <- desc
	}
}

// Collect implements [prometheus.Collector].
func (c *OutgoingCollector) Collect(metrics chan<- prometheus.Metric) {
	emit := func(desc *prometheus.Desc, kind prometheus.ValueType, value float64, labels ...string) {
		metrics <- prometheus.MustNewConstMetric(desc, kind, value, labels...)
	}
	seen := make(map[string]bool) // of two names that are not UTF-8 the first has series
	isNew := func(series string) bool {
		before := len(seen)
		seen[series] = true
		return len(seen) > before
	}
	if c.throttle != nil {
		c.collectThrottle(isNew, emit)
	}
	if c.budgets != nil {
		c.collectRetries(isNew, emit)
	}
}

type emitter func(desc *prometheus.Desc, kind prometheus.ValueType, value float64, labels ...string)

func (c *OutgoingCollector) collectThrottle(isNew func(string) bool, emit emitter) {
	stats := c.throttle.Stats()
	emit(c.untracked, prometheus.CounterValue, float64(stats.Untracked))
	for _, of := range stats.Targets {
		if target := label(of.Target); isNew("throttle " + target) {
			emit(c.requests, prometheus.CounterValue, float64(of.Accepted), target, "accepted")
			emit(c.requests, prometheus.CounterValue, float64(of.Rejected), target, "rejected")
			emit(c.requests, prometheus.CounterValue, float64(of.Throttled), target, "throttled")
			emit(c.requests, prometheus.CounterValue, float64(of.Paused), target, "paused")
			emit(c.refusal, prometheus.GaugeValue, of.Refusal, target)
			emit(c.paused, prometheus.GaugeValue, of.PausedFor.Seconds(), target)
		}
	}
}

func (c *OutgoingCollector) collectRetries(isNew func(string) bool, emit emitter) {
	for _, of := range c.budgets.Stats() {
		if target := label(of.Target); isNew("retries " + target) {
			emit(c.retries, prometheus.CounterValue, float64(of.Retries), target, "allowed")
			emit(c.retries, prometheus.CounterValue, float64(of.Refused), target, "refused")
			emit(c.retryTokens, prometheus.GaugeValue, of.Tokens, target)
		}
	}
}
