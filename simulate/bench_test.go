package simulate_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/simulate"
)

// A minute of 10,000 calls a second.
func BenchmarkAMinute(b *testing.B) {
	warmUp := flow.WarmUp{Period: 10 * time.Second}
	rules := map[string]flow.Rule{
		"window":   {Limit: 5000, WarmUp: warmUp},
		"throttle": {Limit: 5000, WarmUp: warmUp, Algorithm: flow.Throttle, MaxWait: 5 * time.Second},
		"bucket":   {Limit: 5000, WarmUp: warmUp, Algorithm: flow.TokenBucket, MaxWait: 5 * time.Second},
	}
	load := streams(simulate.Stream{Rate: 10_000, ServiceTime: 10 * time.Millisecond})
	for name, rule := range rules {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				_, err := simulate.Run(b.Context(), flowRules(rule), load, simulate.Options{Duration: time.Minute})
				require.NoError(b, err)
			}
		})
	}
}
