package flow_test

import (
	"fmt"
	"time"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/flow"
)

func ExampleRule() {
	rule := flow.Kind().WithDefaults(flow.Rule{Resource: "orders:create", Limit: 1000})
	fmt.Printf("%s: %v per %v in %d buckets, %s\n", rule.Name, rule.Limit, rule.Window, rule.Buckets, rule.Algorithm)
	// Output: orders:create: 1000 per 1s in 10 buckets, slidingWindow
}

func ExampleKind_faults() {
	rule := flow.Rule{Resource: "orders:create", Limit: -1, MaxWait: time.Second}
	for _, fault := range flow.Kind().Faults(rule) {
		fmt.Println(fault.Field, fault.Message)
	}
	// Output:
	// limit is -1: must be from 0 (blocks all) to 1000000000 tokens per window
	// maxWait has no effect on a window: remove it, or set algorithm to "throttle" or "tokenBucket"
}

// A call that has to wait is told how long, and can give its turn back.
func ExampleLimiter_Reserve() {
	limiter, err := flow.NewLimiter(flow.Rule{Limit: 10, Algorithm: flow.Throttle, MaxWait: time.Second},
		flow.LimiterOptions{Clock: clock.NewVirtual(time.Unix(0, 0))})
	if err != nil {
		fmt.Println(err)
	}
	for range 3 {
		booking := limiter.Reserve(1)
		fmt.Println(booking.OK(), booking.Delay())
	}
	// Output:
	// true 0s
	// true 100ms
	// true 200ms
}

func ExampleRule_fixedWindow() {
	rule := flow.Rule{
		Resource: "reports:export", Limit: 100, Window: 24 * time.Hour, Algorithm: flow.FixedWindow, Origin: "mobile",
	}
	fmt.Println(flow.Kind().Faults(rule) == nil)
	// Output: true
}
