package penstockprom

import "github.com/prometheus/client_golang/prometheus"

// families are the descriptions of all metrics.
type families struct {
	passed, blocked, failed *prometheus.Desc
	inFlight, waiting       *prometheus.Desc
	responseTime, wait      *prometheus.Desc

	ruleBlocked, shadowBlocked, effectiveLimit *prometheus.Desc

	rules, unmatched, revision, appliedAt, rejections  *prometheus.Desc
	connected, sourceRevision, sourceRejectedDocuments *prometheus.Desc
	staleness, onCopy, heldBack                        *prometheus.Desc

	all []*prometheus.Desc
}

func newFamilies(constLabels prometheus.Labels) families {
	var f families
	family := func(name, help string, labels ...string) *prometheus.Desc {
		desc := prometheus.NewDesc("penstock_"+name, help, labels, constLabels)
		f.all = append(f.all, desc)
		return desc
	}
	f.passed = family("passed_total", "Calls that were let through.", "resource")
	f.blocked = family("blocked_total", "Calls that were refused.", "resource")
	f.failed = family("failed_total", "Calls that ended with a failure.", "resource")
	f.inFlight = family("in_flight", "Calls under way.", "resource")
	f.waiting = family("waiting", "Calls that wait in a queue.", "resource")
	f.responseTime = family("response_time_seconds",
		"Response times of the calls that ended, without their time in a queue.", "resource")
	f.wait = family("wait_seconds", "Times in a queue, however they ended.", "resource")

	f.ruleBlocked = family("rule_blocked_total", "Calls that a rule in force refused.", "resource", "kind", "rule")
	f.shadowBlocked = family("rule_shadow_blocked_total",
		"Calls that a rule in force would have refused while it was a shadow.", "resource", "kind", "rule")
	f.effectiveLimit = family("flow_ceiling_tokens_per_second", "Effective limit of a flow rule: lower than its limit during warm-up.", "resource", "rule")

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
	return f
}
