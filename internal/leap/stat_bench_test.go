package leap_test

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/penstock-go/penstock/internal/leap"
)

func BenchmarkWindowTake(b *testing.B) {
	open := func(ceiling int64) *leap.Window {
		w := leap.NewWindow(10, 0)
		w.Open(0, ceiling)
		return w
	}
	b.Run("full", func(b *testing.B) {
		w := open(0)
		b.ReportAllocs()
		for b.Loop() {
			w.Take(0, 1)
		}
	})
	b.Run("take and give back", func(b *testing.B) {
		w := open(1)
		b.ReportAllocs()
		for b.Loop() {
			w.Take(0, 1)
			w.TryGiveBack(0, 1)
		}
	})
}

func BenchmarkHistogramRecord(b *testing.B) {
	b.Run("serial", func(b *testing.B) {
		var h leap.Histogram
		b.ReportAllocs()
		for b.Loop() {
			h.Record(3 * time.Millisecond)
		}
	})
	b.Run("parallel", func(b *testing.B) {
		var h leap.Histogram
		var worker atomic.Int64
		b.ReportAllocs()
		b.RunParallel(func(pb *testing.PB) {
			d := time.Duration(worker.Add(1)) * time.Millisecond
			for pb.Next() {
				h.Record(d)
			}
		})
	})
}

func BenchmarkNodeCall(b *testing.B) {
	call := func(n *leap.Node, i int) {
		now := epoch.Add(time.Duration(i) * time.Microsecond) // other seconds come
		n.Pass(now, 1)
		n.Done(now, now.Add(time.Millisecond), false)
	}
	b.Run("serial", func(b *testing.B) {
		var n leap.Node
		b.ReportAllocs()
		for i := 0; b.Loop(); i++ {
			call(&n, i)
		}
	})
	b.Run("parallel", func(b *testing.B) {
		var n leap.Node
		b.ReportAllocs()
		b.RunParallel(func(pb *testing.PB) {
			for i := 0; pb.Next(); i++ {
				call(&n, i)
			}
		})
	})
}
