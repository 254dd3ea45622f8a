package isolation_test

import (
	"fmt"
	"time"

	"github.com/penstock-go/penstock/isolation"
)

func ExampleRule() {
	rule := isolation.Kind().WithDefaults(isolation.Rule{Resource: "reports:render", Limit: 10, MaxWait: 2 * time.Second})
	fmt.Printf("%s: %d at once, %d wait up to %v, %s\n", rule.Name, rule.Limit, rule.MaxQueue, rule.MaxWait, rule.Order)
	// Output: reports:render: 10 at once, 1000 wait up to 2s, fifo
}

func ExampleKind_faults() {
	for _, fault := range isolation.Kind().Faults(isolation.Rule{Resource: "reports:render", Limit: -1, MaxQueue: 100}) {
		fmt.Println(fault.Field, fault.Message)
	}
	// Output:
	// limit is -1: must be from 0 (blocks all) to 1000000 calls under way
	// maxQueue has no effect without maxWait: remove it or set maxWait
}
