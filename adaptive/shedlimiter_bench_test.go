package adaptive_test

import (
	"testing"

	"github.com/penstock-go/penstock/adaptive"
	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/rule"
)

// signals are readings that a test sets.
type signals map[rule.Signal]*rule.Reading

func (s signals) Reading(of rule.Signal) *rule.Reading {
	if s[of] == nil {
		s[of] = new(rule.Reading)
	}
	return s[of]
}

// BenchmarkPassAndDone is a call of a service that is not overloaded.
func BenchmarkPassAndDone(b *testing.B) {
	for _, r := range []adaptive.Rule{
		{Strategy: adaptive.Threshold, CPU: 0.9},
		{Strategy: adaptive.Threshold, Concurrency: 1000, QPS: 1e9},
	} {
		name := string(r.Strategy)
		if r.QPS > 0 {
			name += " with qps"
		}
		readings := signals{}
		readings.Reading(rule.SignalCPU).Store(0.5)
		l := adaptive.Kind().Of(adaptive.Kind().WithDefaults(r)).NewLimiter(rule.Env{Signals: readings, Version: 1}).(rule.Finisher)
		var call rule.Call
		call.Tokens = 1
		call.SetCaller(rule.PriorityNormal, true)
		b.Run(name+"/serial", func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				call.Now += 100
				t, _ := l.Acquire(call)
				l.Done(t, rule.Exit{Now: call.Now + 50, Start: call.Now})
			}
		})
		b.Run(name+"/parallel", func(b *testing.B) {
			b.ReportAllocs()
			b.SetParallelism(4)
			b.RunParallel(func(pb *testing.PB) {
				call := call
				for pb.Next() {
					call.Now += 100
					t, _ := l.Acquire(call)
					l.Done(t, rule.Exit{Now: call.Now + 50, Start: call.Now})
				}
			})
		})
	}
}

// BenchmarkRefuse refuses calls for the limit, and for the threshold of what is shed.
func BenchmarkRefuse(b *testing.B) {
	var call rule.Call
	call.Tokens = 1
	call.Attribute = rule.String("mobile-app")
	call.SetCaller(rule.PriorityNormal, true)
	b.Run("limit", func(b *testing.B) {
		l := adaptive.Kind().Of(adaptive.Kind().WithDefaults(adaptive.Rule{Strategy: adaptive.Threshold, Concurrency: 1})).NewLimiter(rule.Env{Version: 1})
		l.Acquire(call)
		b.ReportAllocs()
		for b.Loop() {
			call.Now += clock.Instant(100)
			l.Acquire(call)
		}
	})
	b.Run("threshold", func(b *testing.B) {
		l := adaptive.Kind().Of(adaptive.Kind().WithDefaults(adaptive.Rule{Strategy: adaptive.Threshold, QPS: 1000})).NewLimiter(rule.Env{Version: 1})
		b.ReportAllocs()
		for b.Loop() {
			call.Now += clock.Instant(100)
			l.Acquire(call)
		}
	})
}
