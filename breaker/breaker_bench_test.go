package breaker_test

import (
	"testing"
	"time"

	"github.com/penstock-go/penstock/breaker"
	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/rule"
)

func newBenchmarked(b *testing.B) rule.Finisher {
	b.Helper()
	b.ReportAllocs()
	r := breaker.Kind().WithDefaults(breaker.Rule{Resource: "r", Threshold: 0.5})
	env := rule.Env{Version: 1, Now: epoch, Changed: func(clock.Instant, string, string, string) {}}
	return breaker.Kind().Of(r).NewLimiter(env).(rule.Finisher)
}

func BenchmarkAcquireClosed(b *testing.B) {
	l := newBenchmarked(b)
	for b.Loop() {
		_, _ = l.Acquire(rule.Call{Now: epoch, Tokens: 1})
	}
}

func BenchmarkAcquireAndDone(b *testing.B) {
	l := newBenchmarked(b)
	now := epoch
	for b.Loop() {
		ticket, _ := l.Acquire(rule.Call{Now: now, Tokens: 1})
		now += 100 // a bucket has ten million calls
		l.Done(ticket, rule.Exit{Now: now, Start: now - 100})
	}
}

func BenchmarkAcquireAndDoneInParallel(b *testing.B) {
	l := newBenchmarked(b)
	b.RunParallel(func(pb *testing.PB) {
		now := epoch
		for pb.Next() {
			ticket, _ := l.Acquire(rule.Call{Now: now, Tokens: 1})
			l.Done(ticket, rule.Exit{Now: now, Start: now})
		}
	})
}

func BenchmarkRefuseOpen(b *testing.B) {
	l := newBenchmarked(b)
	l.(rule.Controllable).Control(epoch, breaker.Open)
	for b.Loop() {
		_, _ = l.Acquire(rule.Call{Now: epoch, Tokens: 1})
	}
}

func BenchmarkRefuseOpenAndRetryAfter(b *testing.B) {
	l := newBenchmarked(b)
	for range 20 {
		ticket, _ := l.Acquire(rule.Call{Now: epoch, Tokens: 1})
		l.Done(ticket, rule.Exit{Now: epoch, Start: epoch, Failed: true})
	}
	now := epoch.Add(time.Second)
	for b.Loop() {
		_, _ = l.Acquire(rule.Call{Now: now, Tokens: 1})
		_ = l.RetryAfter(rule.Call{Now: now, Tokens: 1})
	}
}
