package simulate_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/isolation"
	"github.com/penstock-go/penstock/rule"
	"github.com/penstock-go/penstock/rules"
	"github.com/penstock-go/penstock/simulate"
)

// tenantStream is the calls of 100 ms of one tenant.
func tenantStream(tenant string, rate float64) simulate.Stream {
	return simulate.Stream{
		Resource: "search", Rate: rate, Until: 30 * time.Second, ServiceTime: 100 * ms,
		Attrs: []simulate.Attr{{Name: "tenant", Values: []any{tenant}}},
	}
}

// A tenant asks a pool of ten places for twice what it can do, another one for 5 % of it.
func TestHonestTenantDoesNotWaitForOneThatFloods(t *testing.T) {
	t.Parallel()
	load := simulate.Load{Streams: []simulate.Stream{tenantStream("flood", 200), tenantStream("honest", 5)}}
	longest := func(r isolation.Rule) (wait float64) {
		result := run(t, rules.Set{Isolation: []isolation.Rule{r}}, load, 30*time.Second)
		for _, e := range result.Events {
			if e.Value == "honest" {
				wait = max(wait, e.Wait)
			}
		}
		return wait
	}
	r := isolation.Rule{Resource: "search", Limit: 10, MaxWait: time.Minute, MaxQueue: 10_000}
	assert.Greater(t, longest(r), 10., "first come, first served")
	r.FairBy = rule.StringsOf("tenant")
	assert.LessOrEqual(t, longest(r), .03)
}

// The same in the queues of flow rules, which let half as much pass as is asked for.
func TestHonestTenantOfARateDoesNotWaitForOneThatFloods(t *testing.T) {
	t.Parallel()
	load := simulate.Load{Streams: []simulate.Stream{tenantStream("flood", 200), tenantStream("honest", 5)}}
	of := func(r flow.Rule) (wait float64, refused int) {
		result := run(t, rules.Set{Flow: []flow.Rule{r}}, load, 30*time.Second)
		for _, e := range result.Events {
			switch {
			case e.Value != "honest":
			case e.Outcome == simulate.Block:
				refused++
			default:
				wait = max(wait, e.Wait)
			}
		}
		return wait, refused
	}
	for _, algorithm := range []flow.Algorithm{flow.Throttle, flow.TokenBucket} {
		r := flow.Rule{Resource: "search", Limit: 100, Algorithm: algorithm, MaxWait: 5 * time.Second}
		wait, refused := of(r)
		assert.Greater(t, wait, 4.5, "first come, first served")
		assert.Positive(t, refused)
		r.FairBy = rule.StringsOf("tenant")
		wait, refused = of(r)
		assert.LessOrEqual(t, wait, .04)
		assert.Zero(t, refused)
	}
}

// One caller sends a hundred calls at once to a resource that does one at a time; another sends one a bit
// later: with shares it waits for the call under way and one more.
func ExampleRun_fairShares() {
	for _, fairBy := range []rule.Strings{{}, rule.StringsOf("tenant")} {
		set := rules.Set{Isolation: []isolation.Rule{
			{Resource: "reports", Limit: 1, MaxWait: time.Minute, FairBy: fairBy},
		}}
		flood := make([]time.Duration, 100)
		load := simulate.Load{Streams: []simulate.Stream{
			{Resource: "reports", Times: flood, ServiceTime: 100 * time.Millisecond, Attrs: []simulate.Attr{{Name: "tenant", Values: []any{"a"}}}},
			{Resource: "reports", Times: []time.Duration{50 * time.Millisecond}, Attrs: []simulate.Attr{{Name: "tenant", Values: []any{"b"}}}},
		}}
		result, err := simulate.Run(context.Background(), set, load, simulate.Options{Events: true})
		if err != nil {
			panic(err)
		}
		fmt.Printf("b waits %v s\n", result.Events[len(result.Events)-1].Wait)
	}
	// Output:
	// b waits 9.95 s
	// b waits 0.15 s
}
