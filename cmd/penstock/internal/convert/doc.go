// Package convert converts rules of others into rules of Penstock.
//
// Of Sentinel it converts flow rules, isolation rules, circuit breakers, rules for hot
// parameters, gateway rules, authority rules and system rules. It reads the JSON that data
// sources and dashboards have, with the field names of sentinel-golang 1 (threshold,
// strategy), of 0.6 (tokenCalculateStrategy, count), of earlier ones (metricType, count) and
// of Java (grade, count). A list may mix kinds and versions. The case of field names does
// not matter, as in Sentinel. It also converts configurations of Envoy's rate limit service,
// the limit_req and limit_conn lines of nginx, and the application.yml of programs with
// resilience4j.
//
// A converted rule does what the rule does where it comes from, even where the same numbers
// would mean something else here: its window has the buckets that Sentinel counts in.
// Findings report what cannot be converted, what will behave differently and what has no
// effect anyway. A rule whose limit is not understood is never written.
package convert
