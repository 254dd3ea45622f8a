package penstockprom

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/penstock-go/penstock/rule"
)

// families are the descriptions of all metrics.
type families struct {
	passed, blocked, failed     *prometheus.Desc
	passedTokens, blockedTokens *prometheus.Desc
	inFlight, waiting           *prometheus.Desc
	responseTime, wait          *prometheus.Desc

	resources, withoutSeries, overflow *prometheus.Desc

	ruleBlocked, shadowBlocked *prometheus.Desc
	kinds                      map[rule.Kind]kindFamilies

	rules, unmatched, revision, appliedAt, rejections  *prometheus.Desc
	connected, sourceRevision, sourceRejectedDocuments *prometheus.Desc
	staleness, onCopy, heldBack                        *prometheus.Desc
	listEntries, listLoadedAt, listRejected            *prometheus.Desc
	signal, signalKnown, forced                        *prometheus.Desc

	fleetRules, fleetConnected, fleetInstances    *prometheus.Desc
	fleetOutages, fleetRequests, fleetRequestTime *prometheus.Desc

	ofRule *prometheus.Desc // of no metric: it has the labels of those that are of a rule

	all []*prometheus.Desc
}

// kindFamilies are the metrics of the rules of one kind.
type kindFamilies struct {
	// of kinds whose limits can be for a whole fleet; else nil
	fleetGranted, fleetDemand, fleetOutage *prometheus.Desc

	effectiveLimit     *prometheus.Desc // of kinds that limit how much passes in a time; else nil
	state, transitions *prometheus.Desc // of kinds that have states; else nil
	gauges             []gaugeFamily    // in the order of the kind's gauges
}

// gaugeFamily is the metric of a gauge. Those that a label tells apart share one.
type gaugeFamily struct {
	rule.Gauge
	desc *prometheus.Desc
}

func newFamilies(kinds []rule.Definition, constLabels prometheus.Labels) families {
	f := families{kinds: make(map[rule.Kind]kindFamilies)}
	family := func(name, help string, labels ...string) *prometheus.Desc {
		desc := prometheus.NewDesc("penstock_"+name, help, labels, constLabels)
		f.all = append(f.all, desc)
		return desc
	}
	ofKind := func(name, help string, labels ...string) *prometheus.Desc {
		desc := prometheus.NewDesc(name, help, labels, constLabels)
		f.all = append(f.all, desc)
		return desc
	}
	f.passed = family("passed_total", "Calls that were let through.", "resource")
	f.blocked = family("blocked_total", "Calls that were refused.", "resource")
	f.passedTokens = family("passed_tokens_total", "Tokens that calls asked for that were let through.", "resource")
	f.blockedTokens = family("blocked_tokens_total", "Tokens that calls asked for that were refused.", "resource")
	f.failed = family("failed_total", "Calls that ended with a failure.", "resource")
	f.inFlight = family("in_flight", "Calls under way.", "resource")
	f.waiting = family("waiting", "Calls that wait in a queue.", "resource")
	f.responseTime = family("response_time_seconds",
		"Response times of the calls that ended, without their time in a queue.", "resource")
	f.wait = family("wait_seconds", "Times in a queue, however they ended.", "resource")
	f.resources = family("resources", "Resources that the engine keeps statistics of.")
	f.withoutSeries = family("resources_without_series",
		"Resources that have no series of their own: what happens on them is that of the resource (other).")
	f.overflow = family("resources_overflow_calls_total",
		"Calls, passed or refused, of names beyond the bound of the engine, which share statistics and limits.")

	f.ruleBlocked = family("rule_blocked_total", "Calls that a rule in force refused.", "resource", "kind", "rule")
	f.shadowBlocked = family("rule_shadow_blocked_total",
		"Calls that a rule in force would have refused while it was a shadow.", "resource", "kind", "rule")
	f.ofRule = prometheus.NewDesc("penstock_of_rule", "", []string{"resource", "rule"}, constLabels)
	for _, kind := range kinds {
		f.kinds[kind.Kind()] = newKindFamilies(kind, ofKind)
	}

	f.rules = family("rules", "Rules in force.")
	f.unmatched = family("rules_unmatched", "Rules in force that no call has matched.")
	f.revision = family("rules_revision", "Revision of the rule set, counted by the engine.")
	f.appliedAt = family("rules_applied_timestamp_seconds", "When the rule set was put in force, 0 before the first.")
	f.rejections = family("documents_rejected_total", "Rule documents that could not be applied.")
	f.connected = family("source_connected", "Whether a source of rules could be read when last tried.", "source")
	f.staleness = family("source_staleness_seconds",
		"Time since the state of a source was last known: 0 while it is connected.", "source")
	f.onCopy = family("source_on_copy", "Whether the rules in force of a source are those of a copy.", "source")
	f.heldBack = family("source_held_back",
		"Whether a change of a source is held back because it would remove too many rules at once.", "source")
	f.sourceRevision = family("source_revision", "Revision of a source as a whole, as last read.", "source")
	f.sourceRejectedDocuments = family("source_rejected_documents",
		"Documents of a source whose present version is not in force.", "source")
	f.listEntries = family("list_entries", "Entries of a list in force.", "list", "source")
	f.listLoadedAt = family("list_loaded_timestamp_seconds", "When a list was put in force.", "list", "source")
	f.listRejected = family("list_rejected",
		"Whether the present version of a list could not be put in force: an earlier one is, or none.", "list", "source")
	f.signal = family("signal", "What a signal of the system shows that rules read, unless it is unknown.", "signal")
	f.signalKnown = family("signal_known",
		"Whether it is known what a signal shows: rules that read one that is not let calls pass.", "signal")
	f.fleetRules = family("fleet_rules", "Rules in force that are for all instances of the service together.")
	f.fleetConnected = family("fleet_connected", "Whether the backend of the fleet answers: without one, limits are those of this instance.")
	f.fleetInstances = family("fleet_instances", "Instances of the fleet, as last known.")
	f.fleetOutages = family("fleet_outages_total", "Outages of the backend of the fleet that have begun.")
	f.fleetRequests = family("fleet_requests_total", "Requests to the backend of the fleet.")
	f.fleetRequestTime = family("fleet_request_duration_seconds", "How long answers of the backend of the fleet took of late.")
	f.forced = family("rules_forced", "Whether the state of all rules of a kind is forced.", "kind", "state")
	return f
}

func newKindFamilies(
	kind rule.Definition, family func(name, help string, labels ...string) *prometheus.Desc,
) kindFamilies {
	var f kindFamilies
	name := string(kind.Kind())
	metric := func(name string) string { return rule.MetricName(kind.Kind(), name) }
	if kind.Phase() == rule.PhaseRate {
		f.effectiveLimit = family(metric(rule.MetricEffectiveLimit),
			"Effective limit of a "+name+" rule: lower than its limit during warm-up, or while a signal that it follows is high.", "resource", "rule")
	}
	if kind.CanShare() {
		f.fleetGranted = family(metric(rule.MetricFleetGranted),
			"What a "+name+" rule of the whole fleet grants to this instance, of late.", "resource", "rule")
		f.fleetDemand = family(metric(rule.MetricFleetDemand),
			"What calls of this instance ask of a "+name+" rule of the whole fleet, of late.", "resource", "rule")
		f.fleetOutage = family(metric(rule.MetricFleetOutage),
			"Whether a "+name+" rule of the whole fleet goes on without the backend.", "resource", "rule")
	}
	if len(kind.States()) > 0 {
		f.state = family(metric(rule.MetricState), "State of a "+name+" rule: 1 for the present one, 0 for the others.",
			"resource", "rule", "state")
		f.transitions = family(metric(rule.MetricTransitions), "Changes of the state of a "+name+" rule.",
			"resource", "rule", "from", "to")
	}
	for _, gauge := range kind.Gauges() {
		of := gaugeFamily{Gauge: gauge}
		if last := len(f.gauges) - 1; last >= 0 && f.gauges[last].Name == gauge.Name && f.gauges[last].Counter == gauge.Counter {
			of.desc = f.gauges[last].desc
		} else {
			of.desc = family(gauge.MetricName(kind.Kind()), gauge.Help, of.labels("resource", "rule")...)
		}
		f.gauges = append(f.gauges, of)
	}
	return f
}

// labels returns the names of the labels of the metric, given those of all gauges.
func (g gaugeFamily) labels(names ...string) []string {
	if g.Label == "" {
		return names
	}
	return append(names, g.Label)
}
