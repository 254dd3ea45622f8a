package bench_test

import (
	"context"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/bench/internal/peer"
	"github.com/penstock-go/penstock/core"
)

// batch is how many calls are under way when Entry and Exit are measured each by
// itself: enough that reading the time is a small part.
const batch = 64

// BenchmarkEntryAndExit is Entry and Exit of Penstock, each by itself, without a rule
// and under a rule of one kind that lets the call pass.
func BenchmarkEntryAndExit(b *testing.B) {
	for _, rules := range peer.PenstockRules() {
		b.Run(rules.Name, func(b *testing.B) {
			b.Run("entry", func(b *testing.B) {
				entry, _ := measurePhases(b, rules)
				b.ReportMetric(perCall(b, entry), "ns/op")
			})
			b.Run("exit", func(b *testing.B) {
				_, exit := measurePhases(b, rules)
				b.ReportMetric(perCall(b, exit), "ns/op")
			})
		})
	}
}

// measurePhases enters and exits b.N calls, in batches, and returns how long it spent
// in Entry and in Exit.
func measurePhases(b *testing.B, rules peer.PenstockRule) (entry, exit time.Duration) {
	b.Helper()
	b.ReportAllocs()
	engine, err := rules.NewEngine()
	require.NoError(b, err)
	var guards [batch]core.Guard
	enterAndExit(b, engine, guards[:])
	runtime.GC()
	b.ResetTimer()
	for todo := b.N; todo > 0; todo -= batch {
		entered, exited := enterAndExit(b, engine, guards[:min(todo, batch)])
		entry, exit = entry+entered, exit+exited
	}
	return entry, exit
}

func enterAndExit(b *testing.B, engine *core.Engine, guards []core.Guard) (entry, exit time.Duration) {
	start := time.Now()
	for i := range guards {
		var err error
		if guards[i], err = engine.Entry(context.Background(), peer.PenstockResource); err != nil {
			b.Fatal(err)
		}
	}
	entered := time.Now()
	for i := range guards {
		guards[i].Exit()
	}
	return entered.Sub(start), time.Since(entered)
}

func perCall(b *testing.B, total time.Duration) float64 {
	b.Helper()
	return float64(total.Nanoseconds()) / float64(b.N)
}
