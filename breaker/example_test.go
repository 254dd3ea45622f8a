package breaker_test

import (
	"fmt"
	"time"

	"github.com/penstock-go/penstock/breaker"
	"github.com/penstock-go/penstock/clock"
)

// Half of the last four calls fail.
func ExampleNew_lastCalls() {
	b, _ := breaker.New(breaker.Rule{Threshold: 0.5, WindowCalls: 4})
	for _, err := range []error{nil, fmt.Errorf("timeout"), nil, fmt.Errorf("timeout")} {
		_ = b.Do(func() error { return err })
		fmt.Println(b.State())
	}
	// Output:
	// closed
	// closed
	// closed
	// open
}

// Calls hang: the breaker opens while they are under way.
func ExampleNew_hangingCalls() {
	virtual := clock.NewVirtual(time.Unix(1_700_000_000, 0))
	b, _ := breaker.New(breaker.Rule{
		Strategy: breaker.SlowRatio, SlowAfter: 300 * time.Millisecond, Threshold: 1, MinCalls: 2,
	}, breaker.Options{Clock: virtual})
	_, _ = b.Allow()
	_, _ = b.Allow()
	for range 2 {
		virtual.Advance(200 * time.Millisecond)
		_, err := b.Allow()
		fmt.Println(b.State(), err)
	}
	// Output:
	// closed <nil>
	// open penstock: refused by breaker "breaker" (unavailable)
}
