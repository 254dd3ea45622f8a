package penstockprom_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/penstock-go/penstock/core"
	penstockprom "github.com/penstock-go/penstock/metrics/prometheus"
)

// BenchmarkScrape measures a scrape by the number of resources of the engine.
func BenchmarkScrape(b *testing.B) {
	for _, resources := range []int{10, 500, 10_000} {
		b.Run(fmt.Sprint(resources), func(b *testing.B) {
			s := newService(b, core.Config{})
			defer s.Close()
			for i := range resources {
				for step := range 20 {
					s.call(fmt.Sprint(i), time.Duration(step*step)*time.Microsecond, nil)
				}
			}
			registry := prometheus.NewRegistry()
			registry.MustRegister(penstockprom.NewCollector(s.Engine, penstockprom.Options{}))
			b.ReportAllocs()
			for b.Loop() {
				_, _ = registry.Gather()
			}
		})
	}
}
