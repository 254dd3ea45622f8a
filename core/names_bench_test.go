package core_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/flow"
)

// globs returns so many rules with a pattern, of which one matches every name that
// [routeName] makes.
func globs(n int, limit float64) []flow.Rule {
	set := []flow.Rule{{Name: "all", Match: "svc-*", Limit: limit}}
	for i := 1; i < n; i++ {
		set = append(set, flow.Rule{Name: fmt.Sprint("glob", i), Match: fmt.Sprintf("*:x%d*y", i), Limit: limit})
	}
	return set
}

func routeName(i int) string { return fmt.Sprintf("svc-%d:GET /things/%d", i%100, i) }

// BenchmarkSwapOfPatterns tells how long a swap of patterns over 9,000 names takes,
// and how long the first call of a new name waited at the most meanwhile.
func BenchmarkSwapOfPatterns(b *testing.B) {
	for _, count := range []int{100, 500} {
		b.Run(fmt.Sprint(count), func(b *testing.B) {
			e := core.New(core.Config{Logger: quiet, MaxResources: 100_000_000})
			defer e.Close()
			for i := range 9000 {
				enter(e, routeName(i), 1)
			}
			var over atomic.Bool
			longest := make(chan time.Duration)
			go func() {
				most := time.Duration(0)
				for i := 0; !over.Load(); i++ {
					name := fmt.Sprint("svc-new", i)
					start := time.Now()
					guard, _ := e.Entry(context.Background(), name)
					most = max(most, time.Since(start))
					guard.Exit()
					time.Sleep(100 * time.Microsecond)
				}
				longest <- most
			}()
			for i := 0; b.Loop(); i++ {
				load(b, e, globs(count, 1e6+float64(i%2))...)
			}
			over.Store(true)
			b.ReportMetric(float64(<-longest)/1e6, "ms-longest-call")
		})
	}
}

// BenchmarkForgetting tells how long the first call of a new name takes when many
// resources are to be forgotten, and all of them together.
func BenchmarkForgetting(b *testing.B) {
	for _, count := range []int{10_000, 200_000} {
		b.Run(fmt.Sprint(count), func(b *testing.B) {
			c := clock.NewVirtual(begin)
			e := core.New(core.Config{Clock: c, Logger: quiet, MaxResources: count})
			defer e.Close()
			longest := time.Duration(0)
			for round := 0; b.Loop(); round++ {
				b.StopTimer()
				for i := range count {
					enter(e, fmt.Sprint(round, routeName(i)), 1)
				}
				c.Advance(2 * time.Minute)
				b.StartTimer()
				for i := range 2000 {
					name := fmt.Sprint("new", round, i)
					start := time.Now()
					enter(e, name, 1)
					longest = max(longest, time.Since(start))
				}
			}
			b.ReportMetric(float64(longest)/1e6, "ms-longest-call")
		})
	}
}

// BenchmarkFirstCall is the first call of a name, under patterns.
func BenchmarkFirstCall(b *testing.B) {
	for _, count := range []int{0, 1, 100, 500} {
		b.Run(fmt.Sprint(count, " patterns"), func(b *testing.B) {
			e := core.New(core.Config{Logger: quiet, MaxResources: 100_000_000})
			defer e.Close()
			if count > 0 {
				load(b, e, globs(count, 1e6)...)
			}
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				enter(e, routeName(i), 1)
			}
		})
	}
}
