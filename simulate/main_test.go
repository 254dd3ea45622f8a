package simulate_test

import (
	"context"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/internal/longtest"
	"github.com/penstock-go/penstock/rules"
	"github.com/penstock-go/penstock/simulate"
)

func TestMain(m *testing.M) {
	longtest.Checks(15)
	goleak.VerifyTestMain(m)
}

// T is what a test and a property have in common.
type T interface {
	require.TestingT
	Helper()
}

// flowRules returns a set of flow rules; those without a resource or a pattern
// guard "r".
func flowRules(list ...flow.Rule) rules.Set {
	for i := range list {
		if list[i].Resource == "" && list[i].Match == "" {
			list[i].Resource = "r"
		}
	}
	return rules.Set{Flow: list}
}

// streams returns a load of streams; those without a resource call "r".
func streams(list ...simulate.Stream) simulate.Load {
	for i := range list {
		if list[i].Resource == "" {
			list[i].Resource = "r"
		}
	}
	return simulate.Load{Streams: list}
}

// run runs a load and asks for events.
func run(t T, set rules.Set, load simulate.Load, duration time.Duration) simulate.Result {
	t.Helper()
	result, err := simulate.Run(context.Background(), set, load, simulate.Options{Duration: duration, Events: true})
	require.NoError(t, err)
	return result
}

// number returns a pointer to a number.
func number(v float64) *float64 { return &v }

// at returns times given in milliseconds.
func at(milliseconds ...float64) []time.Duration {
	times := make([]time.Duration, len(milliseconds))
	for i, ms := range milliseconds {
		times[i] = time.Duration(ms * float64(time.Millisecond))
	}
	return times
}

// outcomes returns the outcomes of a result's events.
func outcomes(result simulate.Result) (list []string) {
	for _, e := range result.Events {
		list = append(list, e.Outcome)
	}
	return list
}

// waits returns the waits of a result's events.
func waits(result simulate.Result) (list []float64) {
	for _, e := range result.Events {
		list = append(list, e.Wait)
	}
	return list
}

// nanoseconds returns a number of seconds as whole nanoseconds.
func nanoseconds(seconds float64) int64 { return int64(math.Round(seconds * 1e9)) }
