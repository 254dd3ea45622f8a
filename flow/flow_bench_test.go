package flow_test

import (
	"testing"
	"time"

	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/rule"
)

func BenchmarkWindowTake(b *testing.B) {
	for name, limit := range map[string]float64{"pass": flow.MaxLimit, "full": 0} {
		compiled := compile(b, reject(limit), 1)
		b.Run(name, func(b *testing.B) {
			w := flow.NewWindow(compiled, epoch)
			b.ReportAllocs()
			for b.Loop() {
				w.Take(compiled, epoch, 1)
			}
		})
		b.Run(name+" in parallel", func(b *testing.B) {
			w := flow.NewWindow(compiled, epoch)
			b.ReportAllocs()
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					w.Take(compiled, epoch, 1)
				}
			})
		})
	}
	b.Run("each in another bucket", func(b *testing.B) {
		compiled := compile(b, reject(5), 1)
		w := flow.NewWindow(compiled, epoch)
		now := epoch
		b.ReportAllocs()
		for b.Loop() {
			now = now.Add(100 * time.Millisecond)
			w.Take(compiled, now, 1)
		}
	})
	b.Run("following a signal", func(b *testing.B) {
		compiled, signal := following(b, memory(reject(flow.MaxLimit), 100))
		signal.Store(0.8)
		w := flow.NewWindow(compiled, epoch)
		b.ReportAllocs()
		for b.Loop() {
			w.Take(compiled, epoch, 1)
		}
	})
	b.Run("warming up", func(b *testing.B) {
		compiled := compile(b, warming(), 1)
		w := flow.NewWindow(compiled, epoch)
		b.ReportAllocs()
		for b.Loop() {
			w.Take(compiled, epoch, 1)
		}
	})
}

func BenchmarkWindowGiveBack(b *testing.B) {
	compiled := compile(b, reject(5), 1)
	w := flow.NewWindow(compiled, epoch)
	b.ReportAllocs()
	for b.Loop() {
		w.Take(compiled, epoch, 1)
		w.GiveBack(compiled, epoch, 1)
	}
}

func BenchmarkQueueTake(b *testing.B) {
	compiled := compile(b, throttle(1000, 0), 1)
	b.Run("pass", func(b *testing.B) {
		q := flow.NewQueue(compiled, epoch)
		now := epoch
		b.ReportAllocs()
		for b.Loop() {
			now = now.Add(time.Millisecond)
			q.Take(compiled, now, 1)
		}
	})
	b.Run("refused", func(b *testing.B) {
		q := flow.NewQueue(compiled, epoch)
		b.ReportAllocs()
		for b.Loop() {
			q.Take(compiled, epoch, 1)
		}
	})
	b.Run("refused in parallel", func(b *testing.B) {
		q := flow.NewQueue(compiled, epoch)
		b.ReportAllocs()
		b.RunParallel(func(pb *testing.PB) {
			for pb.Next() {
				q.Take(compiled, epoch, 1)
			}
		})
	})
}

func BenchmarkQueueJoin(b *testing.B) {
	compiled := compile(b, throttle(1000, time.Hour), 1)
	q := flow.NewQueue(compiled, epoch)
	w := unwoken()
	now := epoch
	b.ReportAllocs()
	for b.Loop() {
		w.Again(func() {})
		if _, decision := q.Join(compiled, now, 1, time.Hour, w); decision == rule.Wait {
			now = now.Add(time.Millisecond)
			q.Poll(now, w)
		}
	}
}
