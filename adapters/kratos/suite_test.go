package penstockkratos_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	kerrors "github.com/go-kratos/kratos/v2/errors"
	"github.com/go-kratos/kratos/v2/middleware"
	"github.com/go-kratos/kratos/v2/middleware/recovery"
	"github.com/go-kratos/kratos/v2/transport"
	httpstatus "github.com/go-kratos/kratos/v2/transport/http/status"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/penstock-go/penstock/adapters/adaptertest"
	penstockkratos "github.com/penstock-go/penstock/adapters/kratos"
	"github.com/penstock-go/penstock/adapters/rpc"
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/rule"
)

func TestConformance(t *testing.T) {
	t.Run("gRPC", func(t *testing.T) { adaptertest.RPC(t, harness(transport.KindGRPC)) })
	t.Run("HTTP", func(t *testing.T) {
		h := harness(transport.KindHTTP)
		h.Lacks = map[adaptertest.Feature]string{
			adaptertest.Codes:         "kratos answers with statuses of HTTP",
			adaptertest.RetryPolicies: "clients of kratos never retry over HTTP",
			adaptertest.Deadlines:     "HTTP does not carry the deadline of a call",
		}
		adaptertest.RPC(t, h)
	})
}

func BenchmarkConformance(b *testing.B) { adaptertest.BenchmarkRPC(b, harness(transport.KindGRPC)) }

func harness(kind transport.Kind) adaptertest.RPCHarness {
	return adaptertest.RPCHarness{
		Serve: func(t *testing.T, s adaptertest.RPCServer) adaptertest.RPCClient {
			t.Helper()
			return serveSuite(t, kind, s)
		},
		Method: func(adaptertest.Shape) string { return check },
		Error: func(code rpc.Code, retryAfter time.Duration) error {
			return coded(kind, codes.Code(code), retryAfter)
		},
		Answer: func(err error) adaptertest.RPCAnswer { return suiteAnswer(kind, err) },
		Refuse: penstockkratos.Error,
		Direct: directCall,
	}
}

// coded returns an error that says when such a call can pass, unless that is 0.
func coded(kind transport.Kind, code codes.Code, retryAfter time.Duration) error {
	if kind == transport.KindHTTP {
		err := kerrors.New(httpstatus.FromGRPCCode(code), "SUITE", "by the suite")
		if retryAfter > 0 {
			err = err.WithMetadata(map[string]string{"retry_after": retryAfter.String()})
		}
		return err
	}
	s := status.New(code, "by the suite")
	if retryAfter > 0 {
		if detailed, err := s.WithDetails(&errdetails.RetryInfo{RetryDelay: durationpb.New(retryAfter)}); err == nil {
			s = detailed
		}
	}
	return s.Err()
}

func suiteAnswer(kind transport.Kind, err error) adaptertest.RPCAnswer {
	of := kerrors.FromError(err)
	answer := adaptertest.RPCAnswer{
		Code: rpc.Code(httpstatus.ToGRPCCode(int(of.Code))), Text: of.Message + fmt.Sprint(of.Metadata),
	}
	answer.RetryAfter, _ = time.ParseDuration(of.Metadata["retry_after"])
	switch s, ok := status.FromError(err); {
	case ok && kind == transport.KindGRPC:
		answer.Code = rpc.Code(s.Code())
		answer.Text += s.Proto().String()
	case errors.Is(err, context.Canceled):
		answer.Code = rpc.Canceled
	case errors.Is(err, context.DeadlineExceeded):
		answer.Code = rpc.DeadlineExceeded
	}
	return answer
}

func serveSuite(t *testing.T, kind transport.Kind, s adaptertest.RPCServer) adaptertest.RPCClient {
	t.Helper()
	var server []middleware.Middleware
	if s.Arrived != nil {
		server = append(server, func(next middleware.Handler) middleware.Handler {
			return func(ctx context.Context, request any) (any, error) {
				s.Arrived()
				return next(ctx, request)
			}
		})
	}
	if s.Recovered != nil {
		server = append(server, recovery.Recovery(recovery.WithHandler(func(_ context.Context, _, value any) error {
			s.Recovered(value)
			return kerrors.InternalServer("PANIC", "recovered")
		})))
	}
	for _, g := range s.Server {
		server = append(server, penstockkratos.Server(g.Engine, suiteOptions(&g.Options, transport.FromServerContext)))
	}
	client := []middleware.Middleware{headerOfContext}
	if kind == transport.KindGRPC && len(s.Client) == 0 {
		client = nil // of each key that a middleware sets, kratos sends the first value only
	}
	for _, g := range s.Client {
		client = append(client, penstockkratos.Client(g.Engine, suiteOptions(&g.Options, transport.FromClientContext)))
	}
	address := serveWith(t, kind, service{finish: s.Handle}, server...)
	call := dial
	if s.Retries {
		call = dialRetrying
	}
	made := call(t, kind, address, client...)
	return func(ctx context.Context, _ adaptertest.Shape, pairs ...string) error {
		if client == nil {
			return made(metadata.AppendToOutgoingContext(ctx, pairs...))
		}
		return made(context.WithValue(ctx, pairsKey{}, pairs))
	}
}

// pairsKey is the key of the metadata that a call of the suite sends.
type pairsKey struct{}

// headerOfContext is a middleware that sends it.
func headerOfContext(next middleware.Handler) middleware.Handler {
	return func(ctx context.Context, request any) (any, error) {
		pairs, _ := ctx.Value(pairsKey{}).([]string)
		tr, _ := transport.FromClientContext(ctx)
		for i := 0; i < len(pairs); i += 2 {
			tr.RequestHeader().Add(pairs[i], pairs[i+1])
		}
		return next(ctx, request)
	}
}

// suiteOptions returns options of the suite as those of the middlewares; from finds the transport of a call.
func suiteOptions(
	o *adaptertest.RPCOptions, from func(context.Context) (transport.Transporter, bool),
) penstockkratos.Options {
	call := func(ctx context.Context, operation string) adaptertest.RPCCall {
		return suiteCall{ctx, operation, from}
	}
	options := penstockkratos.Options{
		PriorityKey: o.PriorityKey, Clients: o.Clients,
		Failure: o.Failure, ShowRules: o.ShowRules,
		Throttle: o.Throttle, RetryBudgets: o.RetryBudgets,
	}
	if o.Resource != nil {
		options.Resource = func(ctx context.Context, operation string) string { return o.Resource(call(ctx, operation)) }
	}
	if o.Origin != nil {
		options.Origin = func(ctx context.Context) string { return o.Origin(call(ctx, "")) }
	}
	if o.Tokens != nil {
		options.Tokens = func(ctx context.Context, operation string, _ any) int { return o.Tokens(call(ctx, operation)) }
	}
	if o.Attributes != nil {
		options.Attributes = func(ctx context.Context, operation string, _ any) []core.Option {
			return o.Attributes(call(ctx, operation))
		}
	}
	if o.Priority != nil {
		options.Priority = func(ctx context.Context, operation string) rule.Priority { return o.Priority(call(ctx, operation)) }
	}
	if o.PriorityTrust != nil {
		options.PriorityTrust = func(ctx context.Context) (rule.Priority, bool) { return o.PriorityTrust(call(ctx, "")) }
	}
	if o.Blocked != nil {
		options.Blocked = func(ctx context.Context, operation string, block *core.BlockError) error {
			return o.Blocked(call(ctx, operation), block)
		}
	}
	if o.EntryError != nil {
		options.EntryError = func(ctx context.Context, operation string, err error) error {
			return o.EntryError(call(ctx, operation), err)
		}
	}
	return options
}

// suiteCall is a call as options of the suite see it.
type suiteCall struct {
	ctx       context.Context
	operation string
	from      func(context.Context) (transport.Transporter, bool)
}

func (c suiteCall) Context() context.Context { return c.ctx }
func (c suiteCall) Method() string           { return c.operation }

func (c suiteCall) Metadata(key string) string {
	if tr, ok := c.from(c.ctx); ok {
		return tr.RequestHeader().Get(key)
	}
	return ""
}

// directTransport is the transport of calls that come from no connection.
type directTransport struct{ transport.Transporter }

func (directTransport) Kind() transport.Kind { return transport.KindGRPC }
func (directTransport) Operation() string    { return check }

func directCall(_ testing.TB, s adaptertest.RPCServer) func() {
	handler := middleware.Handler(func(ctx context.Context, _ any) (any, error) { return nil, s.Handle(ctx) })
	for _, g := range s.Server {
		handler = penstockkratos.Server(g.Engine, suiteOptions(&g.Options, transport.FromServerContext))(handler)
	}
	ctx := transport.NewServerContext(context.Background(), directTransport{})
	return func() { _, _ = handler(ctx, nil) }
}
