package penstockprom

import (
	"cmp"
	"slices"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/penstock-go/penstock/rule"
)

// family describes a metric and the labels of its series.
type family struct {
	desc       *prometheus.Desc
	name, help string
	index      int // in families.all
}

// families are all metrics of a collector.
type families struct {
	resourceFamilies
	ruleFamilies
	sourceFamilies
	listFamilies
	signalFamilies
	fleetFamilies
	kinds map[rule.Kind]kindFamilies

	ofRule *family   // of no metric: it has the labels of those that are of a rule
	all    []*family // by name
}

// resourceFamilies are the metrics of resources, one by one and together.
type resourceFamilies struct {
	passed, blocked, failed     *family
	passedTokens, blockedTokens *family
	inFlight, waiting           *family
	load, loadLevel             *family
	responseTime, wait          *family

	resources, withoutSeries, overflow *family
}

// ruleFamilies are the metrics of rules of all kinds, one by one and together.
type ruleFamilies struct {
	ruleBlocked, shadowBlocked *family
	ruleDemoted                *family

	rules, unmatched, revision, appliedAt, rejections, forced, switchedOff *family
}

// sourceFamilies are the metrics of sources of rules.
type sourceFamilies struct {
	connected, staleness, onCopy, heldBack  *family
	sourceRevision, sourceRejectedDocuments *family
}

// listFamilies are the metrics of lists that rules refer to by name.
type listFamilies struct {
	listEntries, listLoadedAt, listRejected *family
	listMissing, listOnCopy, listHeldBack   *family
}

// signalFamilies are the metrics of signals that rules read.
type signalFamilies struct{ signal, signalKnown *family }

// fleetFamilies are the metrics of the fleet.
type fleetFamilies struct {
	fleetRules, fleetConnected, fleetInstances    *family
	fleetOutages, fleetRequests, fleetRequestTime *family
}

// kindFamilies are the metrics of the rules of one kind.
type kindFamilies struct {
	// of kinds whose limits can be for a whole fleet; else nil
	fleetGranted, fleetDemand, fleetOutage *family

	// of kinds that limit how much passes in a time; else nil
	effectiveLimit, used, remaining *family

	state, transitions *family       // of kinds that have states; else nil
	gauges             []gaugeFamily // in the order of the kind's gauges
}

// gaugeFamily is the metric of a gauge. Those that a label tells apart share one.
type gaugeFamily struct {
	rule.Gauge
	*family
}

// familyMaker makes metrics that have the same constant labels.
type familyMaker struct {
	constLabels prometheus.Labels
	all         []*family
}

// make returns a metric whose series have these labels beside the constant ones.
func (m *familyMaker) make(name, help string, labels ...string) *family {
	f := &family{desc: prometheus.NewDesc(name, help, labels, m.constLabels), name: name, help: help}
	m.all = append(m.all, f)
	return f
}

func newFamilies(kinds []rule.Definition, constLabels prometheus.Labels) families {
	m := &familyMaker{constLabels: constLabels}
	f := families{
		resourceFamilies: m.resources(), ruleFamilies: m.rules(), sourceFamilies: m.sources(),
		listFamilies: m.lists(), signalFamilies: m.signals(), fleetFamilies: m.fleet(),
		kinds: make(map[rule.Kind]kindFamilies),
	}
	for _, kind := range kinds {
		f.kinds[kind.Kind()] = m.kind(kind)
	}
	f.all = m.all
	slices.SortFunc(f.all, func(a, b *family) int { return cmp.Compare(a.name, b.name) })
	for i := range f.all {
		f.all[i].index = i
	}
	f.ofRule = m.make("penstock_of_rule", "", "resource", "rule")
	return f
}

func (m *familyMaker) resources() resourceFamilies {
	return resourceFamilies{
		passed:  m.make("penstock_passed_total", "Calls that were let through.", "resource"),
		blocked: m.make("penstock_blocked_total", "Calls that were refused.", "resource"),
		failed:  m.make("penstock_failed_total", "Calls that ended with a failure.", "resource"),
		passedTokens: m.make("penstock_passed_tokens_total",
			"Tokens that calls asked for that were let through.", "resource"),
		blockedTokens: m.make("penstock_blocked_tokens_total",
			"Tokens that calls asked for that were refused.", "resource"),
		inFlight: m.make("penstock_in_flight", "Calls under way.", "resource"),
		waiting:  m.make("penstock_waiting", "Calls that wait in a queue.", "resource"),
		responseTime: m.make("penstock_response_time_seconds",
			"Response times of the calls that ended, without their time in a queue.", "resource"),
		wait:      m.make("penstock_wait_seconds", "Times in a queue, however they ended.", "resource"),
		resources: m.make("penstock_resources", "Resources that the engine keeps statistics of."),
		load: m.make("penstock_resources_load",
			"How loaded the resources are that guards were asked about: up to 1 the share of the places that are taken, up to 2 calls wait and are refused."),
		loadLevel: m.make("penstock_resources_load_level", "The level of the load, from 0 for none to 4 for shedding."),
		withoutSeries: m.make("penstock_resources_without_series",
			"Resources without series of their own, which are summed up as the resource (other)."),
		overflow: m.make("penstock_resources_overflow_calls_total",
			"Calls, passed or refused, of names beyond the bound of the engine, which share statistics and limits."),
	}
}

func (m *familyMaker) rules() ruleFamilies {
	return ruleFamilies{
		ruleBlocked: m.make("penstock_rule_blocked_total", "Calls that a rule in force refused.",
			"resource", "kind", "rule"),
		shadowBlocked: m.make("penstock_rule_shadow_blocked_total",
			"Calls that a rule in force would have refused while it was a shadow.", "resource", "kind", "rule"),
		ruleDemoted: m.make("penstock_rule_demoted_total",
			"Calls that a rule in force gave the lowest priority in place of refusing them.", "resource", "kind", "rule"),
		rules:     m.make("penstock_rules", "Rules in force."),
		unmatched: m.make("penstock_rules_unmatched", "Rules in force that no call has matched."),
		revision:  m.make("penstock_rules_revision", "Revision of the rule set, counted by the engine."),
		appliedAt: m.make("penstock_rules_applied_timestamp_seconds",
			"When the rule set was put in force, 0 before the first."),
		rejections: m.make("penstock_documents_rejected_total", "Rule documents that could not be applied."),
		forced: m.make("penstock_rules_forced", "Whether the state of all rules of a kind is forced.",
			"kind", "state"),
		switchedOff: m.make("penstock_switched_off", "Whether rules are switched off: all where no label names some.",
			"kind", "rule", "resource"),
	}
}

func (m *familyMaker) sources() sourceFamilies {
	return sourceFamilies{
		connected: m.make("penstock_source_connected",
			"Whether a source of rules could be read when last tried.", "source"),
		staleness: m.make("penstock_source_staleness_seconds",
			"Time since the state of a source was last known: 0 while it is connected.", "source"),
		onCopy: m.make("penstock_source_on_copy",
			"Whether the rules in force of a source are those of a copy.", "source"),
		heldBack: m.make("penstock_source_held_back",
			"Whether a change of a source is held back because it would remove too many rules at once.", "source"),
		sourceRevision: m.make("penstock_source_revision", "Revision of a source as a whole, as last read.", "source"),
		sourceRejectedDocuments: m.make("penstock_source_rejected_documents",
			"Documents of a source whose present version is not in force.", "source"),
	}
}

func (m *familyMaker) lists() listFamilies {
	return listFamilies{
		listEntries: m.make("penstock_list_entries", "Entries of a list in force.", "list", "source"),
		listLoadedAt: m.make("penstock_list_loaded_timestamp_seconds",
			"When a list was put in force.", "list", "source"),
		listRejected: m.make("penstock_list_rejected",
			"Whether the present version of a list could not be put in force: an earlier one is, or none.",
			"list", "source"),
		listMissing: m.make("penstock_list_missing", "1 while a list is not there that a rule in force names.", "list"),
		listOnCopy: m.make("penstock_list_on_copy",
			"Whether the list in force is that of a copy.", "list", "source"),
		listHeldBack: m.make("penstock_list_held_back",
			"Whether a change of a list is held back because too many entries would go at once.", "list", "source"),
	}
}

func (m *familyMaker) signals() signalFamilies {
	return signalFamilies{
		signal: m.make("penstock_signal",
			"Value of a signal of the system that rules read; none while it is unknown.", "signal"),
		signalKnown: m.make("penstock_signal_known",
			"Whether the value of a signal is known: rules that read an unknown one let calls pass.", "signal"),
	}
}

func (m *familyMaker) fleet() fleetFamilies {
	return fleetFamilies{
		fleetRules: m.make("penstock_fleet_rules",
			"Rules in force that are for all instances of the service together."),
		fleetConnected: m.make("penstock_fleet_connected",
			"Whether the backend of the fleet answers: without one, limits are those of this instance."),
		fleetInstances: m.make("penstock_fleet_instances", "Instances of the fleet, as last known."),
		fleetOutages: m.make("penstock_fleet_outages_total",
			"Outages of the backend of the fleet that have begun."),
		fleetRequests: m.make("penstock_fleet_requests_total", "Requests to the backend of the fleet."),
		fleetRequestTime: m.make("penstock_fleet_request_duration_seconds",
			"How long answers of the backend of the fleet took of late."),
	}
}

func (m *familyMaker) kind(kind rule.Definition) kindFamilies {
	var f kindFamilies
	name := string(kind.Kind())
	metric := func(name string) string { return rule.MetricName(kind.Kind(), name) }
	if kind.Phase() == rule.PhaseRate {
		f.effectiveLimit = m.make(metric("ceiling_tokens_per_second"), "Effective limit of a "+name+
			" rule: lower than its limit during warm-up, or while a signal that it follows is high.", "resource", "rule")
		f.used = m.make(metric("used_ratio"), "Which part of the limit of a "+name+
			" rule is used: of a window, a bucket or a balance; of a limit of the whole fleet by all instances.", "resource", "rule")
		f.remaining = m.make(metric("remaining_tokens"), "Tokens that are left of the limit of a "+name+
			" rule: of a window, a bucket or a balance.", "resource", "rule")
	}
	if kind.CanShare() {
		f.fleetGranted = m.make(metric("fleet_granted_tokens_per_second"),
			"What a "+name+" rule of the whole fleet grants to this instance, of late.", "resource", "rule")
		f.fleetDemand = m.make(metric("fleet_demand_tokens_per_second"),
			"What calls of this instance ask of a "+name+" rule of the whole fleet, of late.", "resource", "rule")
		f.fleetOutage = m.make(metric("fleet_outage"),
			"Whether a "+name+" rule of the whole fleet goes on without the backend.", "resource", "rule")
	}
	if len(kind.States()) > 0 {
		f.state = m.make(metric("state"),
			"State of a "+name+" rule: 1 for the present one, 0 for the others.", "resource", "rule", "state")
		f.transitions = m.make(metric("transitions_total"),
			"Changes of the state of a "+name+" rule.", "resource", "rule", "from", "to")
	}
	for _, gauge := range kind.Gauges() {
		of := gaugeFamily{Gauge: gauge}
		if last := len(f.gauges) - 1; last >= 0 && f.gauges[last].Name == gauge.Name && f.gauges[last].Counter == gauge.Counter {
			of.family = f.gauges[last].family
		} else {
			labels := []string{"resource", "rule"}
			if gauge.Label != "" {
				labels = append(labels, gauge.Label)
			}
			of.family = m.make(gauge.MetricName(kind.Kind()), gauge.Help, labels...)
		}
		f.gauges = append(f.gauges, of)
	}
	return f
}
