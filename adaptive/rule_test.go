package adaptive_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/penstock-go/penstock/adaptive"
	"github.com/penstock-go/penstock/rule"
)

func TestWithDefaultsFillsIn(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct{ rule, want adaptive.Rule }{
		"all inbound calls": {
			adaptive.Rule{},
			adaptive.Rule{
				Name: "inbound", Match: "*", Shared: true, Inbound: true, Strategy: adaptive.Latency, FairBy: "origin",
				MaxDelay: 100 * time.Millisecond, MinLimit: 2, MaxLimit: 10_000, InitialLimit: 20,
			},
		},
		"one resource, all calls": {
			adaptive.Rule{Resource: "r", MaxLimit: 5},
			adaptive.Rule{
				Name: "r", Resource: "r", Strategy: adaptive.Latency, FairBy: "origin",
				MaxDelay: 100 * time.Millisecond, MinLimit: 2, MaxLimit: 5, InitialLimit: 5,
			},
		},
		"each inbound resource": {
			adaptive.Rule{Match: "*", Inbound: true, MinLimit: 30},
			adaptive.Rule{
				Name: "*", Match: "*", Inbound: true, Strategy: adaptive.Latency, FairBy: "origin",
				MaxDelay: 100 * time.Millisecond, MinLimit: 30, MaxLimit: 10_000, InitialLimit: 30,
			},
		},
		"threshold": {
			adaptive.Rule{Name: "n", Resource: "r", Strategy: adaptive.Threshold, Load: 3, FairBy: "user"},
			adaptive.Rule{Name: "n", Resource: "r", Strategy: adaptive.Threshold, Load: 3, FairBy: "user"},
		},
	} {
		got := adaptive.Kind().WithDefaults(test.rule)
		assert.Equal(t, test.want, got, name)
		assert.Equal(t, got, adaptive.Kind().WithDefaults(got), "%s: what is complete stays as it is", name)
		assert.Empty(t, adaptive.Kind().Faults(test.rule), name)
	}
}

func TestValidateReportsEveryMistake(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		rule adaptive.Rule
		want []rule.Fault
	}{
		"an unknown strategy": {adaptive.Rule{Strategy: "vegas"}, []rule.Fault{
			{Field: "strategy", Message: `is "vegas": must be "latency" or "threshold"`},
		}},
		"out of range": {adaptive.Rule{MaxDelay: time.Hour, MinLimit: -1, MaxLimit: 2_000_000}, []rule.Fault{
			{Field: "maxDelay", Message: "is 1h0m0s: must be from 1ms to 1m0s"},
			{Field: "minLimit", Message: "is -1: must be from 1 to 1000000 calls under way"},
			{Field: "maxLimit", Message: "is 2000000: must be from 1 to 1000000 calls under way"},
		}},
		"bounds that contradict each other": {adaptive.Rule{MinLimit: 50, MaxLimit: 40, InitialLimit: 45}, []rule.Fault{
			{Field: "maxLimit", Message: "is 40: must be at least minLimit, 50"},
		}},
		"fields of another strategy": {adaptive.Rule{Strategy: adaptive.Threshold, MaxDelay: time.Second, QPS: 5, CPU: 2}, []rule.Fault{
			{Field: "maxDelay", Message: `has no effect with strategy "threshold": remove it, or set strategy to "latency"`},
			{Field: "cpu", Message: "is 2: must be a share from more than 0 to 1, such as 0.8"},
		}},
		"a threshold without its strategy": {adaptive.Rule{QPS: 5}, []rule.Fault{
			{Field: "qps", Message: `has no effect with strategy "latency": remove it, or set strategy to "threshold"`},
		}},
		"no threshold": {adaptive.Rule{Strategy: adaptive.Threshold}, []rule.Fault{
			{Field: "strategy", Message: `is "threshold" without a threshold: give at least one of cpu, load, memory, schedulerDelay, concurrency, qps and avgRT`},
		}},
	} {
		assert.Equal(t, test.want, adaptive.Kind().Faults(test.rule), name)
	}
}
