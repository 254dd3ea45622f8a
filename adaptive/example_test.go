package adaptive_test

import (
	"fmt"

	"github.com/penstock-go/penstock/adaptive"
)

func ExampleRule() {
	rule := adaptive.Kind().WithDefaults(adaptive.Rule{})
	fmt.Printf("%s: %s, %d to %d at once, waits about %v\n", rule.Name, rule.Strategy, rule.MinLimit, rule.MaxLimit, rule.MaxDelay)
	// Output: inbound: latency, 2 to 10000 at once, waits about 100ms
}

func ExampleKind_faults() {
	for _, fault := range adaptive.Kind().Faults(adaptive.Rule{MaxLimit: 10, InitialLimit: 50, Memory: 0.9}) {
		fmt.Println(fault.Field, fault.Message)
	}
	// Output:
	// initialLimit is 50: must be from minLimit, 2, to maxLimit, 10
	// memory has no effect with strategy "latency": remove it, or set strategy to "threshold"
}
