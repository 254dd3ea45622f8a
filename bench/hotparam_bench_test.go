package bench_test

import (
	"context"
	"log/slog"
	"strconv"
	"testing"
	"time"

	"golang.org/x/time/rate"

	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/hotparam"
	"github.com/penstock-go/penstock/rule"
	"github.com/penstock-go/penstock/rules"
)

// BenchmarkHotParam is a call under one limit for each value, beside one rate.Limiter for
// all calls. The values are all in the table already, so that none is new.
func BenchmarkHotParam(b *testing.B) {
	b.Run("rate.Allow", func(b *testing.B) {
		limiter := rate.NewLimiter(rate.Limit(1e9), 1<<30)
		for b.Loop() {
			if !limiter.Allow() {
				b.Fatal("refused")
			}
		}
	})
	b.Run("rate.Allow refused", func(b *testing.B) {
		limiter := rate.NewLimiter(rate.Limit(1e-9), 1)
		limiter.Allow()
		for b.Loop() {
			if limiter.Allow() {
				b.Fatal("passed")
			}
		}
	})
	b.Run("no rule", func(b *testing.B) { benchmarkValues(b, hotparam.Rule{}, 1, true) })
	for _, live := range []int{1, 10_000, 1_000_000} {
		name := strconv.Itoa(live) + " values"
		pass := hotparam.Rule{Limit: 1e8, Window: time.Hour, Burst: 1e8, MaxValues: max(1000, live+live/4)}
		b.Run(name+" pass", func(b *testing.B) { benchmarkValues(b, pass, live, true) })
		refuse := hotparam.Rule{Limit: 1, Window: 24 * time.Hour, MaxValues: max(1000, live+live/4)}
		b.Run(name+" refused", func(b *testing.B) { benchmarkValues(b, refuse, live, false) })
	}
	sliding := hotparam.Rule{Limit: 1e9, Window: time.Hour, Algorithm: hotparam.SlidingWindow, MaxValues: 12_500}
	b.Run("sliding window, 10000 values pass", func(b *testing.B) { benchmarkValues(b, sliding, 10_000, true) })
	places := hotparam.Rule{Concurrency: 1000, MaxValues: 12_500}
	b.Run("concurrency, 10000 values pass", func(b *testing.B) { benchmarkValues(b, places, 10_000, true) })
}

func benchmarkValues(b *testing.B, r hotparam.Rule, live int, passes bool) {
	b.Helper()
	engine := core.New(core.Config{Logger: slog.New(slog.DiscardHandler)})
	defer engine.Close()
	if r.Limit > 0 || r.Concurrency > 0 {
		r.Resource, r.Param = "r", rule.StringsOf("user")
		if err := engine.Load(rules.Set{HotParam: []hotparam.Rule{r}}); err != nil {
			b.Fatal(err)
		}
	}
	names := make([]string, live)
	for i := range names {
		names[i] = "user-" + strconv.Itoa(i)
	}
	ctx := context.Background()
	call := func(name string) bool {
		guard, err := engine.Entry(ctx, "r", core.String("user", name))
		guard.Exit()
		return err == nil
	}
	for _, name := range names {
		call(name)
	}
	b.ReportAllocs()
	i, step := 0, 7919%live // visits all, none right after its neighbour
	for b.Loop() {
		if call(names[i]) != passes {
			b.Fatal("decided otherwise")
		}
		if i += step; i >= live {
			i -= live
		}
	}
}
