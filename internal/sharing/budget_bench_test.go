package sharing_test

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/fleet"
	"github.com/penstock-go/penstock/fleet/memory"
	"github.com/penstock-go/penstock/internal/sharing"
	"github.com/penstock-go/penstock/internal/sharing/lease"
)

// leased returns a budget that holds many tokens until it ends.
func leased(tb testing.TB, limit float64) (*lease.Budget, clock.Instant) {
	tb.Helper()
	c := clock.NewVirtual(time.Time{})
	m := sharing.NewMember(fleet.Config{Manual: true}, c, slog.New(slog.DiscardHandler), 1)
	store := memory.New(c)
	terms := fleet.Terms{Key: "a", Limit: limit, Window: time.Second, Burst: limit, Buckets: 1}
	budget := m.Budget(terms, fleet.ModeLease, fleet.OutageClosed, c.Now())
	for range 20 {
		budget.Settle(c.Now(), int32(limit/100)) // demand
		for _, batch := range m.Step(c.Now()) {
			assert.NoError(tb, batch.Send(context.Background(), store))
			m.Deliver(c.Now(), batch)
		}
		c.Advance(10 * time.Millisecond)
	}
	return budget, c.Now().Add(-10 * time.Millisecond)
}

func BenchmarkTake(b *testing.B) {
	budget, now := leased(b, 1e8)
	b.ReportAllocs()
	refused := 0
	for b.Loop() {
		if !budget.Take(now, 1) {
			refused++
			budget, now = leased(b, 1e8)
		}
	}
	b.ReportMetric(float64(refused)/float64(b.N), "refused/op")
}

func BenchmarkTakeGiveBack(b *testing.B) {
	budget, now := leased(b, 1e8)
	b.ReportAllocs()
	for b.Loop() {
		if budget.Take(now, 1) {
			budget.GiveBack(now, 1)
		}
	}
}

func BenchmarkRefuse(b *testing.B) {
	budget, now := leased(b, 0)
	b.ReportAllocs()
	for b.Loop() {
		budget.Take(now, 1)
	}
}

func BenchmarkRefuseParallel(b *testing.B) {
	budget, now := leased(b, 0)
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			budget.Take(now, 1)
		}
	})
}

func BenchmarkTakeGiveBackParallel(b *testing.B) {
	budget, now := leased(b, 1e8)
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			if budget.Take(now, 1) {
				budget.GiveBack(now, 1)
			}
		}
	})
}

func TestDecisionsDoNotAllocate(t *testing.T) {
	budget, now := leased(t, 1e6)
	assert.True(t, budget.Take(now, 1))
	assert.Zero(t, testing.AllocsPerRun(100, func() {
		budget.Take(now, 1)
		budget.GiveBack(now, 1)
		budget.Settle(now, 1)
		budget.Take(now, 1<<30)
		budget.RetryAfter(now, 1)
		budget.Rate()
	}))
}
