// Package penstockprom exposes the metrics of an engine to Prometheus. Its name does
// not collide with that of package prometheus.
//
//	prometheus.MustRegister(penstockprom.NewCollector(engine, penstockprom.Options{}))
//
// The collector reads the engine when it is scraped. It does not slow down calls.
//
// # Metrics
//
// For each resource, with the label resource:
//
//	penstock_passed_total           counter    calls that were let through
//	penstock_blocked_total          counter    calls that were refused
//	penstock_failed_total           counter    calls that ended with a failure
//	penstock_in_flight              gauge      calls under way
//	penstock_waiting                gauge      calls that wait in a queue
//	penstock_response_time_seconds  histogram  response times of calls that ended, without their time in a queue
//	penstock_wait_seconds           summary    times in a queue, however they ended; no quantiles
//
// For each rule in force:
//
//	penstock_rule_blocked_total{resource,kind,rule}          counter  calls that it refused
//	penstock_rule_shadow_blocked_total{resource,kind,rule}   counter  calls that it would have refused while it was a shadow
//	penstock_flow_ceiling_tokens_per_second{resource,rule}   gauge    its effective limit: lower than the limit during warm-up
//
// For the rules as a whole and the sources that the engine follows:
//
//	penstock_rules                             gauge    rules in force
//	penstock_rules_unmatched                   gauge    rules in force that no call has matched; the status names them
//	penstock_rules_revision                    gauge    revision of the rule set, counted by the engine
//	penstock_rules_applied_timestamp_seconds   gauge    when the rule set was put in force; 0 before the first
//	penstock_documents_rejected_total          counter  rule documents that could not be applied
//	penstock_source_connected{source}          gauge    1 if the source could be read when last tried, else 0
//	penstock_source_staleness_seconds{source}  gauge    time since the state of the source was last known; 0 while connected
//	penstock_source_on_copy{source}            gauge    1 if its rules in force are those of a copy, else 0
//	penstock_source_held_back{source}          gauge    1 while a change is held back because it would remove too many rules at once, else 0
//	penstock_source_revision{source}           gauge    revision of the source as a whole, as last read
//	penstock_source_rejected_documents{source} gauge    documents whose present version is not in force
//
// Staleness is measured from the time a source was lost; on a copy, from the time
// at which the copy is known to have been current; for a source that was never read,
// from when it was followed or first failed. It shows how old rules may be, for any
// reason. Alert on it rather than on penstock_source_connected, which is 0 briefly
// when etcd restarts.
//
// The series of a rule end when the rule is removed. The calls that it refused stay
// in penstock_blocked_total, which is therefore at least the sum of the rules'
// counters. Checks of the user's own are rules of the kind "check"; they are counted
// on every resource.
//
// # Cardinality
//
// Resources that rules name always have series of their own. So do up to
// [Options.MaxResources] others, first come, first served, until the engine evicts
// the resource after a minute without a call. All other resources are summed up as
// the resource "(other)".
//
// Every event is counted in exactly one series. When a resource moves from "(other)"
// to series of its own, those count from then on; earlier events stay where they
// were counted. No counter goes down while its series exists, and rates are correct
// across such moves, provided that the engine is scraped at least once a minute.
//
// Invalid UTF-8 in names is replaced by U+FFFD. Resources whose names become equal
// by that share their series.
//
// # Several engines
//
// A collector is for one engine. Collectors of several engines in one registry
// need different [Options.ConstLabels].
package penstockprom
