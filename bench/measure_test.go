package bench_test

import (
	"runtime"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/bench/internal/peer"
)

// goroutines is how many call at once in what is measured in parallel.
const goroutines = 8

// expectation checks, after the measurement, how many of its calls passed.
type expectation func(b *testing.B, passed int)

func allPass(b *testing.B, passed int) {
	b.Helper()
	if passed != b.N {
		b.Fatalf("%d of %d calls were refused, and none should be", b.N-passed, b.N)
	}
}

// onePerSecond is what a limit of one per second lets through: one a second, and a
// burst at the beginning.
func onePerSecond(b *testing.B, passed int) {
	b.Helper()
	if most := 2 + 2*int(b.Elapsed().Seconds()); passed > most {
		b.Fatalf("%d of %d calls passed, and no more than %d should", passed, b.N, most)
	}
}

func nonePass(b *testing.B, passed int) {
	b.Helper()
	if passed != 0 {
		b.Fatalf("%d of %d calls passed, and none should", passed, b.N)
	}
}

// measure reports the time per call in one goroutine and in several. Both call what
// setUp returns.
func measure(b *testing.B, name string, expect expectation, setUp func() (peer.Try, error)) {
	b.Run(name, func(b *testing.B) {
		b.Run("serial", func(b *testing.B) {
			try := prepare(b, setUp)
			call, passed := 0, 0
			for b.Loop() {
				if try(call) {
					passed++
				}
				call++
			}
			expect(b, passed)
		})
		b.Run("parallel8", func(b *testing.B) {
			try := prepare(b, setUp)
			var started, passed atomic.Int64
			b.SetParallelism(max(1, goroutines/runtime.GOMAXPROCS(0)))
			b.ResetTimer()
			b.RunParallel(func(pb *testing.PB) {
				call, mine := int(started.Add(1))*1_000_003, 0 // each starts at another resource
				for pb.Next() {
					if try(call) {
						mine++
					}
					call++
				}
				passed.Add(int64(mine))
			})
			b.StopTimer()
			expect(b, int(passed.Load()))
		})
	})
}

// prepare sets up what is measured and cleans up after it.
func prepare(b *testing.B, setUp func() (peer.Try, error)) peer.Try {
	b.Helper()
	b.ReportAllocs()
	b.Cleanup(func() { require.NoError(b, peer.Reset()) })
	try, err := setUp()
	require.NoError(b, err)
	try(0)       // the first call allocates what later calls use
	runtime.GC() // of the garbage of earlier benchmarks
	return try
}
