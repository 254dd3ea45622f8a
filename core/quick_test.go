package core_test

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/rules"
)

func TestQuick(t *testing.T) {
	c := clock.NewVirtual(time.Unix(1000, 0))
	e := core.New(core.Config{Clock: c, Logger: slog.New(slog.DiscardHandler)})
	defer e.Close()
	require.NoError(t, e.Load(rules.Set{Flow: []flow.Rule{
		{Resource: "r", Limit: 1000, WarmUp: flow.WarmUp{Period: 10 * time.Second}},
	}}))
	for s := range 14 {
		n := 0
		for range 2000 {
			if g, err := e.Entry(context.Background(), "r"); err == nil {
				g.Exit()
				n++
			}
			c.Advance(500 * time.Microsecond)
		}
		t.Log(s, n)
	}
	e.Load(rules.Set{Flow: []flow.Rule{
		{Resource: "a", Limit: 1e6}, {Resource: "b", Limit: 0}, {Resource: "q", Limit: 1e9, Control: flow.Throttle},
	}})
	ctx := context.Background()
	t.Log(testing.AllocsPerRun(1000, func() {
		g, _ := e.Entry(ctx, "a", core.Tokens(1), core.Origin("x"), core.Args("a", 77777), core.Inbound())
		g.Exit()
	}))
	t.Log(testing.AllocsPerRun(1000, func() {
		g, _ := e.Entry(ctx, "b", core.Tokens(1), core.Origin("x"), core.Args("a", 77777), core.Inbound())
		g.Exit()
	}))
	t.Log(testing.AllocsPerRun(1000, func() {
		g, _ := e.Entry(ctx, "q", core.Tokens(1), core.Origin("x"), core.Args("a", 77777), core.Inbound())
		g.Exit()
	}))
}

func BenchmarkPass(b *testing.B) {
	e := core.New(core.Config{Logger: slog.New(slog.DiscardHandler)})
	e.Load(rules.Set{Flow: []flow.Rule{{Resource: "a", Limit: 1e9}, {Resource: "b", Limit: 0}}})
	ctx := context.Background()
	b.Run("none", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			g, _ := e.Entry(ctx, "n")
			g.Exit()
		}
	})
	b.Run("pass", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			g, _ := e.Entry(ctx, "a")
			g.Exit()
		}
	})
	b.Run("block", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			g, _ := e.Entry(ctx, "b")
			g.Exit()
		}
	})
}
