package flow_test

import (
	"fmt"
	"time"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/rule"
)

func ExampleRule() {
	rule := flow.Rule{Resource: "orders:create", Limit: 1000}.WithDefaults()
	fmt.Printf("%s: %v per %v in %d buckets, %s\n", rule.Name, rule.Limit, rule.Window, rule.Buckets, rule.Algorithm)
	// Output: orders:create: 1000 per 1s in 10 buckets, slidingWindow
}

func ExampleRule_Validate() {
	rule := flow.Rule{Resource: "orders:create", Limit: -1, MaxWait: time.Second}
	for _, fault := range rule.Validate() {
		fmt.Println(fault.Field, fault.Message)
	}
	// Output:
	// limit is -1: must be from 0 (blocks all) to 1000000000 tokens per window
	// maxWait has no effect on a window: remove it, or set algorithm to "throttle" or "tokenBucket"
}

func ExampleWindow() {
	r := flow.Rule{Resource: "orders:create", Limit: 2}
	compiled := flow.Compile(r.WithDefaults(), 1)
	now := clock.Instant(0)
	window := flow.NewWindow(compiled, now)
	for range 3 {
		fmt.Println(window.Take(compiled, now, 1) == rule.Pass)
	}
	fmt.Println("retry after", window.RetryAfter(now, 1))
	// Output:
	// true
	// true
	// false
	// retry after 1s
}

func ExampleQueue() {
	r := flow.Rule{Resource: "orders:create", Limit: 10, Algorithm: flow.Throttle, MaxWait: time.Second}
	compiled := flow.Compile(r.WithDefaults(), 1)
	now := clock.Instant(0)
	queue := flow.NewQueue(compiled, now)
	_, first := queue.Take(compiled, now, 1)

	waiter := flow.NewWaiter(func() {})
	_, second := queue.Join(compiled, now, 1, time.Minute, waiter)
	_, until, _ := queue.Poll(now, waiter)
	fmt.Println(first == rule.Pass, second == rule.Wait, until)
	// Output: true true 100ms
}

func ExampleQueue_tokenBucket() {
	r := flow.Rule{Resource: "orders:create", Limit: 10, Burst: 3, Algorithm: flow.TokenBucket}
	compiled := flow.Compile(r.WithDefaults(), 1)
	now := clock.Instant(0)
	queue := flow.NewQueue(compiled, now)
	for range 4 {
		_, decision := queue.Take(compiled, now, 1)
		fmt.Println(decision == rule.Pass)
	}
	fmt.Println("retry after", queue.RetryAfter(now, 1, 0))
	// Output:
	// true
	// true
	// true
	// false
	// retry after 100ms
}

// A related resource is counted, and the guarded one waits until it has a slot.
func ExampleWindow_Check() {
	r := flow.Rule{Resource: "orders:read", Related: "orders:write", Limit: 2}
	compiled := flow.Compile(r.WithDefaults(), 1)
	now := clock.Instant(0)
	window := flow.NewWindow(compiled, now)
	fmt.Println(window.Check(compiled, now, 1) == rule.Pass)
	window.Count(compiled, now, 2) // two writes
	fmt.Println(window.Check(compiled, now, 1) == rule.Pass)
	// Output:
	// true
	// false
}

func ExampleRule_fixedWindow() {
	rule := flow.Rule{
		Resource: "reports:export", Limit: 100, Window: 24 * time.Hour, Algorithm: flow.FixedWindow, Origin: "mobile",
	}
	fmt.Println(rule.Validate() == nil)
	// Output: true
}
