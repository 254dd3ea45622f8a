package penstockgrpc_test

import (
	"context"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	testpb "google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/penstock-go/penstock/adapters/adaptertest"
	penstockgrpc "github.com/penstock-go/penstock/adapters/grpc"
	"github.com/penstock-go/penstock/adapters/nethttp"
	"github.com/penstock-go/penstock/adapters/rpc"
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/rule"
)

func TestConformance(t *testing.T) { adaptertest.RPC(t, harness()) }

func BenchmarkConformance(b *testing.B) { adaptertest.BenchmarkRPC(b, harness()) }

func harness() adaptertest.RPCHarness {
	return adaptertest.RPCHarness{
		Serve:  serveSuite,
		Shapes: []adaptertest.Shape{adaptertest.Unary, adaptertest.ServerStream, adaptertest.ClientStream, adaptertest.Bidi},
		Method: func(s adaptertest.Shape) string { return suiteShape(s).method },
		Error: func(code rpc.Code, retryAfter time.Duration) error {
			if retryAfter > 0 {
				return wantsPause(codes.Code(code), retryAfter)
			}
			return status.Error(codes.Code(code), "by the suite")
		},
		Answer: suiteAnswer,
		Refuse: penstockgrpc.Error,
		Direct: directCall,
	}
}

func suiteShape(s adaptertest.Shape) shape {
	for _, known := range shapes() {
		if known.name == string(s) {
			return known
		}
	}
	return shape{}
}

func suiteAnswer(err error) adaptertest.RPCAnswer {
	s := status.Convert(err)
	answer := adaptertest.RPCAnswer{Code: rpc.Code(s.Code()), Text: s.Proto().String()}
	for _, detail := range s.Details() {
		if info, ok := detail.(interface{ GetRetryDelay() *durationpb.Duration }); ok {
			answer.RetryAfter = info.GetRetryDelay().AsDuration()
		}
	}
	return answer
}

func serveSuite(t *testing.T, s adaptertest.RPCServer) adaptertest.RPCClient {
	t.Helper()
	var opts []grpc.ServerOption
	var dialOpts []grpc.DialOption
	outer := func(list []any) {
		for _, o := range list {
			opts = append(opts, o.(grpc.ServerOption))
		}
	}
	if s.Arrived != nil {
		outer(outcomes(func(error) { s.Arrived() }))
	}
	if s.Recovered != nil {
		outer(recovered(s.Recovered))
	}
	for _, g := range s.Server {
		opts = append(opts, guardServer(g.Engine, suiteOptions(&g.Options, metadata.ValueFromIncomingContext))...)
	}
	for _, g := range s.Client {
		dialOpts = append(dialOpts, guardClient(g.Engine, suiteOptions(&g.Options, outgoingValues))...)
	}
	if s.Retries {
		dialOpts = append(dialOpts, retryRefusals())
	}
	address, _ := serve(t, service{finish: s.Handle}, opts...)
	client := testpb.NewTestServiceClient(dial(t, address, dialOpts...))
	return func(ctx context.Context, s adaptertest.Shape, pairs ...string) error {
		return suiteShape(s).call(metadata.AppendToOutgoingContext(ctx, pairs...), client)
	}
}

// suiteOptions returns options of the suite as those of the interceptors; values reads
// metadata.
func suiteOptions(o *adaptertest.RPCOptions, values func(context.Context, string) []string) penstockgrpc.Options {
	call := func(ctx context.Context, method string) adaptertest.RPCCall { return suiteCall{ctx, method, values} }
	options := penstockgrpc.Options{
		Spread:      nethttp.Spread{Share: -1}, // the suite knows each wait
		PriorityKey: o.PriorityKey, Clients: o.Clients,
		Failure: o.Failure, ShowRules: o.ShowRules,
		Throttle: o.Throttle, RetryBudgets: o.RetryBudgets,
	}
	if o.Resource != nil {
		options.Resource = func(ctx context.Context, method string) string { return o.Resource(call(ctx, method)) }
	}
	if o.Origin != nil {
		options.Origin = func(ctx context.Context) string { return o.Origin(call(ctx, "")) }
	}
	if o.Tokens != nil {
		options.Tokens = func(ctx context.Context, method string, _ any) int { return o.Tokens(call(ctx, method)) }
	}
	if o.Attributes != nil {
		options.Attributes = func(ctx context.Context, method string, _ any) []core.Option { return o.Attributes(call(ctx, method)) }
	}
	if o.Priority != nil {
		options.Priority = func(ctx context.Context, method string) rule.Priority { return o.Priority(call(ctx, method)) }
	}
	if o.PriorityTrust != nil {
		options.PriorityTrust = func(ctx context.Context) (rule.Priority, bool) { return o.PriorityTrust(call(ctx, "")) }
	}
	if o.Blocked != nil {
		options.Blocked = func(ctx context.Context, method string, block *core.BlockError) error {
			return o.Blocked(call(ctx, method), block)
		}
	}
	if o.EntryError != nil {
		options.EntryError = func(ctx context.Context, method string, err error) error {
			return o.EntryError(call(ctx, method), err)
		}
	}
	return options
}

// suiteCall is a call as options of the suite see it.
type suiteCall struct {
	ctx    context.Context
	method string
	values func(ctx context.Context, key string) []string
}

func (c suiteCall) Context() context.Context { return c.ctx }
func (c suiteCall) Method() string           { return c.method }

func (c suiteCall) Metadata(key string) string {
	if values := c.values(c.ctx, key); len(values) > 0 {
		return values[0]
	}
	return ""
}

func outgoingValues(ctx context.Context, key string) []string {
	md, _ := metadata.FromOutgoingContext(ctx)
	return md.Get(key)
}

func directCall(_ testing.TB, s adaptertest.RPCServer) func() {
	info := &grpc.UnaryServerInfo{FullMethod: testpb.TestService_UnaryCall_FullMethodName}
	handler := func(ctx context.Context, _ any) (any, error) { return nil, s.Handle(ctx) }
	for _, g := range s.Server {
		inner := handler
		interceptor := penstockgrpc.UnaryServerInterceptor(g.Engine, suiteOptions(&g.Options, metadata.ValueFromIncomingContext))
		handler = func(ctx context.Context, request any) (any, error) { return interceptor(ctx, request, info, inner) }
	}
	return func() { _, _ = handler(context.Background(), nil) }
}
