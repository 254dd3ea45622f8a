package clock_test

import (
	"testing"
	"time"

	"github.com/penstock-go/penstock/clock"
)

func BenchmarkNow(b *testing.B) {
	begin := time.Now()
	coarse := clock.NewCoarse(b.Context(), 0)
	b.Run("System", func(b *testing.B) { measureNow(b, clock.System()) })
	b.Run("Coarse", func(b *testing.B) { measureNow(b, coarse) })
	b.Run("time.Since", func(b *testing.B) {
		for b.Loop() {
			_ = time.Since(begin)
		}
	})
}

func measureNow(b *testing.B, c clock.Clock) {
	b.Helper()
	b.ReportAllocs()
	for b.Loop() {
		c.Now()
	}
}
