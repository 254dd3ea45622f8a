package outgoing_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/penstock-go/penstock/adapters/outgoing"
	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/rule"
)

// A server that is down is called a few times, and then probed.
func ExampleThrottle() {
	virtual := clock.NewVirtual(time.Unix(1_800_000_000, 0))
	throttle, err := outgoing.NewThrottle(outgoing.ThrottleOptions{Clock: virtual, Seed: 1})
	if err != nil {
		panic(err)
	}
	refused := 0
	for range 1000 { // ten seconds
		call, err := outgoing.Begin(context.Background(), throttle, nil, "payments:443", rule.PriorityNormal)
		if errors.Is(err, outgoing.ErrThrottled) {
			refused++
		} else {
			call.End(outgoing.Answer{Result: outgoing.Rejected}) // connection refused
		}
		virtual.Advance(10 * time.Millisecond)
	}
	fmt.Println("more than 900 of 1000 calls were not sent:", refused > 900)
	// Output: more than 900 of 1000 calls were not sent: true
}

// A server that says when it wants to be called again is not called before.
func ExampleAnswer() {
	virtual := clock.NewVirtual(time.Unix(1_800_000_000, 0))
	throttle, err := outgoing.NewThrottle(outgoing.ThrottleOptions{Clock: virtual})
	if err != nil {
		panic(err)
	}
	for _, a := range []outgoing.Answer{
		{Result: outgoing.Rejected, RetryAfter: 5 * time.Second}, // 429, Retry-After: 5
		{Result: outgoing.Accepted},
	} {
		call, err := outgoing.Begin(context.Background(), throttle, nil, "payments:443", rule.PriorityNormal)
		if err != nil {
			fmt.Println(err)
			continue
		}
		call.End(a)
	}
	// Output: outgoing: paused by the target: the call of "payments:443" was not sent, retry after 6s
}

// A loop of your own gives up when the retries have reached their share.
func ExampleRetryBudgets() {
	budgets, err := outgoing.NewRetryBudgets(outgoing.RetryOptions{
		Ratio: 0.1, Burst: 5, Clock: clock.NewVirtual(time.Time{}), // a clock that stands still
	})
	if err != nil {
		panic(err)
	}
	sent := 0
	send := func() error { sent++; return errors.New("the service is down") }
	for range 100 {
		ctx := outgoing.WithRetries(context.Background())
		for range 4 { // attempts, while they fail
			call, err := outgoing.Begin(ctx, nil, budgets, "payments", rule.PriorityNormal)
			if err != nil {
				break
			}
			err = send()
			call.End(outgoing.Answer{Result: outgoing.Rejected})
			if err == nil {
				break
			}
		}
	}
	fmt.Println("100 calls were sent", sent, "times and not 400")
	// Output: 100 calls were sent 114 times and not 400
}

// Any loop is kept within the budget if the attempts of a call have one context.
func ExampleWithRetries() {
	budgets, err := outgoing.NewRetryBudgets(outgoing.RetryOptions{Burst: 1})
	if err != nil {
		panic(err)
	}
	ctx := outgoing.WithRetries(context.Background()) // once for each call
	for attempt := range 4 {
		// A guarded client does this: nethttp.Transport, or an interceptor of gRPC.
		call, err := outgoing.Begin(ctx, nil, budgets, "payments:443", rule.PriorityNormal)
		if err != nil {
			fmt.Println(attempt, err)
			break
		}
		call.End(outgoing.Answer{Result: outgoing.Rejected})
	}
	// Output: 2 outgoing: retry budget exhausted: the call of "payments:443" was not sent
}
