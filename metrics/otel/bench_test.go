package penstockotel_test

import (
	"context"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/flow"
	penstockotel "github.com/penstock-go/penstock/metrics/otel"
	"github.com/penstock-go/penstock/rules"
)

// BenchmarkCollect measures a collection by the number of resources with a rule each.
func BenchmarkCollect(b *testing.B) {
	for _, resources := range []int{100, 10_000} {
		b.Run(strconv.Itoa(resources), func(b *testing.B) {
			var set rules.Set
			for i := range resources {
				name := "r" + strconv.Itoa(i)
				set.Flow = append(set.Flow, flow.Rule{Name: name, Resource: name, Limit: 10})
			}
			s := newService(b, set, penstockotel.Options{}, core.Config{MaxResources: 2 * resources})
			for i := range resources {
				s.calls("r"+strconv.Itoa(i), 1)
			}
			var all metricdata.ResourceMetrics
			b.ReportAllocs()
			for b.Loop() {
				require.NoError(b, s.reader.Collect(context.Background(), &all))
			}
		})
	}
}

// BenchmarkEntry measures calls beside the observer: refused ones without a span, and those
// that pass, which it never sees.
func BenchmarkEntry(b *testing.B) {
	for name, limit := range map[string]float64{"passed": 1e9, "refused": 0} {
		b.Run(name, func(b *testing.B) {
			s := newService(b, rules.Set{Flow: []flow.Rule{{Name: "r", Resource: "r", Limit: limit}}}, penstockotel.Options{}, core.Config{})
			ctx := context.Background()
			b.ReportAllocs()
			for b.Loop() {
				guard, _ := s.Entry(ctx, "r")
				guard.Exit()
			}
		})
	}
}
