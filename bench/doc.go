// Package bench measures Penstock beside its peers: the same work in the same
// run. It has benchmarks, and programs below cmd for what is no time per call;
// each writes its tables into docs/performance.md. See "make bench".
//
// It is a module of its own, outside of go.work, so that only who measures
// needs the peers.
package bench
