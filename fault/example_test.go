package fault_test

import (
	"fmt"
	"time"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/fault"
	"github.com/penstock-go/penstock/rule"
)

func ExampleRule() {
	start := time.Date(2030, time.May, 31, 23, 59, 59, 0, time.UTC)
	slow := fault.Rule{
		Resource: "pay:charge", Percent: 5, Delay: 200 * time.Millisecond, Abort: fault.Abort{HTTP: 503}, Until: start.Add(time.Second),
	}
	limiter := fault.Kind().Of(slow).WithDefaults().NewLimiter(rule.Env{
		Now: clock.Instant(start.UnixNano()), Seed: 1, Changed: func(at clock.Instant, from, to, _ string) {
			fmt.Println(at.Time().Format(time.TimeOnly), "from", from, "to", to)
		},
	})
	for _, at := range []time.Time{start, start.Add(time.Second)} {
		chosen := 0
		for number := range uint32(1000) {
			call := rule.Call{Now: clock.Instant(at.UnixNano()), Tokens: 1}
			call.SetNumber(number)
			if _, decision := limiter.Acquire(call); decision == rule.Wait {
				chosen++
			}
		}
		fmt.Println(at.Format(time.TimeOnly), "chosen to be delayed:", chosen, "of 1000")
	}
	// Output:
	// 23:59:59 chosen to be delayed: 57 of 1000
	// 00:00:00 from active to ended
	// 00:00:00 chosen to be delayed: 0 of 1000
}

func ExampleKind_faults() {
	for _, mistake := range fault.Kind().Faults(fault.Rule{Resource: "pay:charge", Percent: 5, Delay: time.Hour}) {
		fmt.Println(mistake.Field, mistake.Message)
	}
	// Output:
	// delay is 1h0m0s: must be from 1ms to 10m0s
	// until is missing: write when the rule ends, such as 2030-06-01T00:00:00Z; nothing is injected from then on
}
