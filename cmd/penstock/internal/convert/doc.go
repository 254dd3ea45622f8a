// Package sentinel converts rules of Sentinel into rules of Penstock: flow rules,
// isolation rules, circuit breakers, rules for hot parameters, gateway rules, authority
// rules and system rules.
//
// It reads the JSON that the data sources of Sentinel have: lists of rules with the
// field names of sentinel-golang 1 (threshold, strategy), of sentinel-golang 0
// (metricType, count) and of Java (grade, count). A list may mix kinds and versions.
// The case of field names does not matter, as in Sentinel.
//
// A converted rule does what the rule does in Sentinel, even where the same numbers
// would mean something else here: its window has the buckets that Sentinel counts in.
// Findings report what cannot be converted and what will behave differently.
package convert
