package bench_test

import (
	"testing"

	"github.com/penstock-go/penstock/bench/internal/peer"
)

// BenchmarkIsolationPassing is a call under a concurrency limit that is never reached.
func BenchmarkIsolationPassing(b *testing.B) { measurePassing(b, peer.Isolations()) }

// BenchmarkIsolationBlocking is a call under a concurrency limit that is reached.
func BenchmarkIsolationBlocking(b *testing.B) { measureBlocking(b, peer.Isolations()) }

// BenchmarkBreakerClosed is a call that succeeds, under a closed circuit breaker.
func BenchmarkBreakerClosed(b *testing.B) { measurePassing(b, peer.Breakers()) }

// BenchmarkBreakerOpen is a call under an open circuit breaker.
func BenchmarkBreakerOpen(b *testing.B) { measureBlocking(b, peer.Breakers()) }

// BenchmarkAdaptivePassing is a call under an adaptive limit of a service that is not
// overloaded.
func BenchmarkAdaptivePassing(b *testing.B) { measurePassing(b, peer.Adaptives()) }

// BenchmarkAdaptiveRefusing is a call that an adaptive limit refuses.
func BenchmarkAdaptiveRefusing(b *testing.B) { measureBlocking(b, peer.Adaptives()) }

// BenchmarkLimitIsolationAndBreaker is a call under a rate limit, a concurrency limit
// and a circuit breaker, all of which let it pass.
func BenchmarkLimitIsolationAndBreaker(b *testing.B) { measurePassing(b, peer.Compositions()) }

func measurePassing(b *testing.B, protections []peer.Protection) {
	b.Helper()
	for _, p := range protections {
		measure(b, p.Name, allPass, p.Passing)
	}
}

func measureBlocking(b *testing.B, protections []peer.Protection) {
	b.Helper()
	for _, p := range protections {
		measure(b, p.Name, nonePass, p.Refusing)
	}
}
