package penstockgrpc_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	testpb "google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/status"

	penstockgrpc "github.com/penstock-go/penstock/adapters/grpc"
	"github.com/penstock-go/penstock/core"
)

// lateAnswers are server options that let no call end before its deadline, as
// seen by an outer interceptor.
func lateAnswers() []grpc.ServerOption {
	wait := func(ctx context.Context) {
		deadline, _ := ctx.Deadline()
		<-time.After(time.Until(deadline))
	}
	return []grpc.ServerOption{
		grpc.ChainUnaryInterceptor(func(ctx context.Context, request any, _ *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
			defer wait(ctx)
			return handler(ctx, request)
		}),
		grpc.ChainStreamInterceptor(func(service any, stream grpc.ServerStream, _ *grpc.StreamServerInfo, handler grpc.StreamHandler) error {
			defer wait(stream.Context())
			return handler(service, stream)
		}),
	}
}

func TestCallsThatExceedTheirDeadlineAllFail(t *testing.T) {
	const calls, limit = 200, 50 * time.Millisecond
	for name, end := range map[string]func(context.Context) error{
		"error of the context": context.Context.Err,
		"success":              func(context.Context) error { return nil },
		"another error":        func(context.Context) error { return status.Error(codes.NotFound, "no row") },
	} {
		everywhere(t, func(t *testing.T, at side, s shape) {
			if at == atClient && name != "error of the context" {
				return // a client may get the answer before it sees that its deadline has come
			}
			t.Run(name, func(t *testing.T) {
				engine := newEngine(t)
				slow := service{finish: func(ctx context.Context) error {
					<-ctx.Done()
					return end(ctx)
				}}
				var opts []grpc.ServerOption
				var dialOpts []grpc.DialOption
				if at == atServer {
					opts = append(guardServer(engine, penstockgrpc.Options{}), lateAnswers()...)
				} else {
					dialOpts = guardClient(engine, penstockgrpc.Options{})
				}
				address, _ := serve(t, slow, opts...)
				client := testpb.NewTestServiceClient(dial(t, address, dialOpts...))
				var all sync.WaitGroup
				for range calls {
					all.Go(func() {
						ctx, cancel := context.WithTimeout(t.Context(), limit)
						defer cancel()
						_ = s.call(ctx, client)
					})
				}
				all.Wait()
				ended := requireEnded(t, engine, s.method)
				assert.Equal(t, ended.Completed, ended.Failed)
				if at == atClient { // where calls do not enter whose deadline has come by then
					assert.Positive(t, ended.Failed)
				}
			})
		})
	}
}

func TestCallCancelledByItsCallerIsNotAFailure(t *testing.T) {
	for name, end := range map[string]func(context.Context) error{
		"error of the context": context.Context.Err,
		"internal error":       func(context.Context) error { return status.Error(codes.Internal, "query: context canceled") },
		"plain error":          func(context.Context) error { return errors.New("query: context canceled") },
		"panic":                func(context.Context) error { panic("no row") },
	} {
		everywhere(t, func(t *testing.T, at side, s shape) {
			if at == atClient && name == "panic" {
				return // the server's
			}
			t.Run(name, func(t *testing.T) {
				engine := newEngine(t)
				here := make(chan struct{})
				client := guard(t, at, engine, penstockgrpc.Options{}, service{finish: func(ctx context.Context) error {
					close(here)
					<-ctx.Done()
					return end(ctx)
				}}, recovered(func(any) {})...)
				ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
				defer cancel()
				ended := make(chan error)
				go func() { ended <- s.call(ctx, client) }()
				<-here
				cancel()
				require.Equal(t, codes.Canceled, status.Code(<-ended))
				counted := requireEnded(t, engine, s.method)
				assert.EqualValues(t, 1, counted.Completed)
				assert.Zero(t, counted.Failed)
			})
		})
	}
}

// Time is that of the bubble: contexts end to the nanosecond.
func TestOutcomeIsThatSeenByTheCaller(t *testing.T) {
	internal := status.Error(codes.Internal, "lost")
	for _, test := range []struct {
		name             string
		deadline, cancel time.Duration // of the caller; 0: never
		ends             time.Duration // the call
		err              error
		want             codes.Code // OK: it is no failure, and Failure is not asked
		atClient         codes.Code
	}{
		{"in time", time.Second, 0, 500 * time.Millisecond, nil, codes.OK, codes.OK},
		{"failed in time", time.Second, 0, 500 * time.Millisecond, internal, codes.Internal, codes.Internal},
		{"failed late", time.Second, 0, 2 * time.Second, internal, codes.DeadlineExceeded, codes.DeadlineExceeded},
		{"answered late", time.Second, 0, 2 * time.Second, nil, codes.DeadlineExceeded, codes.OK},
		{"cancelled and failed", 0, time.Second, 2 * time.Second, internal, codes.Canceled, codes.Canceled},
		{"cancelled and well", 0, time.Second, 2 * time.Second, nil, codes.OK, codes.OK},
		{"cancelled at half time", 100 * time.Millisecond, 50 * time.Millisecond, 51 * time.Millisecond, context.Canceled, codes.Canceled, codes.Canceled},
		{"cancelled just before the deadline", time.Second, 990 * time.Millisecond, 991 * time.Millisecond, context.Canceled, codes.DeadlineExceeded, codes.DeadlineExceeded},
		{"cancelled, but it lasts to the deadline", time.Second, 100 * time.Millisecond, time.Second, context.Canceled, codes.DeadlineExceeded, codes.DeadlineExceeded},
		{"cancelled long before a long deadline", time.Hour, 59 * time.Minute, 59*time.Minute + 1, context.Canceled, codes.Canceled, codes.Canceled},
		{"cancelled by something else", time.Second, 0, 500 * time.Millisecond, context.Canceled, codes.Canceled, codes.Canceled},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				if test.deadline > 0 {
					ctx, cancel = context.WithTimeout(ctx, test.deadline)
				}
				defer cancel()
				if test.cancel > 0 {
					time.AfterFunc(test.cancel, cancel)
				}
				begin := time.Now()
				end := func() error {
					time.Sleep(test.ends - time.Since(begin))
					return test.err
				}
				codesSeen := askedAbout(ctx, t, end)
				want := [...]codes.Code{test.want, test.want, test.atClient}
				assert.Equal(t, want, codesSeen)
			})
		})
	}
}

// askedAbout makes a call, guarded on a server, unary and as a stream, and on a
// client, and returns the codes that Failure was asked about, OK if it was not.
func askedAbout(ctx context.Context, t *testing.T, end func() error) (seen [3]codes.Code) {
	t.Helper()
	engine := core.New(core.Config{})
	defer engine.Close()
	options := func(i int) penstockgrpc.Options {
		return penstockgrpc.Options{Failure: func(err error) bool {
			seen[i] = status.Code(err)
			if s := status.FromContextError(err); seen[i] == codes.Unknown {
				seen[i] = s.Code()
			}
			return false
		}}
	}
	var all sync.WaitGroup
	all.Go(func() {
		_, _ = penstockgrpc.UnaryServerInterceptor(engine, options(0))(ctx, nil, &grpc.UnaryServerInfo{FullMethod: "/s/Unary"},
			func(context.Context, any) (any, error) { return nil, end() })
	})
	all.Go(func() {
		_ = penstockgrpc.StreamServerInterceptor(engine, options(1))(nil, limitedStream{ctx: ctx},
			&grpc.StreamServerInfo{FullMethod: "/s/Stream"}, func(any, grpc.ServerStream) error { return end() })
	})
	all.Go(func() {
		_ = penstockgrpc.UnaryClientInterceptor(engine, options(2))(ctx, "/s/Client", nil, nil, nil,
			func(context.Context, string, any, any, *grpc.ClientConn, ...grpc.CallOption) error { return end() })
	})
	all.Wait()
	return seen
}
