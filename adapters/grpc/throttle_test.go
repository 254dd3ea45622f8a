package penstockgrpc_test

import (
	"context"
	"sync/atomic"
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
	"google.golang.org/protobuf/types/known/durationpb"

	penstockgrpc "github.com/penstock-go/penstock/adapters/grpc"
	"github.com/penstock-go/penstock/adapters/outgoing"
	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/flow"
)

func throttled(t *testing.T) (penstockgrpc.Options, *clock.Virtual) {
	t.Helper()
	virtual := clock.NewVirtual(time.Unix(1_700_000_000, 0))
	throttle, err := outgoing.NewThrottle(outgoing.ThrottleOptions{Clock: virtual, Seed: 7})
	require.NoError(t, err)
	budgets, err := outgoing.NewRetryBudgets(outgoing.RetryOptions{Clock: virtual, Burst: 2})
	require.NoError(t, err)
	return penstockgrpc.Options{Throttle: throttle, RetryBudgets: budgets}, virtual
}

func statsOf(t *testing.T, options *penstockgrpc.Options) outgoing.TargetStats {
	t.Helper()
	targets := options.Throttle.Stats().Targets
	require.Len(t, targets, 1)
	return targets[0]
}

func wantsPause(code codes.Code, after time.Duration) error {
	s, _ := status.New(code, "busy").WithDetails(&errdetails.RetryInfo{RetryDelay: durationpb.New(after)})
	return s.Err()
}

// everyShape runs a test for each shape of method.
func everyShape(t *testing.T, test func(t *testing.T, s shape)) {
	for _, s := range shapes() {
		t.Run(s.name, func(t *testing.T) { test(t, s) })
	}
}

// TestServerThatServesAThirdIsAskedForTwoThirds counts on both sides.
func TestServerThatServesAThirdIsAskedForTwoThirds(t *testing.T) {
	const rate, capacity, seconds = 300, 100, 10
	options, virtual := throttled(t)
	var arrived, served atomic.Int64
	refill, tokens := virtual.Now(), 0.0
	client := guard(t, atClient, newEngine(t), options, service{finish: func(context.Context) error {
		arrived.Add(1)
		now := virtual.Now()
		tokens = min(tokens+now.Sub(refill).Seconds()*capacity, 20)
		refill = now
		if tokens < 1 {
			return status.Error(codes.ResourceExhausted, "busy")
		}
		tokens--
		served.Add(1)
		return nil
	}})
	refused := 0
	for i := range seconds * rate {
		if i == 2*rate { // the throttle has found out
			refused = 0
			arrived.Store(0)
			served.Store(0)
		}
		if err := callUnary(t.Context(), client); status.Code(err) == codes.Unavailable {
			require.ErrorIs(t, err, outgoing.ErrThrottled)
			refused++
		}
		virtual.Advance(time.Second / rate)
	}
	const asked = (seconds - 2) * rate
	assert.EqualValues(t, asked, int64(refused)+arrived.Load(), "what is not refused here arrives")
	assert.InEpsilon(t, (seconds-2)*capacity, served.Load(), 0.05, "the server does what it can")
	assert.InEpsilon(t, 2*served.Load(), arrived.Load(), 0.08, "and is asked twice that")
}

func TestRetryInfoPausesTheTarget(t *testing.T) {
	everyShape(t, func(t *testing.T, s shape) {
		options, virtual := throttled(t)
		var arrived atomic.Int64
		client := guard(t, atClient, newEngine(t), options, service{finish: func(context.Context) error {
			if arrived.Add(1) == 1 {
				return wantsPause(codes.Unavailable, 5*time.Second)
			}
			return nil
		}})
		if s.method == testpb.TestService_UnaryCall_FullMethodName || s.name == "client stream" {
			require.Equal(t, codes.Unavailable, status.Code(s.call(t.Context(), client)))
			err := s.call(t.Context(), client)
			require.ErrorIs(t, err, outgoing.ErrPaused)
			require.ErrorIs(t, err, core.ErrBlocked)
			require.Equal(t, codes.Unavailable, status.Code(err))
			assert.Equal(t, 6*time.Second, status.Convert(err).Details()[0].(*errdetails.RetryInfo).GetRetryDelay().AsDuration())
			virtual.Advance(6 * time.Second)
			require.NoError(t, s.call(t.Context(), client))
			assert.EqualValues(t, 2, arrived.Load())
			return
		}
		// A stream that has sent a message was accepted.
		require.Equal(t, codes.Unavailable, status.Code(s.call(t.Context(), client)))
		require.NoError(t, s.call(t.Context(), client))
		assert.EqualValues(t, 2, statsOf(t, &options).Accepted)
	})
}

func TestStreamRefusedByTheServerPausesTheTarget(t *testing.T) {
	everyShape(t, func(t *testing.T, s shape) {
		options, _ := throttled(t)
		refusing, _ := serve(t, testpb.UnimplementedTestServiceServer{},
			grpc.ChainUnaryInterceptor(func(context.Context, any, *grpc.UnaryServerInfo, grpc.UnaryHandler) (any, error) {
				return nil, wantsPause(codes.ResourceExhausted, time.Second)
			}),
			grpc.ChainStreamInterceptor(func(any, grpc.ServerStream, *grpc.StreamServerInfo, grpc.StreamHandler) error {
				return wantsPause(codes.ResourceExhausted, time.Second)
			}))
		client := testpb.NewTestServiceClient(dial(t, refusing, guardClient(newEngine(t), options)...))
		require.Equal(t, codes.ResourceExhausted, status.Code(s.call(t.Context(), client)))
		require.ErrorIs(t, s.call(t.Context(), client), outgoing.ErrPaused)
		assert.EqualValues(t, 1, statsOf(t, &options).Rejected)
	})
}

func TestPushbackOfAServerIsObeyed(t *testing.T) {
	everyShape(t, func(t *testing.T, s shape) {
		options, virtual := throttled(t)
		pushback := "2500"
		refuse := func(setTrailer func(metadata.MD)) error {
			setTrailer(metadata.Pairs("grpc-retry-pushback-ms", pushback))
			return status.Error(codes.Unavailable, "busy")
		}
		address, _ := serve(t, testpb.UnimplementedTestServiceServer{},
			grpc.ChainUnaryInterceptor(func(ctx context.Context, _ any, _ *grpc.UnaryServerInfo, _ grpc.UnaryHandler) (any, error) {
				return nil, refuse(func(md metadata.MD) { assert.NoError(t, grpc.SetTrailer(ctx, md)) })
			}),
			grpc.ChainStreamInterceptor(func(_ any, stream grpc.ServerStream, _ *grpc.StreamServerInfo, _ grpc.StreamHandler) error {
				return refuse(stream.SetTrailer)
			}))
		client := testpb.NewTestServiceClient(dial(t, address, guardClient(newEngine(t), options)...))
		require.Equal(t, codes.Unavailable, status.Code(s.call(t.Context(), client)))
		assert.Equal(t, 3*time.Second, statsOf(t, &options).PausedFor, "2.5 s, and a fifth until all pass")

		virtual.Advance(3 * time.Second)
		pushback = "-1"
		ctx := outgoing.WithRetries(t.Context())
		require.NotErrorIs(t, s.call(ctx, client), core.ErrBlocked)
		require.ErrorIs(t, s.call(ctx, client), outgoing.ErrNotRetryable)
		assert.Zero(t, statsOf(t, &options).PausedFor)
		require.NotErrorIs(t, s.call(t.Context(), client), core.ErrBlocked, "other calls go on")
	})
}

func TestRetriesBeyondTheBudgetAreNotSent(t *testing.T) {
	everyShape(t, func(t *testing.T, s shape) {
		options, _ := throttled(t)
		var arrived atomic.Int64
		engine := newEngine(t)
		client := guard(t, atClient, engine, options, service{finish: func(context.Context) error {
			arrived.Add(1)
			return status.Error(codes.Internal, "broken")
		}})
		ctx := outgoing.WithRetries(t.Context())
		for range 3 { // the call, and a burst of two retries
			require.Equal(t, codes.Internal, status.Code(s.call(ctx, client)))
		}
		err := s.call(ctx, client)
		require.ErrorIs(t, err, outgoing.ErrRetryBudget)
		assert.Equal(t, codes.Unavailable, status.Code(err))
		assert.EqualValues(t, 3, arrived.Load())
		assert.EqualValues(t, 3, requireEnded(t, engine, s.method).Passed, "a call that is not sent is none of the resource")
	})
}

func TestRefusalsOfThrottlesCanBeHiddenAndReplaced(t *testing.T) {
	options, _ := throttled(t)
	finish := func(context.Context) error { return wantsPause(codes.Unavailable, 5*time.Second) }
	client := guard(t, atClient, newEngine(t), options, service{finish: finish})
	require.Error(t, callUnary(t.Context(), client))
	err := callUnary(t.Context(), client)
	require.ErrorIs(t, err, outgoing.ErrPaused)
	assert.Equal(t, "penstock: the call was refused, retry after 6s", status.Convert(err).Message())

	options, _ = throttled(t)
	options.Blocked = func(_ context.Context, method string, refusal *core.BlockError) error {
		return status.Error(codes.Aborted, method+" "+refusal.Rule)
	}
	client = guard(t, atClient, newEngine(t), options, service{finish: finish})
	require.Error(t, callUnary(t.Context(), client))
	assert.Equal(t, codes.Aborted, status.Code(callUnary(t.Context(), client)))
}

func TestCancelledAndLocallyRefusedCallsTellNothingOfTheTarget(t *testing.T) {
	everyShape(t, func(t *testing.T, s shape) {
		options, _ := throttled(t)
		client := guard(t, atClient, newEngine(t, flow.Rule{Match: "*", Limit: 0}), options, service{finish: succeed})
		require.ErrorIs(t, s.call(t.Context(), client), core.ErrBlocked)
		client = guard(t, atClient, newEngine(t), options, service{finish: succeed})
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		require.Equal(t, codes.Canceled, status.Code(s.call(ctx, client)))
		for _, stats := range options.Throttle.Stats().Targets {
			assert.Zero(t, stats.Accepted+stats.Rejected)
		}
	})
}

func TestServerThatCannotBeReachedRejects(t *testing.T) {
	everyShape(t, func(t *testing.T, s shape) {
		options, _ := throttled(t)
		address, stop := serve(t, service{finish: succeed})
		stop()
		client := testpb.NewTestServiceClient(dial(t, address, guardClient(newEngine(t), options)...))
		require.Equal(t, codes.Unavailable, status.Code(s.call(t.Context(), client)))
		assert.EqualValues(t, 1, statsOf(t, &options).Rejected)
	})
}

func TestTargetAndAnswerCanBeChosen(t *testing.T) {
	everyShape(t, func(t *testing.T, s shape) {
		options, _ := throttled(t)
		target := ""
		options.Target = func(_ context.Context, conn, method string) string {
			assert.NotEmpty(t, conn)
			assert.Equal(t, s.method, method)
			return target
		}
		options.Answer = func(error, metadata.MD) outgoing.Answer {
			return outgoing.Answer{Result: outgoing.Rejected, RetryAfter: time.Second}
		}
		client := guard(t, atClient, newEngine(t), options, service{finish: succeed})
		for range 3 {
			require.NoError(t, s.call(t.Context(), client), "a call without a target is not throttled")
		}
		for _, target = range []string{"ann", "bob"} {
			require.NoError(t, s.call(t.Context(), client))
			require.ErrorIs(t, s.call(t.Context(), client), outgoing.ErrPaused)
		}
	})
}

func TestAnswerSaysWhatTheEndOfACallMeans(t *testing.T) {
	pushback := func(values ...string) metadata.MD { return metadata.MD{"grpc-retry-pushback-ms": values} }
	paused := func(d time.Duration) outgoing.Answer {
		return outgoing.Answer{Result: outgoing.Rejected, RetryAfter: d}
	}
	noRetry := outgoing.Answer{Result: outgoing.Rejected, NoRetry: true}
	busy := status.Error(codes.Unavailable, "busy")
	for name, test := range map[string]struct {
		err     error
		trailer metadata.MD
		want    outgoing.Answer
	}{
		"served":                         {nil, nil, outgoing.Answer{Result: outgoing.Accepted}},
		"failed":                         {status.Error(codes.Internal, ""), nil, outgoing.Answer{Result: outgoing.Accepted}},
		"aborted, to be retried":         {wantsPause(codes.Aborted, time.Second), pushback("100"), outgoing.Answer{Result: outgoing.Accepted}},
		"cancelled":                      {status.Error(codes.Canceled, ""), nil, outgoing.Answer{}},
		"cancelled context":              {context.Canceled, nil, outgoing.Answer{}},
		"deadline":                       {context.DeadlineExceeded, nil, paused(0)},
		"exhausted":                      {status.Error(codes.ResourceExhausted, ""), nil, paused(0)},
		"retry info":                     {wantsPause(codes.ResourceExhausted, time.Minute), nil, paused(time.Minute)},
		"negative retry info":            {wantsPause(codes.ResourceExhausted, -time.Minute), nil, paused(0)},
		"pushback":                       {busy, pushback("250"), paused(250 * time.Millisecond)},
		"no pushback time":               {busy, pushback("0"), paused(0)},
		"longer of the two":              {wantsPause(codes.Unavailable, time.Second), pushback("250"), paused(time.Second)},
		"negative pushback":              {busy, pushback("-1"), noRetry},
		"bad pushback":                   {busy, pushback("soon"), noRetry},
		"too large a pushback":           {busy, pushback("99999999999999999999"), noRetry},
		"several pushbacks":              {busy, pushback("1", "2"), noRetry},
		"negative pushback, retry info":  {wantsPause(codes.Unavailable, time.Second), pushback("-1"), outgoing.Answer{Result: outgoing.Rejected, RetryAfter: time.Second, NoRetry: true}},
		"negative pushback, not refused": {status.Error(codes.Internal, ""), pushback("-1"), outgoing.Answer{Result: outgoing.Accepted, NoRetry: true}},
	} {
		assert.Equal(t, test.want, penstockgrpc.Answer(test.err, test.trailer), name)
	}
}
