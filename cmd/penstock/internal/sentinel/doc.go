// Package sentinel turns flow rules of Sentinel into those of Penstock.
//
// It reads the JSON that the data sources of Sentinel hold: lists of rules with
// the field names of sentinel-golang 1 (threshold, tokenCalculateStrategy), of
// sentinel-golang 0 (metricType, count) and of Java (grade, count, strategy).
// The rules of one list need not speak the same dialect. Names of fields may be
// written in either case, as Sentinel reads them.
//
// A rule is carried over with what it means in Sentinel, not with what its
// numbers would mean here: its window has the buckets that Sentinel counts in.
// What cannot be carried over is left out and told, and so is what will behave
// otherwise than it did.
package sentinel
