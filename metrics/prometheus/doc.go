// Package penstockprom exposes what an engine knows to Prometheus. It is named
// so that it can stand in one file with package prometheus.
//
//	prometheus.MustRegister(penstockprom.NewCollector(engine, penstockprom.Options{}))
//
// The collector reads the engine when it is scraped; it adds nothing to a call.
//
// # Metrics
//
// Of each resource, with the label resource:
//
//	penstock_passed_total           counter    calls that were let through
//	penstock_blocked_total          counter    calls that were refused
//	penstock_passed_tokens_total    counter    tokens that calls asked for that were let through
//	penstock_blocked_tokens_total   counter    tokens that calls asked for that were refused
//	penstock_failed_total           counter    calls that ended with a failure
//	penstock_in_flight              gauge      calls under way
//	penstock_waiting                gauge      calls that wait
//	penstock_response_time_seconds  histogram  of the calls that ended, without the time that they waited
//	penstock_wait_seconds           summary    waits, however they ended; no quantiles
//
// Of all resources together:
//
//	penstock_resources                       gauge    resources that the engine keeps statistics of
//	penstock_resources_without_series        gauge    those among them that are summed up as the resource "(other)"
//	penstock_resources_overflow_calls_total  counter  calls of names beyond core.Config.MaxResources, which share statistics and limits
//	penstock_resources_load                  gauge    how loaded those are that guards were asked about: core.Engine.PresentLoad; else missing
//	penstock_resources_load_level            gauge    its level, from 0 for none to 4 for shedding
//
// Of each rule in force:
//
//	penstock_rule_blocked_total{resource,kind,rule}         counter  calls that it refused
//	penstock_rule_shadow_blocked_total{resource,kind,rule}  counter  calls that it would have refused while it was a shadow
//	penstock_rule_demoted_total{resource,kind,rule}         counter  calls that it gave the lowest priority in place of refusing them
//
// Of each rule in force, by its kind (flow, isolation, breaker, hot_param, access, or a
// user's own, in snake case):
//
//	penstock_flow_ceiling_tokens_per_second{resource,rule}     gauge    effective limit: lower than the rule's while it warms up
//	penstock_flow_used_ratio{resource,rule}                    gauge    which part of a window, a bucket or a balance is used
//	penstock_flow_remaining_tokens{resource,rule}              gauge    tokens that are left of it
//	penstock_<kind>_state{resource,rule,state}                 gauge    1 for the present state, 0 for the others
//	penstock_<kind>_transitions_total{resource,rule,from,to}   counter  changes of the state
//	penstock_<kind>_<gauge>{resource,rule}                     gauge    what else the kind shows, such as penstock_isolation_in_flight
//	penstock_<kind>_<counter>_total{resource,rule}             counter  what it counts, such as penstock_adaptive_shed_total
//
//	penstock_<kind>_fleet_granted_tokens_per_second{resource,rule}  gauge  of a rule of the whole fleet: what it grants to this instance
//	penstock_<kind>_fleet_demand_tokens_per_second{resource,rule}   gauge  what calls of this instance ask of it
//	penstock_<kind>_fleet_outage{resource,rule}                     gauge  1 while it goes on without the backend
//
// Some of the gauges and counters have a label more: penstock_adaptive_shed_total has the
// calls of each priority. These counters begin anew when a limiter does, as after a resource
// was forgotten.
//
// An engine refuses kinds whose metrics would have the names of others.
//
// A limiter that several resources share (perResource: false) has one series, with the
// pattern as its resource; its effective limit is shown for each resource.
//
// Of the rules as a whole and of the sources that they are followed from:
//
//	penstock_rules                             gauge    rules in force
//	penstock_rules_unmatched                   gauge    rules in force that no call has matched; the status names them
//	penstock_rules_revision                    gauge    of the rule set, counted by the engine
//	penstock_rules_applied_timestamp_seconds   gauge    when it was put in force; 0 before the first
//	penstock_rules_forced{kind,state}          gauge    1 while the state of all rules of a kind is forced
//	penstock_switched_off{kind,rule,resource}  gauge    1 while the rule, the kind, the resource, or all is switched off
//	penstock_documents_rejected_total          counter  rule documents that could not be applied
//	penstock_source_connected{source}          gauge    1 if the source could be read when last tried, else 0
//	penstock_source_staleness_seconds{source}  gauge    since when it is not known what the source holds; 0 while connected
//	penstock_source_on_copy{source}            gauge    1 if its rules in force are those of a copy, else 0
//	penstock_source_held_back{source}          gauge    1 while what it holds would take out too many rules at once, else 0
//	penstock_source_revision{source}           gauge    of the source as a whole, as last read
//	penstock_source_rejected_documents{source} gauge    documents whose present version is not in force
//
// Of the signals of the system that rules in force read, such as "cpu":
//
//	penstock_signal{signal}        gauge  what it shows, in the unit of rule.Signal; none while that is not known
//	penstock_signal_known{signal}  gauge  1 if that is known; rules that read one that is not let calls pass
//
// Of the fleet, if the engine has a backend for it or a rule that needs one:
//
//	penstock_fleet_rules                     gauge    rules in force that are for all instances together
//	penstock_fleet_connected                 gauge    1 if the backend answers
//	penstock_fleet_instances                 gauge    instances, as last known
//	penstock_fleet_outages_total             counter  outages of the backend that have begun
//	penstock_fleet_requests_total            counter  requests to the backend
//	penstock_fleet_request_duration_seconds  gauge    how long answers took of late
//
// Of the lists that rules refer to by name, with the source "code" for those that the
// program has made:
//
//	penstock_list_entries{list,source}                   gauge  entries of the list in force
//	penstock_list_loaded_timestamp_seconds{list,source}  gauge  when it was put in force, unless by the program
//	penstock_list_rejected{list,source}                  gauge  1 if the present version is not in force, for it is faulty
//	penstock_list_on_copy{list,source}                   gauge  1 if the list in force is that of a copy, else 0
//	penstock_list_held_back{list,source}                 gauge  1 while a change would take out too many entries at once, else 0
//	penstock_list_missing{list}                          gauge  1 while a rule in force names it and it is not there
//
// Of the calls that clients make, from [NewOutgoingCollector], with the label target:
//
//	penstock_outgoing_requests_total{target,outcome}  counter  calls: accepted and rejected by the target; throttled and paused here
//	penstock_outgoing_refusal_ratio{target}           gauge    the share of calls that are throttled now
//	penstock_outgoing_paused_seconds{target}          gauge    how long it takes until the target wants all calls
//	penstock_outgoing_untracked_total                 counter  calls that were not throttled, for there are too many targets
//	penstock_outgoing_retries_total{target,outcome}   counter  retries that the budget allowed, and refused
//	penstock_outgoing_retry_tokens{target}            gauge    how many retries the budget allows now
//
// Staleness is counted from the moment a source was lost; for one that runs on a
// copy, from the last moment at which the copy is known to have been true; for one
// that was never read, from when it was followed or first failed. It tells how old
// rules may be, whatever the reason: alert on that rather than on
// penstock_source_connected, which a restart of etcd turns 0 for a moment.
//
// A rule's count is of the rule as it is in force: the series ends when the rule
// is removed. What it refused stays in penstock_blocked_total, which is therefore
// at least the sum of the rules' counts.
//
// # Cardinality
//
// [Options.MaxResources] bounds how many resources have series of their own: first those
// that rules name, then others. Whoever comes first has them, and keeps them until
// the engine forgets the resource, which it does after a minute without a call.
// What happens on all other resources is summed up as the resource "(other)", and what
// rules that are for one of them have refused as the rule "(other)".
// penstock_resources_without_series tells how many these are.
//
// A resource has 7 series, 2 for waits, and those of its response times: with the default
// buckets 19; with [NativeHistograms] one; with [NoHistograms] two. Each rule on it has one
// to four, a breaker about 12.
//
// A registry checks every series at every scrape. For thousands of resources
// [Collector.Gather] is cheaper.
//
// # Stability
//
// Names, types, labels and units of the metrics are part of the API, as are the values of
// the labels kind, state, outcome and priority. Help texts, and where bounds of histograms
// are, are not. Metrics and labels may be added.
//
// Every event is counted in one series, for good. When a resource moves from
// "(other)" to series of its own, those count from then on; what was counted
// before stays where it is. What was counted on a resource after the last scrape,
// before the engine forgot it, is in "(other)"; of a histogram as if each of these
// calls had taken as long as their mean. No counter ever goes down while its series is
// there, and rates are right across all moves, however seldom the engine is scraped.
//
// Names that are not UTF-8 are mended with U+FFFD. Resources whose names become
// the same by that share their series.
//
// Values of attributes, such as users or addresses, and entries of lists are in no label
// and no help text: clients choose them. The status of package inspect shows values.
//
// # Several engines
//
// A collector is for one engine. Collectors of several engines in one registry
// need different [Options.ConstLabels].
package penstockprom
