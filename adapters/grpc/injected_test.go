package penstockgrpc_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	penstockgrpc "github.com/penstock-go/penstock/adapters/grpc"
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/fault"
	"github.com/penstock-go/penstock/rules"
)

// inject returns an engine that refuses all calls of a resource with a fault.
func inject(t *testing.T, resource string, abort fault.Abort) *core.Engine {
	t.Helper()
	engine := newEngine(t)
	require.NoError(t, engine.Load(rules.Set{Fault: []fault.Rule{{
		Name: "broken", Resource: resource, Percent: 100, Abort: abort, Until: engine.Clock().Now().Add(time.Hour).Time(),
	}}}))
	return engine
}

func TestInjectedFaultHasTheCodeThatItsRuleSays(t *testing.T) {
	for name, test := range map[string]struct {
		abort fault.Abort
		code  codes.Code
	}{
		"with its code":  {fault.Abort{HTTP: 500, GRPC: "DATA_LOSS"}, codes.DataLoss},
		"without a code": {fault.Abort{HTTP: 500}, codes.Unavailable},
	} {
		everywhere(t, func(t *testing.T, at side, s shape) {
			t.Run(name, func(t *testing.T) {
				_, outside := refuse(t, at, s, inject(t, s.method, test.abort), penstockgrpc.Options{ShowRules: true})
				answer := status.Convert(outside)
				assert.Equal(t, test.code, answer.Code())
				assert.Contains(t, answer.Message(), `blocked by fault "broken"`)
			})
		})
	}
}

// Every code that a rule may name is one of gRPC.
func TestEveryCodeOfAFaultIsOneOfGRPC(t *testing.T) {
	engine := newEngine(t)
	for code := codes.Canceled; code <= codes.Unauthenticated; code++ {
		name := []string{
			"", "CANCELLED", "UNKNOWN", "INVALID_ARGUMENT", "DEADLINE_EXCEEDED", "NOT_FOUND", "ALREADY_EXISTS",
			"PERMISSION_DENIED", "RESOURCE_EXHAUSTED", "FAILED_PRECONDITION", "ABORTED", "OUT_OF_RANGE",
			"UNIMPLEMENTED", "INTERNAL", "UNAVAILABLE", "DATA_LOSS", "UNAUTHENTICATED",
		}[code]
		require.NoError(t, engine.Load(rules.Set{Fault: []fault.Rule{{
			Resource: "pay", Percent: 100, Abort: fault.Abort{GRPC: name}, Until: engine.Clock().Now().Add(time.Hour).Time(),
		}}}), name)
		_, err := engine.Entry(t.Context(), "pay")
		assert.Equal(t, code, status.Code(penstockgrpc.Error(err)), name)
	}
}

func TestRetryPolicyRepeatsCallsWithInjectedFaults(t *testing.T) {
	for _, s := range shapes() {
		t.Run(s.name, func(t *testing.T) {
			var arrived atomic.Int64
			engine := inject(t, s.method, fault.Abort{GRPC: "UNAVAILABLE"})
			outer := append(outcomes(func(error) { arrived.Add(1) }), retryRefusals())
			client := guard(t, atServer, engine, penstockgrpc.Options{}, service{finish: succeed}, outer...)
			// What the client is told does not count: a stream of grpc-go ends with io.EOF, as if
			// it had succeeded, when the last repetition is refused while it is being sent.
			_ = s.call(t.Context(), client)
			assert.EqualValues(t, 5, arrived.Load(), "as with a server that fails")
		})
	}
}

// A fault injected further down is a failure of the call, unlike another refusal.
func TestInjectedFaultFurtherDownIsAFailure(t *testing.T) {
	everywhere(t, func(t *testing.T, at side, s shape) {
		engine := newEngine(t)
		below := inject(t, "pay", fault.Abort{GRPC: "UNAVAILABLE"})
		client := guard(t, at, engine, penstockgrpc.Options{}, service{finish: func(ctx context.Context) error {
			_, err := below.Entry(ctx, "pay")
			return penstockgrpc.Error(err)
		}})
		require.Equal(t, codes.Unavailable, status.Code(s.call(t.Context(), client)))
		assert.EqualValues(t, 1, requireEnded(t, engine, s.method).Failed)
	})
}
