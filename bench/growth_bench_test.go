package bench_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/penstock-go/penstock/bench/internal/peer"
)

// BenchmarkGrowth is a call of Penstock, with more and more rules or resources.
func BenchmarkGrowth(b *testing.B) {
	for _, count := range []int{1, 2, 5, 10, 20} {
		called := peer.Names("guarded", 1)
		grow(b, "rules-per-resource", count, called, slices.Repeat(peer.RulesOn(called, peer.Reject), count))
	}
	for _, count := range []int{1, 10, 100, 1000, 10_000, 100_000} {
		grow(b, "resources", count, peer.Names("free", count), nil)
	}
	for _, count := range []int{1, 10, 100, 1000, 10_000, 100_000} {
		guarded := peer.Names("guarded", count)
		grow(b, "rules", count, guarded[:1], peer.RulesOn(guarded, peer.Reject))
	}
}

func grow(b *testing.B, what string, count int, called []string, set []peer.Rule) {
	b.Helper()
	measure(b, fmt.Sprintf("%s=%d", what, count), allPass, func() (peer.Try, error) {
		penstock := peer.Frameworks()[0].New(peer.Settings{MaxResources: len(called)})
		return guarding(penstock, called, set)
	})
}
