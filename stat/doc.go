// Package stat has the types of what an engine counts of a resource: its seconds, totals, and the
// distribution of its response times. Snapshots and status have them; the engine does the counting.
package stat
