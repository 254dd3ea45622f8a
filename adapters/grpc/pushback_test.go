package penstockgrpc_test

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	testpb "google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	penstockgrpc "github.com/penstock-go/penstock/adapters/grpc"
	"github.com/penstock-go/penstock/adapters/nethttp"
	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/flow"
)

// retryRefusals is what makes a client call five times at the most.
func retryRefusals() grpc.DialOption {
	return grpc.WithDefaultServiceConfig(`{"methodConfig": [{"name": [{}], "retryPolicy": {"maxAttempts": 5,
		"initialBackoff": "0.001s", "maxBackoff": "0.001s", "backoffMultiplier": 1,
		"retryableStatusCodes": ["RESOURCE_EXHAUSTED", "UNAVAILABLE"]}}]}`)
}

func TestRefusedCallsAreNotMultipliedByARetryPolicy(t *testing.T) {
	const calls, limit = 20, 4
	for _, s := range shapes() {
		for name, options := range map[string]penstockgrpc.Options{
			"by default": {},
			"answered otherwise": {Blocked: func(context.Context, string, *core.BlockError) error {
				return status.Error(codes.Unavailable, "later")
			}},
			"shorter waits are asked for": {MaxPushback: time.Minute},
		} {
			t.Run(s.name+", "+name, func(t *testing.T) {
				var arrived atomic.Int64
				engine := newEngine(t, flow.Rule{Resource: s.method, Limit: limit, Window: time.Hour})
				outer := append(outcomes(func(error) { arrived.Add(1) }), retryRefusals())
				client := guard(t, atServer, engine, options, service{finish: succeed}, outer...)
				var passed atomic.Int64
				var all sync.WaitGroup
				for range calls {
					all.Go(func() {
						if s.call(t.Context(), client) == nil {
							passed.Add(1)
						}
					})
				}
				all.Wait()
				assert.EqualValues(t, limit, passed.Load())
				assert.EqualValues(t, calls, arrived.Load())
			})
		}
	}
}

func TestRefusalOfAResourceInAHandlerIsNotMultiplied(t *testing.T) {
	for _, s := range shapes() {
		t.Run(s.name, func(t *testing.T) {
			var arrived atomic.Int64
			engine := newEngine(t, flow.Rule{Resource: "orders", Limit: 0})
			handler := service{finish: func(ctx context.Context) error {
				return penstockgrpc.Error(engine.Do(ctx, "orders", func(context.Context) error { return nil }))
			}}
			outer := append(outcomes(func(error) { arrived.Add(1) }), retryRefusals())
			client := guard(t, atServer, engine, penstockgrpc.Options{}, handler, outer...)
			require.Equal(t, codes.ResourceExhausted, status.Code(s.call(t.Context(), client)))
			assert.EqualValues(t, 1, arrived.Load())
		})
	}
}

func TestClientRetriesAfterThePushbackTime(t *testing.T) {
	for _, s := range shapes() {
		t.Run(s.name, func(t *testing.T) {
			var arrived atomic.Int64
			engine := newEngine(t, flow.Rule{Resource: s.method, Limit: 1, Window: 20 * time.Millisecond})
			require.NoError(t, engine.Do(t.Context(), s.method, func(context.Context) error { return nil }))
			outer := append(outcomes(func(error) {
				arrived.Add(1)
				engine.Clock().(*clock.Virtual).Advance(20 * time.Millisecond)
			}), retryRefusals())
			client := guard(t, atServer, engine, penstockgrpc.Options{MaxPushback: time.Second}, service{finish: succeed}, outer...)
			require.NoError(t, s.call(t.Context(), client))
			assert.EqualValues(t, 2, arrived.Load())
		})
	}
}

// refusesOnce returns a service whose first call is refused, with that RetryAfter.
func refusesOnce(retryAfter time.Duration) service {
	var refused atomic.Bool
	return service{finish: func(context.Context) error {
		if refused.Swap(true) {
			return nil
		}
		return penstockgrpc.Error(&core.BlockError{Resource: "r", Kind: "flow", Rule: "once", RetryAfter: retryAfter})
	}}
}

func TestPushbackIsTheWaitIfItIsKnownAndShort(t *testing.T) {
	for _, test := range []struct {
		name     string
		wait     time.Duration // 0: unknown
		longest  time.Duration
		deadline time.Duration // 0: none
		want     string
	}{
		{"by default", time.Second, 0, 0, "-1"},
		{"unknown", 0, time.Hour, 0, "-1"},
		{"short", 250 * time.Millisecond, time.Second, 0, "250"},
		{"rounded up", 1500 * time.Microsecond, time.Second, 0, "2"},
		{"longest", time.Second, time.Second, 0, "1000"},
		{"longer", 1100 * time.Millisecond, time.Second, 0, "-1"},
		{"within the deadline", time.Second, time.Minute, time.Hour, "1000"},
		{"after the deadline", 2 * time.Hour, 3 * time.Hour, time.Hour, "-1"},
	} {
		t.Run(test.name, func(t *testing.T) {
			client := guard(t, atServer, newEngine(t), penstockgrpc.Options{MaxPushback: test.longest, Spread: nethttp.Spread{Share: -1}}, refusesOnce(test.wait))
			ctx := t.Context()
			if test.deadline > 0 {
				limited, cancel := context.WithTimeout(ctx, test.deadline)
				defer cancel()
				ctx = limited
			}
			var trailer metadata.MD
			_, err := client.UnaryCall(ctx, &testpb.SimpleRequest{}, grpc.Trailer(&trailer))
			require.Equal(t, codes.ResourceExhausted, status.Code(err))
			assert.Equal(t, []string{test.want}, trailer.Get("grpc-retry-pushback-ms"))
		})
	}
}
