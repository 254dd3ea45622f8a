package core_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/fleet"
	fleetmemory "github.com/penstock-go/penstock/fleet/memory"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/rules"
)

// BenchmarkGuardOfAFleetRule is a call under one rule, which is for the whole fleet or for
// the instance.
func BenchmarkGuardOfAFleetRule(b *testing.B) {
	const limit = 1e8
	own := quota(limit, "")
	own.Scope = ""
	closed := own
	closed.Limit = 0
	for _, test := range []struct {
		name string
		rule flow.Rule
	}{
		{"instance passes", own},
		{"lease passes", quota(limit, fleet.ModeLease)},
		{"window passes", quota(limit, fleet.ModeWindow)},
		{"instance refuses", closed},
		{"lease refuses", quota(0, fleet.ModeLease)},
	} {
		b.Run(test.name, func(b *testing.B) {
			e := core.New(core.Config{Logger: quiet, Fleet: fleet.Config{Backend: fleetmemory.New(clock.System())}})
			defer e.Close()
			require.NoError(b, e.Load(rules.Set{Flow: []flow.Rule{test.rule}}))
			ctx := context.Background()
			for start := time.Now(); time.Since(start) < 300*time.Millisecond; { // until enough is leased
				guard, _ := e.Entry(ctx, "r")
				guard.Exit()
			}
			b.ReportAllocs()
			passed := 0
			for b.Loop() {
				guard, err := e.Entry(ctx, "r")
				guard.Exit()
				if err == nil {
					passed++
				}
			}
			b.ReportMetric(float64(passed)/float64(b.N), "passed/op")
		})
	}
}
