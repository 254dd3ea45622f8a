package bench_test

import (
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/bench/internal/peer"
	"github.com/penstock-go/penstock/bench/internal/service"
)

// BenchmarkAdapterPassing is a request that a limit lets pass, without a network. That of grpc
// is a call of the interceptor.
func BenchmarkAdapterPassing(b *testing.B) { measureServices(b, peer.Huge, allPass) }

// BenchmarkAdapterRefusing is a request that a limit refuses, and its answer.
func BenchmarkAdapterRefusing(b *testing.B) { measureServices(b, 0, nonePass) }

// BenchmarkAdapterOverLoopback is a request of one client over TCP that a limit lets pass.
func BenchmarkAdapterOverLoopback(b *testing.B) {
	eachService(b, peer.Huge, func(b *testing.B, s *service.Service) {
		client, stop, err := s.Listen()
		require.NoError(b, err)
		defer stop()
		passed, err := client.Call() // connects
		require.NoError(b, err)
		require.True(b, passed)
		for b.Loop() {
			if passed, err = client.Call(); !passed {
				b.Fatal("refused, or failed: ", err)
			}
		}
	})
}

func measureServices(b *testing.B, limit int, expect expectation) {
	eachService(b, limit, func(b *testing.B, s *service.Service) {
		s.Call() // the first call allocates what later calls use
		passed := 0
		for b.Loop() {
			if s.Call() {
				passed++
			}
		}
		expect(b, passed)
	})
}

// eachService measures a service in each framework, with each guard that refuses if it has to.
func eachService(b *testing.B, limit int, measure func(*testing.B, *service.Service)) {
	for _, framework := range service.Frameworks() {
		for _, guard := range service.Guards() {
			if guard == service.Bare && limit == 0 {
				continue
			}
			b.Run(strings.Join([]string{framework.Name, string(guard)}, "/"), func(b *testing.B) {
				defer func() { require.NoError(b, peer.Reset()) }()
				s, err := framework.New(guard, limit)
				require.NoError(b, err)
				runtime.GC() // of the garbage of earlier benchmarks
				b.ReportAllocs()
				measure(b, s)
			})
		}
	}
}
