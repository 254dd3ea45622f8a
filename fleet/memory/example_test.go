package memory_test

import (
	"context"
	"fmt"
	"time"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/fleet"
	"github.com/penstock-go/penstock/fleet/memory"
)

func Example() {
	virtual := clock.NewVirtual(time.Unix(1_700_000_000, 0))
	store := memory.New(virtual)
	terms := fleet.Terms{Key: "flow/partner", Limit: 1000, Window: time.Second, Burst: 100}

	requests := []fleet.Request{
		{Terms: terms, Want: 80},                                  // of a bucket of 100
		{Terms: terms, Want: 80},                                  // 20 are left
		{Terms: terms, Want: 80, Quantum: 30},                     // none, and less than 30 are not worth a grant
		{Terms: terms, Want: 80, Quantum: 30, Queue: time.Second}, // but may be granted for later
	}
	replies := make([]fleet.Reply, len(requests))
	store.Exchange(context.Background(), requests, replies)
	for _, r := range replies {
		fmt.Println("granted", r.Granted, "delay", r.Delay, "retry", r.Retry)
	}
	// Output:
	// granted 80 delay 0s retry 0s
	// granted 20 delay 0s retry 0s
	// granted 0 delay 0s retry 30ms
	// granted 30 delay 30ms retry 0s
}
