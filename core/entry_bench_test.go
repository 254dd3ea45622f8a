package core_test

import (
	"context"
	"testing"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/flow"
)

// free is a clock that costs nothing to read: what is measured on it is all the
// rest.
type free struct {
	clock.Clock
	now clock.Instant
}

func (c *free) Now() clock.Instant {
	c.now++
	return c.now
}

// BenchmarkEntry is a call by name: entered and, if it passes, exited.
func BenchmarkEntry(b *testing.B) {
	tests := []struct {
		name string
		rule flow.Rule
	}{
		{"no rule", flow.Rule{Resource: "other", Limit: 1}},
		{"window passes", flow.Rule{Resource: "r", Limit: flow.MaxLimit}},
		{"window refuses", flow.Rule{Resource: "r"}},
		{"throttle passes", throttle("r", flow.MaxLimit, 0)},
		{"throttle refuses", throttle("r", 1, 0)},
		{"bucket passes", flow.Rule{Resource: "r", Limit: flow.MaxLimit, Algorithm: flow.TokenBucket}},
		{"bucket refuses", flow.Rule{Resource: "r", Algorithm: flow.TokenBucket}},
	}
	for _, test := range tests {
		measure := func(name string, c clock.Clock) {
			b.Run(name, func(b *testing.B) {
				engine := core.New(core.Config{Clock: c, Logger: quiet})
				defer engine.Close()
				load(b, engine, test.rule)
				b.ReportAllocs()
				for b.Loop() {
					if guard, err := engine.Entry(context.Background(), "r"); err == nil {
						guard.Exit()
					}
				}
			})
		}
		measure(test.name, clock.System())
		measure(test.name+", but for the clock", &free{clock.System(), clock.System().Now()})
	}
}
