package simulate_test

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/rules"
	"github.com/penstock-go/penstock/simulate"
)

// A unit test of a rule of one's own: how does a resource that may be called
// 1000 times a second warm up when everybody comes at once?
func ExampleRun() {
	set := rules.Set{Flow: []flow.Rule{
		{Resource: "orders:create", Limit: 1000, WarmUp: flow.WarmUp{Period: 10 * time.Second}},
	}}
	load := simulate.Load{Streams: []simulate.Stream{
		{Resource: "orders:create", Rate: 2000, Until: 14 * time.Second},
	}}

	result, err := simulate.Run(context.Background(), set, load, simulate.Options{})
	if err != nil {
		panic(err)
	}
	fmt.Println(result.Passed("orders:create"))
	// Output: [333 349 366 388 412 442 480 529 595 693 858 1000 1000 1000]
}

// What becomes of each call: a burst of three under a rule that spaces them.
func ExampleRun_events() {
	set := rules.Set{Flow: []flow.Rule{
		{Resource: "mail", Limit: 10, Algorithm: flow.Throttle, MaxWait: 100 * time.Millisecond},
	}}
	load := simulate.Load{Streams: []simulate.Stream{
		{Resource: "mail", Times: []time.Duration{time.Second, time.Second, time.Second}},
	}}

	result, err := simulate.Run(context.Background(), set, load, simulate.Options{Events: true})
	if err != nil {
		panic(err)
	}
	for _, e := range result.Events {
		fmt.Printf("came at %v s: %s after %v s\n", e.T, e.Outcome, e.Wait)
	}
	// Output:
	// came at 1 s: pass after 0 s
	// came at 1 s: pass after 0.1 s
	// came at 1 s: block after 0 s
}

// Whom would another rule have refused? The calls are those of a service that was recorded.
func ExampleReplay() {
	service := core.New(core.Config{Clock: clock.NewVirtual(time.Unix(0, 0)), Logger: slog.New(slog.DiscardHandler), Recorder: &core.Recorder{}})
	defer service.Close()
	for i := range 30 {
		guard, err := service.Entry(context.Background(), "orders", core.Origin([]string{"web", "web", "mobile"}[i%3]))
		if err == nil {
			guard.Exit()
		}
	}
	recorded, err := service.Recorded(time.Minute)
	if err != nil {
		panic(err)
	}

	tried := rules.Set{Flow: []flow.Rule{{Name: "orders", Resource: "orders", Limit: 12}}}
	report, err := simulate.Replay(context.Background(), recorded, tried, simulate.ReplayOptions{WarmUp: -1})
	if err != nil {
		panic(err)
	}
	for _, origin := range report.Origins {
		fmt.Printf("%s: %d of %d calls refused\n", origin.Name, origin.NewlyRefused, origin.Calls)
	}
	// Output:
	// web: 12 of 20 calls refused
	// mobile: 6 of 10 calls refused
}
