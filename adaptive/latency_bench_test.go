package adaptive_test

import (
	"testing"
	"time"

	"github.com/penstock-go/penstock/adaptive"
	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/internal/optional"
	"github.com/penstock-go/penstock/rule"
)

// BenchmarkLatency is a call of a service that is not overloaded, and one that is refused.
func BenchmarkLatency(b *testing.B) {
	newLimiter := func() latencyLimiter {
		r := adaptive.Kind().WithDefaults(adaptive.Rule{Resource: "r", InitialLimit: 2})
		return adaptive.Kind().Of(r).NewLimiter(rule.Env{Version: 1, Seed: 1}).(latencyLimiter)
	}
	call := rule.Call{Tokens: 1, Attribute: rule.String("mobile-app")}
	call.SetCaller(rule.PriorityNormal, true)
	b.Run("pass", func(b *testing.B) {
		l := newLimiter()
		b.ReportAllocs()
		for b.Loop() {
			call.Now += 100
			t, _ := l.Acquire(call)
			l.Done(t, rule.Exit{Now: call.Now + 50, Start: call.Now})
		}
	})
	b.Run("pass, one of several resources", func(b *testing.B) {
		r := adaptive.Kind().WithDefaults(adaptive.Rule{Inbound: true})
		shared := adaptive.Kind().Of(r).NewLimiter(rule.Env{Version: 1, Seed: 1}).(optional.Divided)
		l := shared.For("r").(latencyLimiter)
		b.ReportAllocs()
		for b.Loop() {
			call.Now += 100
			t, _ := l.Acquire(call)
			l.Done(t, rule.Exit{Now: call.Now + 50, Start: call.Now})
		}
	})
	b.Run("refuse", func(b *testing.B) {
		l := newLimiter()
		l.Acquire(call)
		l.Acquire(call)
		for {
			if _, decision := l.Acquire(call); decision == rule.Block {
				break
			}
			l.Join(call, rule.Patience{Since: call.Now, Until: endless, Wake: func() {}})
		}
		b.ReportAllocs()
		for b.Loop() {
			call.Now += clock.Instant(100)
			l.Acquire(call)
		}
	})
	b.Run("refuse while callers are told apart", func(b *testing.B) {
		l := newLimiter()
		overload(l, &call)
		b.ReportAllocs()
		for b.Loop() {
			call.Now += clock.Instant(time.Nanosecond)
			l.Acquire(call)
		}
	})
}

// overload makes so many calls, for so long, that the limiter tells callers apart.
func overload(l latencyLimiter, call *rule.Call) {
	type under struct {
		t     rule.Ticket
		start clock.Instant
	}
	var passed []under
	var waiting []rule.Waiter
	for i := range 20_000 {
		call.Now += clock.Instant(time.Millisecond)
		call.Attribute = rule.Int(int64(i % 100))
		t, decision := l.Acquire(*call)
		if decision == rule.Wait {
			var w rule.Waiter
			if w, t, decision = l.Join(*call, rule.Patience{Since: call.Now, Until: endless, Wake: func() {}}); decision == rule.Wait {
				waiting = append(waiting, w)
			}
		}
		if decision == rule.Pass {
			passed = append(passed, under{t, call.Now})
		}
		if i%3 == 0 && len(passed) > 0 {
			l.Done(passed[0].t, rule.Exit{Now: call.Now, Start: passed[0].start})
			passed = passed[1:]
		}
		kept := waiting[:0]
		for _, w := range waiting {
			switch t, _, decision := w.Poll(call.Now); decision {
			case rule.Pass:
				passed = append(passed, under{t, call.Now})
			case rule.Wait:
				kept = append(kept, w)
			}
		}
		waiting = kept
	}
}
