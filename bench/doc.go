// Package bench compares Penstock with other libraries: all of them do the same work
// in the same run. Benchmarks measure the time per call, the programs below cmd
// everything else. They write their tables into docs/performance.md, and the program fleet into
// docs/fleet.md. See "make bench".
//
// It is a module of its own, outside of go.work, so that only those who measure need
// the other libraries.
package bench
