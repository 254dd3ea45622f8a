package core_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/isolation"
	"github.com/penstock-go/penstock/rules"
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

// BenchmarkEntryOfSeveralRules is a call that several rules apply to.
func BenchmarkEntryOfSeveralRules(b *testing.B) {
	many := func(n int, rule flow.Rule) (rules []flow.Rule) {
		for i := range n {
			rule.Name, rule.Resource = fmt.Sprint(rule.Algorithm, i), "r"
			rules = append(rules, rule)
		}
		return rules
	}
	window := flow.Rule{Limit: flow.MaxLimit}
	closed := flow.Rule{Name: "closed", Resource: "r"}
	tests := []struct {
		name  string
		rules []flow.Rule
	}{
		{"two windows pass", many(2, window)},
		{"ten windows pass", many(10, window)},
		{"a window before nine refuses", append([]flow.Rule{closed}, many(9, window)...)},
		{"a window behind nine refuses", append(many(9, window), closed)},
		{"throttle and window pass", append(many(1, window), throttle("r", flow.MaxLimit, 0))},
		{"throttle passes and window refuses", []flow.Rule{closed, throttle("r", flow.MaxLimit, 0)}},
		{"two throttles pass", many(2, throttle("r", flow.MaxLimit, 0))},
	}
	for _, test := range tests {
		b.Run(test.name, func(b *testing.B) {
			engine := core.New(core.Config{Clock: &free{clock.System(), clock.System().Now()}, Logger: quiet})
			defer engine.Close()
			load(b, engine, test.rules...)
			b.ReportAllocs()
			for b.Loop() {
				if guard, err := engine.Entry(context.Background(), "r"); err == nil {
					guard.Exit()
				}
			}
		})
	}
}

// BenchmarkEntryOfManyRules is a call that so many rules with tickets apply to.
func BenchmarkEntryOfManyRules(b *testing.B) {
	for _, count := range []int{1, 8, 9, 50, 200} {
		b.Run(fmt.Sprint(count), func(b *testing.B) {
			engine := core.New(core.Config{Clock: &free{clock.System(), clock.System().Now()}, Logger: quiet})
			defer engine.Close()
			var set rules.Set
			for i := range count {
				set.Isolation = append(set.Isolation, isolation.Rule{Name: fmt.Sprint(i), Resource: "r", Limit: 1000})
			}
			require.NoError(b, engine.Load(set))
			b.ReportAllocs()
			for b.Loop() {
				if guard, err := engine.Entry(context.Background(), "r"); err == nil {
					guard.Exit()
				}
			}
		})
	}
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
