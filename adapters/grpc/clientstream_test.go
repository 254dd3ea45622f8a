package penstockgrpc_test

import (
	"context"
	"errors"
	"fmt"
	"io"
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
	"github.com/penstock-go/penstock/core"
)

const (
	bidirectional = testpb.TestService_FullDuplexCall_FullMethodName
	download      = testpb.TestService_StreamingOutputCall_FullMethodName
	upload        = testpb.TestService_StreamingInputCall_FullMethodName
)

// streaming is a guarded client of a sound service.
func streaming(t *testing.T, opts ...grpc.DialOption) (testpb.TestServiceClient, *grpc.ClientConn, *core.Engine) {
	t.Helper()
	engine := newEngine(t)
	address, _ := serve(t, service{finish: succeed})
	conn := dial(t, address, append(guardClient(engine, penstockgrpc.Options{}), opts...)...)
	return testpb.NewTestServiceClient(conn), conn, engine
}

// openStream opens a stream on the wire.
type openStream func() (grpc.ClientStream, error)

// streamsFurtherIn is an interceptor between the guard and the wire.
func streamsFurtherIn(intercept func(open openStream) (grpc.ClientStream, error)) grpc.DialOption {
	return grpc.WithChainStreamInterceptor(func(ctx context.Context, desc *grpc.StreamDesc, conn *grpc.ClientConn,
		method string, streamer grpc.Streamer, opts ...grpc.CallOption,
	) (grpc.ClientStream, error) {
		return intercept(func() (grpc.ClientStream, error) { return streamer(ctx, desc, conn, method, opts...) })
	})
}

func TestStreamLastsUntilEverythingIsReceived(t *testing.T) {
	client, _, engine := streaming(t)
	stream, err := client.FullDuplexCall(t.Context())
	require.NoError(t, err)
	for range 3 {
		require.NoError(t, stream.Send(&testpb.StreamingOutputCallRequest{}))
		_, err = stream.Recv()
		require.NoError(t, err)
		assert.EqualValues(t, 1, totals(engine, bidirectional).InFlight)
	}
	require.NoError(t, stream.CloseSend())
	assert.EqualValues(t, 1, totals(engine, bidirectional).InFlight)

	for range 2 { // the second changes nothing
		_, err = stream.Recv()
		require.ErrorIs(t, err, io.EOF)
		assert.Zero(t, totals(engine, bidirectional).InFlight)
		assert.EqualValues(t, 1, totals(engine, bidirectional).Completed)
	}
}

func TestStreamWithOneReplyEndsWithIt(t *testing.T) {
	client, _, engine := streaming(t)
	stream, err := client.StreamingInputCall(t.Context())
	require.NoError(t, err)
	require.NoError(t, stream.Send(&testpb.StreamingInputCallRequest{}))
	assert.EqualValues(t, 1, totals(engine, upload).InFlight)
	_, err = stream.CloseAndRecv()
	require.NoError(t, err)
	assert.Zero(t, totals(engine, upload).InFlight)
}

func TestAbandonedStreamEndsWhenItIsCancelled(t *testing.T) {
	client, _, engine := streaming(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	stream, err := client.FullDuplexCall(ctx)
	require.NoError(t, err)
	require.NoError(t, stream.Send(&testpb.StreamingOutputCallRequest{}))
	_, err = stream.Recv()
	require.NoError(t, err)
	assert.EqualValues(t, 1, totals(engine, bidirectional).InFlight)

	cancel()
	ended := requireEnded(t, engine, bidirectional)
	assert.EqualValues(t, 1, ended.Completed)
	assert.Zero(t, ended.Failed)
}

func TestAbandonedStreamEndsAtItsDeadline(t *testing.T) {
	client, _, engine := streaming(t)
	for soon := 20 * time.Millisecond; totals(engine, bidirectional).Passed == 0; soon *= 2 { // on a busy machine it comes too late
		ctx, cancel := context.WithTimeout(t.Context(), soon)
		defer cancel()
		_, err := client.FullDuplexCall(ctx)
		require.Contains(t, []codes.Code{codes.OK, codes.DeadlineExceeded}, status.Code(err))
	}
	ended := requireEnded(t, engine, bidirectional)
	assert.EqualValues(t, 1, ended.Completed)
	assert.EqualValues(t, 1, ended.Failed)
}

func TestAbandonedStreamEndsWithItsConnection(t *testing.T) {
	client, conn, engine := streaming(t)
	_, err := client.FullDuplexCall(t.Context())
	require.NoError(t, err)
	assert.EqualValues(t, 1, totals(engine, bidirectional).InFlight)
	require.NoError(t, conn.Close())
	ended := requireEnded(t, engine, bidirectional)
	assert.EqualValues(t, 1, ended.Completed)
	assert.Zero(t, ended.Failed)
}

func TestStreamWhoseServerIsLostIsAFailure(t *testing.T) {
	engine := newEngine(t)
	address, stop := serve(t, service{finish: func(ctx context.Context) error {
		<-ctx.Done()
		return ctx.Err()
	}})
	client := testpb.NewTestServiceClient(dial(t, address, guardClient(engine, penstockgrpc.Options{})...))
	stream, err := client.StreamingOutputCall(t.Context(), &testpb.StreamingOutputCallRequest{})
	require.NoError(t, err)
	_, err = stream.Recv()
	require.NoError(t, err)
	stop()
	require.Equal(t, codes.Unavailable, status.Code(drain(stream)))
	assert.Zero(t, totals(engine, download).InFlight)
	assert.EqualValues(t, 1, totals(engine, download).Failed)
}

func TestStreamEndsWithAnErrorInSending(t *testing.T) {
	client, _, engine := streaming(t)
	stream, err := client.StreamingInputCall(t.Context(), grpc.MaxCallSendMsgSize(1))
	require.NoError(t, err)
	err = stream.Send(&testpb.StreamingInputCallRequest{Payload: &testpb.Payload{Body: []byte("too long")}})
	require.Equal(t, codes.ResourceExhausted, status.Code(err))
	assert.EqualValues(t, 1, totals(engine, upload).Completed)
	assert.Zero(t, totals(engine, upload).InFlight)
}

func TestStreamClosedByTheServerEndsWithItsStatus(t *testing.T) {
	engine := newEngine(t)
	hangUp := grpc.UnknownServiceHandler(func(any, grpc.ServerStream) error { return status.Error(codes.Internal, "no more") })
	address, _ := serve(t, service{}, hangUp)
	conn := dial(t, address, guardClient(engine, penstockgrpc.Options{})...)
	const method = "/a.Server/ThatHangsUp"
	stream, err := conn.NewStream(t.Context(), &grpc.StreamDesc{ClientStreams: true}, method)
	require.NoError(t, err)
	require.Eventually(t, func() bool { return errors.Is(stream.SendMsg(&testpb.Empty{}), io.EOF) }, eventTimeout, interval)
	assert.EqualValues(t, 1, totals(engine, method).InFlight, "the status is still to be received")

	require.Equal(t, codes.Internal, status.Code(stream.RecvMsg(&testpb.Empty{})))
	assert.Zero(t, totals(engine, method).InFlight)
	assert.EqualValues(t, 1, totals(engine, method).Failed)
}

func TestStreamThatCannotBeOpenedIsAFailure(t *testing.T) {
	engine := newEngine(t)
	address, stop := serve(t, service{})
	stop()
	conn := dial(t, address, guardClient(engine, penstockgrpc.Options{})...)
	_, err := testpb.NewTestServiceClient(conn).FullDuplexCall(t.Context())
	require.Equal(t, codes.Unavailable, status.Code(err))
	assert.Zero(t, totals(engine, bidirectional).InFlight)
	assert.EqualValues(t, 1, totals(engine, bidirectional).Failed)
}

// brokenStream is what an inner interceptor might return.
type brokenStream struct{ grpc.ClientStream }

var errBroken = status.Error(codes.Internal, "broken")

func (brokenStream) CloseSend() error             { return errBroken }
func (brokenStream) Header() (metadata.MD, error) { return nil, errBroken }

func TestStreamEndsWithAnyErrorThatEndsIt(t *testing.T) {
	inner := streamsFurtherIn(func(open openStream) (grpc.ClientStream, error) {
		stream, err := open()
		return brokenStream{stream}, err
	})
	for name, use := range map[string]func(grpc.ClientStream) error{
		"CloseSend": grpc.ClientStream.CloseSend,
		"Header": func(stream grpc.ClientStream) error {
			_, err := stream.Header()
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			client, _, engine := streaming(t, inner)
			stream, err := client.FullDuplexCall(t.Context())
			require.NoError(t, err)
			require.ErrorIs(t, use(stream), errBroken)
			assert.Zero(t, totals(engine, bidirectional).InFlight)
			assert.EqualValues(t, 1, totals(engine, bidirectional).Failed)
		})
	}
}

func TestHeaderOfTheServerIsPassedOn(t *testing.T) {
	client, _, engine := streaming(t)
	stream, err := client.StreamingOutputCall(t.Context(), &testpb.StreamingOutputCallRequest{})
	require.NoError(t, err)
	header, err := stream.Header()
	require.NoError(t, err)
	assert.Equal(t, []string{"application/grpc"}, header.Get("content-type"))
	assert.EqualValues(t, 1, totals(engine, download).InFlight)
	require.NoError(t, drain(stream))
}

func TestAttemptsOfAnInnerInterceptorAreOneCall(t *testing.T) {
	again := streamsFurtherIn(func(open openStream) (grpc.ClientStream, error) {
		first, err := open()
		if err != nil {
			return nil, err
		}
		if err := first.CloseSend(); err != nil {
			return nil, err
		}
		if err := first.RecvMsg(&testpb.StreamingOutputCallResponse{}); !errors.Is(err, io.EOF) {
			return nil, fmt.Errorf("the first attempt should have ended: %w", err)
		}
		return open()
	})
	client, _, engine := streaming(t, again)
	stream, err := client.FullDuplexCall(t.Context())
	require.NoError(t, err)
	assert.EqualValues(t, 1, totals(engine, bidirectional).InFlight)
	require.NoError(t, stream.CloseSend())
	require.NoError(t, drain(stream))
	assert.Zero(t, totals(engine, bidirectional).InFlight)
	assert.EqualValues(t, 1, totals(engine, bidirectional).Completed)
}

func TestGuardDoesNotKeepGRPCFromRetrying(t *testing.T) {
	const policy = `{"methodConfig": [{"name": [{}], "retryPolicy": {"maxAttempts": 3,
		"initialBackoff": "0.001s", "maxBackoff": "0.001s", "backoffMultiplier": 1, "retryableStatusCodes": ["ABORTED"]}}]}`
	for _, s := range shapes() {
		if s.method == download || s.method == bidirectional {
			continue // the service replies before it fails: too late for another attempt
		}
		t.Run(s.name, func(t *testing.T) {
			var attempts atomic.Int64
			engine := newEngine(t)
			flaky := service{finish: func(context.Context) error {
				if attempts.Add(1) < 3 {
					return status.Error(codes.Aborted, "again")
				}
				return nil
			}}
			client := guard(t, atClient, engine, penstockgrpc.Options{}, flaky, grpc.WithDefaultServiceConfig(policy))
			require.NoError(t, s.call(t.Context(), client))
			assert.EqualValues(t, 3, attempts.Load())
			assert.EqualValues(t, 1, requireEnded(t, engine, s.method).Completed)
		})
	}
}

func TestManyConcurrentStreamsAreAllCounted(t *testing.T) {
	client, _, engine := streaming(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	const streams = 60
	var all sync.WaitGroup
	for i := range streams {
		stream, err := client.FullDuplexCall(ctx)
		require.NoError(t, err)
		switch i % 3 {
		case 0: // abandoned
		case 1: // ended while the context ends
			all.Go(func() { assert.Equal(t, codes.Canceled, status.Code(drain(stream))) })
		case 2:
			require.NoError(t, stream.CloseSend())
			require.NoError(t, drain(stream))
		}
	}
	assert.EqualValues(t, streams*2/3, totals(engine, bidirectional).InFlight)
	cancel()
	all.Wait()
	ended := requireEnded(t, engine, bidirectional)
	assert.EqualValues(t, streams, ended.Completed)
	assert.Zero(t, ended.Failed)
}
