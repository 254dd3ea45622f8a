package penstockgrpc_test

import (
	"context"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	testpb "google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	penstockgrpc "github.com/penstock-go/penstock/adapters/grpc"
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/flow"
)

// Clients that are refused together come back one after the other, by RetryInfo as by the pushback,
// whether a rule of the guard refused them or one that the handler asked.
func TestClientsThatAreRefusedTogetherWaitDifferently(t *testing.T) {
	const wait = 30 * time.Second
	rule := flow.Rule{Resource: testpb.TestService_UnaryCall_FullMethodName, Limit: 1, Window: time.Hour}
	for name, test := range map[string]struct {
		rules   []flow.Rule
		service service
	}{
		"by the guard": {[]flow.Rule{rule}, service{finish: succeed}},
		"by the handler": {nil, service{finish: func(context.Context) error {
			return penstockgrpc.Error(&core.BlockError{Resource: "r", Kind: "flow", Rule: "quota", RetryAfter: wait})
		}}},
	} {
		t.Run(name, func(t *testing.T) {
			var engine *core.Engine
			if engine = newEngine(t); test.rules != nil {
				engine = newEngine(t, test.rules...)
				guard, err := engine.Entry(t.Context(), testpb.TestService_UnaryCall_FullMethodName)
				require.NoError(t, err)
				guard.Exit()
			}
			client := guard(t, atServer, engine, penstockgrpc.Options{MaxPushback: 2 * time.Hour}, test.service)
			infos, pushbacks := map[time.Duration]int{}, map[int]int{}
			for range 100 {
				var trailer metadata.MD
				_, err := client.UnaryCall(t.Context(), &testpb.SimpleRequest{}, grpc.Trailer(&trailer))
				require.Equal(t, codes.ResourceExhausted, status.Code(err))
				for _, detail := range status.Convert(err).Details() {
					if info, is := detail.(*errdetails.RetryInfo); is {
						infos[info.GetRetryDelay().AsDuration()]++
					}
				}
				pushback, err := strconv.Atoi(trailer.Get("grpc-retry-pushback-ms")[0])
				require.NoError(t, err)
				pushbacks[pushback]++
			}
			assert.Greater(t, len(infos), 5, "waits of RetryInfo")
			assert.Greater(t, len(pushbacks), 5, "waits of the pushback")
			for info := range infos {
				assert.LessOrEqual(t, info, time.Hour*6/5)
				assert.Positive(t, info)
			}
			if test.rules == nil {
				for info := range infos {
					assert.GreaterOrEqual(t, info, wait)
				}
				for pushback := range pushbacks {
					assert.GreaterOrEqual(t, pushback, int(wait/time.Millisecond))
					assert.LessOrEqual(t, pushback, int(wait/time.Millisecond)*6/5+1)
				}
			}
		})
	}
}
