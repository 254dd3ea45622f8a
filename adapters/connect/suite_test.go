package penstockconnect_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"testing"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/penstock-go/penstock/adapters/adaptertest"
	penstockconnect "github.com/penstock-go/penstock/adapters/connect"
	"github.com/penstock-go/penstock/adapters/rpc"
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/rule"
)

func TestConformance(t *testing.T) {
	for _, w := range wires() {
		t.Run(w.name, func(t *testing.T) {
			if testing.Short() && w.protocol != connect.ProtocolGRPC && (w.http2 || w.isGRPC()) {
				t.Skip("long: the protocol of Connect goes over HTTP/1.1, too, and gRPC has calls of all shapes")
			}
			switch {
			case w.http2:
				adaptertest.RPC(t, harness(w, nil, allShapes()...))
			case w.isGRPC():
				lacks := map[adaptertest.Feature]string{
					adaptertest.Cancellation: "old versions of connect do not read requests to their end, before which net/http does not notice it",
				}
				adaptertest.RPC(t, harness(w, lacks, adaptertest.Unary, adaptertest.ServerStream, adaptertest.ClientStream))
			default:
				adaptertest.RPC(t, harness(w, nil, adaptertest.Unary))
			}
		})
	}
	t.Run("streams over HTTP/1.1", func(t *testing.T) {
		lacks := map[adaptertest.Feature]string{
			adaptertest.WaitingDisconnects: "net/http notices them after the request was read to its end",
		}
		adaptertest.RPC(t, harness(wires()[0], lacks, adaptertest.ServerStream, adaptertest.ClientStream))
	})
}

func allShapes() []adaptertest.Shape {
	return []adaptertest.Shape{adaptertest.Unary, adaptertest.ServerStream, adaptertest.ClientStream, adaptertest.Bidi}
}

func BenchmarkConformance(b *testing.B) {
	adaptertest.BenchmarkRPC(b, harness(wires()[0], nil, adaptertest.Unary))
}

func harness(w wire, lacks map[adaptertest.Feature]string, shapes ...adaptertest.Shape) adaptertest.RPCHarness {
	all := map[adaptertest.Feature]string{adaptertest.RetryPolicies: "clients of Connect never retry"}
	maps.Copy(all, lacks)
	return adaptertest.RPCHarness{
		Shapes: shapes,
		Serve: func(t *testing.T, s adaptertest.RPCServer) adaptertest.RPCClient {
			t.Helper()
			return serveSuite(t, w, s)
		},
		Method: func(s adaptertest.Shape) string { return suiteShape(s).procedure },
		Error: func(code rpc.Code, retryAfter time.Duration) error {
			return coded(connect.Code(code), retryAfter)
		},
		Answer:       suiteAnswer,
		Refuse:       penstockconnect.Error,
		Direct:       directCall,
		PassAllocs:   0,
		RefuseAllocs: 3, // the error, and its metadata
		Lacks:        all,
	}
}

func suiteShape(s adaptertest.Shape) shape {
	for _, known := range shapes() {
		if known.name == s {
			return known
		}
	}
	return shape{}
}

// coded returns an error that says when such a call can pass, unless that is 0.
func coded(code connect.Code, retryAfter time.Duration) *connect.Error {
	err := connect.NewError(code, errors.New("by the suite"))
	if retryAfter > 0 {
		if detail, failure := connect.NewErrorDetail(&errdetails.RetryInfo{RetryDelay: durationpb.New(retryAfter)}); failure == nil {
			err.AddDetail(detail)
		}
	}
	return err
}

func suiteAnswer(err error) adaptertest.RPCAnswer {
	of := new(connect.Error)
	if !errors.As(err, &of) {
		of = connect.NewError(contextCode(err), err)
	}
	answer := adaptertest.RPCAnswer{Code: rpc.Code(of.Code()), Text: err.Error()}
	answer.Text += fmt.Sprint(of.Meta())
	for _, detail := range of.Details() {
		value, err := detail.Value()
		if err != nil {
			continue
		}
		answer.Text += fmt.Sprint(value)
		if info, ok := value.(*errdetails.RetryInfo); ok {
			answer.RetryAfter = info.GetRetryDelay().AsDuration()
		}
	}
	return answer
}

func contextCode(err error) connect.Code {
	switch {
	case errors.Is(err, context.Canceled):
		return connect.CodeCanceled
	case errors.Is(err, context.DeadlineExceeded):
		return connect.CodeDeadlineExceeded
	}
	return connect.CodeUnknown
}

// pairsKey is the key of the metadata that a call of the suite sends.
type pairsKey struct{}

func serveSuite(t *testing.T, w wire, s adaptertest.RPCServer) adaptertest.RPCClient {
	t.Helper()
	var guards []connect.HandlerOption
	if s.Recovered != nil {
		guards = append(guards, connect.WithRecover(func(_ context.Context, _ connect.Spec, _ http.Header, value any) error {
			s.Recovered(value)
			return connect.NewError(connect.CodeInternal, errors.New("recovered"))
		}))
	}
	for _, g := range s.Server {
		guards = append(guards, connect.WithInterceptors(penstockconnect.ServerInterceptor(g.Engine, suiteOptions(&g.Options))))
	}
	service := newHandler(func(ctx context.Context, _ http.Header) error { return s.Handle(ctx) }, guards...)
	url := serve(t, http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if s.Arrived != nil {
			s.Arrived()
		}
		service.ServeHTTP(rw, r)
	}))
	options := []connect.ClientOption{connect.WithInterceptors(headerOfContext{})}
	for _, g := range s.Client {
		options = append(options, connect.WithInterceptors(penstockconnect.ClientInterceptor(g.Engine, suiteOptions(&g.Options))))
	}
	clients := make(map[adaptertest.Shape]*connect.Client[text, text])
	for _, known := range shapes() {
		clients[known.name] = w.clientOf(t, url, known.procedure, options...)
	}
	return func(ctx context.Context, s adaptertest.Shape, pairs ...string) error {
		err := suiteShape(s).call(context.WithValue(ctx, pairsKey{}, headerInterceptor(pairs)), clients[s])
		switch connect.CodeOf(err) {
		case connect.CodeUnknown, connect.CodeInvalidArgument, connect.CodeInternal:
			// Old versions of connect have these codes for streams that were broken off.
			if err != nil && ctx.Err() != nil && s != adaptertest.Unary {
				return ctx.Err()
			}
		}
		return err
	}
}

// headerOfContext is a [headerInterceptor] with the fields of the context.
type headerOfContext struct{}

func (headerOfContext) WrapUnary(next connect.UnaryFunc) connect.UnaryFunc {
	return func(ctx context.Context, r connect.AnyRequest) (connect.AnyResponse, error) {
		return ctx.Value(pairsKey{}).(headerInterceptor).WrapUnary(next)(ctx, r)
	}
}

func (headerOfContext) WrapStreamingClient(next connect.StreamingClientFunc) connect.StreamingClientFunc {
	return func(ctx context.Context, spec connect.Spec) connect.StreamingClientConn {
		return ctx.Value(pairsKey{}).(headerInterceptor).WrapStreamingClient(next)(ctx, spec)
	}
}

func (headerOfContext) WrapStreamingHandler(next connect.StreamingHandlerFunc) connect.StreamingHandlerFunc {
	return next
}

// suiteOptions returns options of the suite as those of the interceptors.
func suiteOptions(o *adaptertest.RPCOptions) penstockconnect.Options {
	options := penstockconnect.Options{
		PriorityKey: o.PriorityKey, Clients: o.Clients,
		Failure: o.Failure, ShowRules: o.ShowRules,
		Throttle: o.Throttle, RetryBudgets: o.RetryBudgets,
	}
	options.Resource = suiteOption(o.Resource)
	options.Origin = suiteOption(o.Origin)
	options.Tokens = suiteOption(o.Tokens)
	options.Attributes = suiteOption(o.Attributes)
	options.Priority = suiteOption(o.Priority)
	if o.PriorityTrust != nil {
		options.PriorityTrust = func(ctx context.Context, c *penstockconnect.Call) (rule.Priority, bool) {
			return o.PriorityTrust(suiteCall{ctx, c})
		}
	}
	if o.Blocked != nil {
		options.Blocked = func(ctx context.Context, c *penstockconnect.Call, block *core.BlockError) error {
			return o.Blocked(suiteCall{ctx, c}, block)
		}
	}
	if o.EntryError != nil {
		options.EntryError = func(ctx context.Context, c *penstockconnect.Call, err error) error {
			return o.EntryError(suiteCall{ctx, c}, err)
		}
	}
	return options
}

// suiteOption returns an option of the suite as one of the interceptors.
func suiteOption[T any](option func(adaptertest.RPCCall) T) func(context.Context, *penstockconnect.Call) T {
	if option == nil {
		return nil
	}
	return func(ctx context.Context, c *penstockconnect.Call) T { return option(suiteCall{ctx, c}) }
}

// suiteCall is a call as options of the suite see it.
type suiteCall struct {
	ctx  context.Context
	call *penstockconnect.Call
}

func (c suiteCall) Context() context.Context   { return c.ctx }
func (c suiteCall) Method() string             { return c.call.Spec.Procedure }
func (c suiteCall) Metadata(key string) string { return c.call.Header.Get(key) }

// directRequest is a request of a procedure that comes from no connection.
type directRequest struct{ connect.AnyRequest }

func (directRequest) Spec() connect.Spec { return connect.Spec{Procedure: create} }
func (directRequest) Peer() connect.Peer {
	return connect.Peer{Addr: "127.0.0.1:1", Protocol: connect.ProtocolConnect}
}

func directCall(_ testing.TB, s adaptertest.RPCServer) func() {
	handler := connect.UnaryFunc(func(ctx context.Context, _ connect.AnyRequest) (connect.AnyResponse, error) {
		return nil, s.Handle(ctx)
	})
	for _, g := range s.Server {
		handler = penstockconnect.ServerInterceptor(g.Engine, suiteOptions(&g.Options)).WrapUnary(handler)
	}
	request := directRequest{connect.NewRequest(wrapperspb.String("a"))}
	request.Header() // makes it: calls on several goroutines use it
	return func() { _, _ = handler(context.Background(), request) }
}
