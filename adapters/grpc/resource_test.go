package penstockgrpc_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	testpb "google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/penstock-go/penstock"
	penstockgrpc "github.com/penstock-go/penstock/adapters/grpc"
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/flow"
)

func TestCallIsOneOfItsFullMethod(t *testing.T) {
	everywhere(t, func(t *testing.T, at side, s shape) {
		engine := newEngine(t)
		require.NoError(t, s.call(t.Context(), guard(t, at, engine, penstockgrpc.Options{}, service{finish: succeed})))

		ended := requireEnded(t, engine, s.method)
		assert.EqualValues(t, 1, ended.Passed)
		assert.Zero(t, ended.Failed)
		assert.Len(t, engine.Snapshot().Resources, 1)
	})
}

func TestOptionsTellResourceAndOrigin(t *testing.T) {
	type origin struct{}
	options := penstockgrpc.Options{
		Resource: func(_ context.Context, fullMethod string) string { return "orders:" + fullMethod },
		Origin: func(ctx context.Context) string {
			if name, ok := ctx.Value(origin{}).(string); ok { // of a client
				return name
			}
			return strings.Join(metadata.ValueFromIncomingContext(ctx, "caller"), ",")
		},
	}
	everywhere(t, func(t *testing.T, at side, s shape) {
		engine := newEngine(t, flow.Rule{Resource: "orders:" + s.method, Limit: 5, Window: time.Hour, Origin: "mobile"})
		ctx := context.WithValue(t.Context(), origin{}, "mobile")
		ctx = metadata.AppendToOutgoingContext(ctx, "caller", "mobile")
		require.NoError(t, s.call(ctx, guard(t, at, engine, options, service{finish: succeed})))
		assert.EqualValues(t, 4, totals(engine, "orders:"+s.method).Rules[0].Quota.Remaining, "the rule is for mobile")
	})
}

func TestTokensOptionSetsTheTokensOfACall(t *testing.T) {
	tokens := 7
	options := penstockgrpc.Options{Tokens: func(_ context.Context, fullMethod string, request any) int {
		_, unary := request.(*testpb.SimpleRequest)
		assert.Equal(t, fullMethod == testpb.TestService_UnaryCall_FullMethodName, unary)
		return tokens
	}}
	everywhere(t, func(t *testing.T, at side, s shape) {
		engine := newEngine(t, flow.Rule{Resource: s.method, Limit: 10})
		client := guard(t, at, engine, options, service{finish: succeed})
		var ended []codes.Code
		for _, tokens = range []int{7, 4, 3, 1, 0} {
			ended = append(ended, status.Code(s.call(t.Context(), client)))
		}
		assert.Equal(t, []codes.Code{codes.OK, codes.ResourceExhausted, codes.OK, codes.ResourceExhausted, codes.Internal}, ended)
	})
}

func TestCallWithoutResourceIsNotGuarded(t *testing.T) {
	options := penstockgrpc.Options{Resource: func(context.Context, string) string { return "" }}
	everywhere(t, func(t *testing.T, at side, s shape) {
		engine := newEngine(t)
		engine.Close() // which refuses every call that is guarded
		require.NoError(t, s.call(t.Context(), guard(t, at, engine, options, service{finish: succeed})))
		assert.Empty(t, engine.Snapshot().Resources)
	})
}

func TestNilEngineIsTheDefaultEngine(t *testing.T) {
	everywhere(t, func(t *testing.T, at side, s shape) {
		before := totals(penstock.Default(), s.method).Passed
		require.NoError(t, s.call(t.Context(), guard(t, at, nil, penstockgrpc.Options{}, service{finish: succeed})))
		assert.Equal(t, before+1, totals(penstock.Default(), s.method).Passed)
	})
}

func TestUnknownMethodCreatesNoResource(t *testing.T) {
	engine := newEngine(t)
	address, _ := serve(t, service{}, guardServer(engine, penstockgrpc.Options{})...)
	conn := dial(t, address)
	err := conn.Invoke(t.Context(), "/made.Up/Method", &testpb.Empty{}, &testpb.Empty{})
	assert.Equal(t, codes.Unimplemented, status.Code(err))
	assert.Empty(t, engine.Snapshot().Resources)
}

func TestNamesChosenByClientsAreBounded(t *testing.T) {
	const bound = 10
	engine := newEngineOf(t, core.Config{MaxResources: bound})
	proxy := grpc.UnknownServiceHandler(func(_ any, stream grpc.ServerStream) error {
		return stream.SendMsg(&testpb.Empty{})
	})
	address, _ := serve(t, service{}, append(guardServer(engine, penstockgrpc.Options{}), proxy)...)
	conn := dial(t, address)
	for i := range 5 * bound {
		require.NoError(t, conn.Invoke(t.Context(), fmt.Sprintf("/made.Up/Method%d", i), &testpb.Empty{}, &testpb.Empty{}))
	}
	assert.Len(t, engine.Snapshot().Resources, bound+1)
}
