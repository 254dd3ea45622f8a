package bench_test

import (
	"slices"
	"testing"

	"github.com/penstock-go/penstock/bench/internal/peer"
)

// BenchmarkOneRulePassing is a call under one limit that is never reached.
func BenchmarkOneRulePassing(b *testing.B) {
	limiters := peer.Limiters(peer.Settings{})
	limiters = append(limiters, peer.PenstockVariants(peer.Settings{})...)
	for _, limiter := range limiters {
		measure(b, limiter.Name, allPass, func() (peer.Try, error) { return limiter.New(peer.Huge) })
	}
}

// BenchmarkOneRuleBlocking is a call that exceeds its limit, of one per second.
func BenchmarkOneRuleBlocking(b *testing.B) {
	never := []string{"uber.Take", peer.Adaptive}
	for _, limiter := range peer.Limiters(peer.Settings{}) {
		if !slices.Contains(never, limiter.Name) {
			measure(b, limiter.Name, onePerSecond, func() (peer.Try, error) { return limiter.New(1) })
		}
	}
}

// BenchmarkThrottleWithoutWait is a call that goes through a queue in which nobody
// waits.
func BenchmarkThrottleWithoutWait(b *testing.B) {
	for _, queue := range peer.Queues(peer.Settings{}) {
		measure(b, queue.Name, allPass, func() (peer.Try, error) { return queue.New(peer.Huge) })
	}
}
