package flow_test

import (
	"testing"
	"time"

	"github.com/penstock-go/penstock/flow"
)

func BenchmarkBucketTake(b *testing.B) {
	for name, rule := range map[string]flow.Rule{
		"plain": bucket(1000, 10), "overdraft": overdraft(1000, 10), "warming up": warmingBucket(1000, time.Second),
	} {
		rule.MaxWait = 0
		compiled := compile(b, rule, 1)
		b.Run(name, func(b *testing.B) {
			q := flow.NewQueue(compiled, epoch)
			now := epoch
			b.ReportAllocs()
			for b.Loop() {
				now = now.Add(time.Millisecond)
				q.Take(compiled, now, 1)
			}
		})
		b.Run(name+", refused in parallel", func(b *testing.B) {
			q := flow.NewQueue(compiled, epoch)
			b.ReportAllocs()
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					q.Take(compiled, epoch, 1)
				}
			})
		})
	}
}

func BenchmarkBucketStatus(b *testing.B) {
	for name, rule := range map[string]flow.Rule{"plain": bucket(1000, 10), "warming up": warmingBucket(1000, time.Second)} {
		q := flow.NewQueue(compile(b, rule, 1), epoch)
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				q.Status(epoch)
			}
		})
	}
}

func BenchmarkWindowCheckAndCount(b *testing.B) {
	compiled := compile(b, fixed(flow.MaxLimit, 24*time.Hour), 1)
	w := flow.NewWindow(compiled, epoch)
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			w.Check(compiled, epoch, 1)
			w.Count(compiled, epoch, 1)
		}
	})
}
