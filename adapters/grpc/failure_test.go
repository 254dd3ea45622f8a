package penstockgrpc_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	testpb "google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/status"

	penstockgrpc "github.com/penstock-go/penstock/adapters/grpc"
)

// ending is a way for a call to end.
type ending struct {
	name    string
	err     error
	failure bool
}

func endings() []ending {
	failures := map[codes.Code]bool{
		codes.OK:                 false,
		codes.Canceled:           false,
		codes.Unknown:            true,
		codes.InvalidArgument:    false,
		codes.DeadlineExceeded:   true,
		codes.NotFound:           false,
		codes.AlreadyExists:      false,
		codes.PermissionDenied:   false,
		codes.ResourceExhausted:  false,
		codes.FailedPrecondition: false,
		codes.Aborted:            false,
		codes.OutOfRange:         false,
		codes.Unimplemented:      true,
		codes.Internal:           true,
		codes.Unavailable:        true,
		codes.DataLoss:           true,
		codes.Unauthenticated:    false,
		codes.Code(17):           true, // not defined
	}
	all := []ending{
		{"plain error", errors.New("disk full"), true},
		{"canceled context", context.Canceled, false},
		{"exceeded deadline", fmt.Errorf("query: %w", context.DeadlineExceeded), true},
		{"wrapped status", fmt.Errorf("query: %w", status.Error(codes.NotFound, "no row")), false},
	}
	for code, failure := range failures {
		all = append(all, ending{code.String(), status.Error(code, "some message"), failure})
	}
	return all
}

func TestIsFailure(t *testing.T) {
	for _, e := range endings() {
		assert.Equal(t, e.failure, penstockgrpc.IsFailure(e.err), e.name)
	}
}

func TestFailuresOfTheServerAreCounted(t *testing.T) {
	everywhere(t, func(t *testing.T, at side, s shape) {
		var next error
		engine := newEngine(t)
		client := guard(t, at, engine, penstockgrpc.Options{}, service{finish: func(context.Context) error { return next }})
		for _, e := range endings() {
			before := totals(engine, s.method).Failed
			next = e.err
			require.Equal(t, e.err == nil, s.call(t.Context(), client) == nil, e.name)
			assert.Equal(t, e.failure, requireEnded(t, engine, s.method).Failed > before, e.name)
		}
	})
}

func TestFailureOptionDecidesWhatIsAFailure(t *testing.T) {
	options := penstockgrpc.Options{Failure: func(err error) bool { return status.Code(err) == codes.NotFound }}
	everywhere(t, func(t *testing.T, at side, s shape) {
		var next error
		engine := newEngine(t)
		client := guard(t, at, engine, options, service{finish: func(context.Context) error { return next }})
		for _, next = range []error{nil, status.Error(codes.NotFound, ""), status.Error(codes.Internal, "")} {
			assert.Equal(t, status.Code(next), status.Code(s.call(t.Context(), client)))
		}
		assert.EqualValues(t, 1, requireEnded(t, engine, s.method).Failed)
	})
}

// recovered are server options that stop panics and keep what they were of.
func recovered(note func(any)) []any {
	stop := func(err *error) {
		if v := recover(); v != nil {
			note(v)
			*err = status.Error(codes.Internal, "recovered")
		}
	}
	return []any{
		grpc.ChainUnaryInterceptor(func(ctx context.Context, request any, _ *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (_ any, err error) {
			defer stop(&err)
			return handler(ctx, request)
		}),
		grpc.ChainStreamInterceptor(func(service any, stream grpc.ServerStream, _ *grpc.StreamServerInfo, handler grpc.StreamHandler) (err error) {
			defer stop(&err)
			return handler(service, stream)
		}),
	}
}

func TestPanicOfAHandlerIsAFailureAndIsPassedOn(t *testing.T) {
	options := penstockgrpc.Options{Failure: func(error) bool { return false }}
	for _, s := range shapes() {
		t.Run(s.name, func(t *testing.T) {
			engine := newEngine(t)
			var value any
			outer := recovered(func(v any) { value = v })
			client := guard(t, atServer, engine, options, service{finish: func(context.Context) error { panic("boom") }}, outer...)
			assert.Equal(t, codes.Internal, status.Code(s.call(t.Context(), client)))
			assert.Equal(t, "boom", value)

			ended := requireEnded(t, engine, s.method)
			assert.EqualValues(t, 1, ended.Completed)
			assert.EqualValues(t, 1, ended.Failed)
		})
	}
}

func TestPanicOfAnInnerInterceptorIsAFailureAndIsPassedOn(t *testing.T) {
	options := penstockgrpc.Options{Failure: func(error) bool { return false }}
	address, _ := serve(t, service{})
	for _, s := range shapes() {
		t.Run(s.name, func(t *testing.T) {
			engine := newEngine(t)
			opts := append(guardClient(engine, options), streamsFurtherIn(func(openStream) (grpc.ClientStream, error) { panic("boom") }),
				grpc.WithChainUnaryInterceptor(func(context.Context, string, any, any, *grpc.ClientConn, grpc.UnaryInvoker, ...grpc.CallOption) error {
					panic("boom")
				}))
			client := testpb.NewTestServiceClient(dial(t, address, opts...))
			assert.PanicsWithValue(t, "boom", func() { _ = s.call(t.Context(), client) })

			ended := requireEnded(t, engine, s.method)
			assert.EqualValues(t, 1, ended.Completed)
			assert.EqualValues(t, 1, ended.Failed)
		})
	}
}

func TestCallsAreUnderWayWhileTheyLast(t *testing.T) {
	everywhere(t, func(t *testing.T, at side, s shape) {
		engine := newEngine(t)
		const calls = 5
		leave := make(chan struct{})
		client := guard(t, at, engine, penstockgrpc.Options{}, service{finish: func(ctx context.Context) error {
			select {
			case <-leave:
			case <-ctx.Done():
			}
			return nil
		}})
		var all sync.WaitGroup
		for range calls {
			all.Go(func() { assert.NoError(t, s.call(t.Context(), client)) })
		}
		require.Eventually(t, func() bool { return totals(engine, s.method).InFlight == calls }, eventTimeout, interval)
		close(leave)
		all.Wait()
		assert.EqualValues(t, calls, requireEnded(t, engine, s.method).Completed)
	})
}

func TestPanicInTheFailureOptionEndsTheCall(t *testing.T) {
	options := penstockgrpc.Options{Failure: func(error) bool { panic("no opinion") }}
	for _, s := range shapes() {
		t.Run(s.name, func(t *testing.T) {
			engine := newEngine(t)
			var value any
			outer := recovered(func(v any) { value = v })
			handler := service{finish: func(context.Context) error { return status.Error(codes.NotFound, "") }}
			client := guard(t, atServer, engine, options, handler, outer...)
			assert.Equal(t, codes.Internal, status.Code(s.call(t.Context(), client)))
			assert.Equal(t, "no opinion", value)
			assert.EqualValues(t, 1, requireEnded(t, engine, s.method).Completed)
		})
	}
}
