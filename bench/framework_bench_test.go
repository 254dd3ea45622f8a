package bench_test

import (
	"slices"
	"testing"

	"github.com/penstock-go/penstock/bench/internal/peer"
)

// BenchmarkNoRule is a call of a resource that no rule names.
func BenchmarkNoRule(b *testing.B) { compare(b, peer.Names("free", 1), nil) }

// BenchmarkTenRules is a call under ten limits at once.
func BenchmarkTenRules(b *testing.B) {
	called := peer.Names("guarded", 1)
	compare(b, called, slices.Repeat(peer.RulesOn(called, peer.Reject), 10))
}

// BenchmarkWarmUp is a call under a limit that warms up.
func BenchmarkWarmUp(b *testing.B) {
	called := peer.Names("guarded", 1)
	compare(b, called, peer.RulesOn(called, peer.WarmUp))
}

// BenchmarkTenThousandResources is a call of one after the other of 10,000 resources
// that have a limit each.
func BenchmarkTenThousandResources(b *testing.B) {
	called := peer.Names("guarded", 10_000)
	compare(b, called, peer.RulesOn(called, peer.Reject))
}

// BenchmarkBesideThousandResources is a call under one limit, while 1,000 other
// resources have limits too.
func BenchmarkBesideThousandResources(b *testing.B) {
	called := peer.Names("guarded", 1)
	compare(b, called, append(peer.RulesOn(peer.Names("other", 1000), peer.Reject), peer.RulesOn(called, peer.Reject)...))
}

// compare measures calls of those resources, in turn, under those rules.
func compare(b *testing.B, called []string, set []peer.Rule) {
	b.Helper()
	for _, framework := range peer.Frameworks() {
		measure(b, framework.Name, allPass, func() (peer.Try, error) {
			return guarding(framework.New(peer.Settings{}), called, set)
		})
	}
}

// guarding returns calls of those resources, each of which has been called before.
func guarding(guards peer.Guards, called []string, set []peer.Rule) (peer.Try, error) {
	if err := guards.Prepare(set)(); err != nil {
		return nil, err
	}
	try := func(call int) bool { return guards.Call(called[call%len(called)]) }
	for i := range called {
		try(i)
	}
	return try, nil
}
