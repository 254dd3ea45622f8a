package outgoing_test

import (
	"testing"
	"time"

	"github.com/penstock-go/penstock/adapters/outgoing"
	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/rule"
)

func newThrottle(b *testing.B) *outgoing.Throttle {
	b.Helper()
	throttle, err := outgoing.NewThrottle(outgoing.ThrottleOptions{Clock: clock.System()})
	if err != nil {
		b.Fatal(err)
	}
	return throttle
}

func BenchmarkPassed(b *testing.B) {
	throttle := newThrottle(b)
	ctx := b.Context()
	b.ReportAllocs()
	for b.Loop() {
		call, _ := outgoing.Begin(ctx, throttle, nil, host, rule.PriorityNormal)
		call.End(outgoing.Answer{Result: outgoing.Accepted})
	}
}

func BenchmarkPassedWithBudget(b *testing.B) {
	throttle := newThrottle(b)
	budgets, err := outgoing.NewRetryBudgets(outgoing.RetryOptions{})
	if err != nil {
		b.Fatal(err)
	}
	ctx := b.Context()
	b.ReportAllocs()
	for b.Loop() {
		call, _ := outgoing.Begin(ctx, throttle, budgets, host, rule.PriorityNormal)
		call.End(outgoing.Answer{Result: outgoing.Accepted})
	}
}

func BenchmarkPassedParallel(b *testing.B) {
	throttle := newThrottle(b)
	ctx := b.Context()
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			call, _ := outgoing.Begin(ctx, throttle, nil, host, rule.PriorityNormal)
			call.End(outgoing.Answer{Result: outgoing.Accepted})
		}
	})
}

func BenchmarkThrottled(b *testing.B) {
	throttle := newThrottle(b)
	ctx := b.Context()
	b.ReportAllocs()
	for b.Loop() {
		if call, err := outgoing.Begin(ctx, throttle, nil, host, rule.PriorityNormal); err == nil {
			call.End(outgoing.Answer{Result: outgoing.Rejected})
		}
	}
}

func BenchmarkPaused(b *testing.B) {
	throttle := newThrottle(b)
	ctx := b.Context()
	call, _ := outgoing.Begin(ctx, throttle, nil, host, rule.PriorityNormal)
	call.End(outgoing.Answer{Result: outgoing.Rejected, RetryAfter: time.Minute})
	b.ReportAllocs()
	for b.Loop() {
		if _, err := outgoing.Begin(ctx, throttle, nil, host, rule.PriorityNormal); err == nil {
			b.Fatal("sent")
		}
	}
}
