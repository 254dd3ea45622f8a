package flow_test

import (
	"fmt"
	"time"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/flow"
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
	rule := flow.Rule{Resource: "orders:create", Limit: 2}
	terms := flow.Compile(rule.WithDefaults(), 1)
	now := clock.Instant(0)
	window := flow.NewWindow(terms, now)
	for range 3 {
		fmt.Println(window.Take(terms, now, 1) == flow.Passed)
	}
	fmt.Println("retry after", window.RetryAfter(now, 1))
	// Output:
	// true
	// true
	// false
	// retry after 1s
}

func ExampleQueue() {
	rule := flow.Rule{Resource: "orders:create", Limit: 10, Algorithm: flow.Throttle, MaxWait: time.Second}
	terms := flow.Compile(rule.WithDefaults(), 1)
	now := clock.Instant(0)
	queue := flow.NewQueue(terms, now)
	_, first := queue.Take(terms, now, 1)

	waiter := flow.NewWaiter(func() {})
	_, second := queue.Join(terms, now, 1, time.Minute, waiter)
	_, until, _ := queue.Turn(now, waiter)
	fmt.Println(first == flow.Passed, second == flow.Queued, until)
	// Output: true true 100ms
}

func ExampleQueue_tokenBucket() {
	rule := flow.Rule{Resource: "orders:create", Limit: 10, Burst: 3, Algorithm: flow.TokenBucket}
	terms := flow.Compile(rule.WithDefaults(), 1)
	now := clock.Instant(0)
	queue := flow.NewQueue(terms, now)
	for range 4 {
		_, decision := queue.Take(terms, now, 1)
		fmt.Println(decision == flow.Passed)
	}
	fmt.Println("retry after", queue.RetryAfter(now, 1, 0))
	// Output:
	// true
	// true
	// true
	// false
	// retry after 100ms
}

// A related resource is counted, and the guarded one waits until there is room.
func ExampleWindow_Check() {
	rule := flow.Rule{Resource: "orders:read", Related: "orders:write", Limit: 2}
	terms := flow.Compile(rule.WithDefaults(), 1)
	now := clock.Instant(0)
	window := flow.NewWindow(terms, now)
	fmt.Println(window.Check(terms, now, 1) == flow.Passed)
	window.Count(terms, now, 2) // two writes
	fmt.Println(window.Check(terms, now, 1) == flow.Passed)
	// Output:
	// true
	// false
}

func ExampleRule_fixedWindow() {
	rule := flow.Rule{
		Resource: "reports:export", Limit: 100, Window: 24 * time.Hour, Algorithm: flow.FixedWindow, Origin: "mobile",
	}
	fmt.Println(rule.Validate() == nil, rule.Limiter() == flow.WindowLimiter)
	// Output: true true
}
