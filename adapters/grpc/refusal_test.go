package penstockgrpc_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	penstockgrpc "github.com/penstock-go/penstock/adapters/grpc"
	"github.com/penstock-go/penstock/adapters/nethttp"
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/rule"
)

// refuse makes one call and returns what it ended with, as an interceptor of the
// guarded side saw it and as it came to the caller.
func refuse(t *testing.T, at side, s shape, engine *core.Engine, options penstockgrpc.Options) (inside, outside error) {
	t.Helper()
	reached := service{finish: func(context.Context) error {
		assert.Fail(t, "the call was made after all")
		return nil
	}}
	client := guard(t, at, engine, options, reached, outcomes(func(err error) { inside = err })...)
	outside = s.call(t.Context(), client)
	if at == atServer {
		return inside, outside
	}
	require.NoError(t, inside, "the call must not reach the server")
	return outside, outside
}

func TestRefusedCallEndsWithResourceExhausted(t *testing.T) {
	everywhere(t, func(t *testing.T, at side, s shape) {
		engine := newEngine(t, flow.Rule{Name: "closed", Resource: s.method, Limit: 0})
		inside, outside := refuse(t, at, s, engine, penstockgrpc.Options{ShowRules: true})

		var block *core.BlockError
		require.ErrorAs(t, inside, &block)
		require.ErrorIs(t, inside, core.ErrBlocked)
		assert.Equal(t, "closed", block.Rule)

		answer := status.Convert(outside)
		assert.Equal(t, codes.ResourceExhausted, answer.Code())
		assert.Equal(t, block.Error(), answer.Message())
		require.Len(t, answer.Details(), 1, "no RetryInfo: such a call never passes")
		quota := answer.Details()[0].(*errdetails.QuotaFailure)
		require.Len(t, quota.GetViolations(), 1)
		assert.Equal(t, s.method, quota.GetViolations()[0].GetSubject())
		assert.Equal(t, `refused by the flow rule "closed"`, quota.GetViolations()[0].GetDescription())

		counted := totals(engine, s.method)
		assert.EqualValues(t, 1, counted.Blocked)
		assert.Zero(t, counted.Passed+counted.Failed)
	})
}

func TestRefusalHasTheRetryDelay(t *testing.T) {
	everywhere(t, func(t *testing.T, at side, s shape) {
		engine := newEngine(t, flow.Rule{Resource: s.method, Limit: 1, Window: time.Minute})
		guard, err := engine.Entry(t.Context(), s.method)
		require.NoError(t, err)
		guard.Exit()
		inside, outside := refuse(t, at, s, engine, penstockgrpc.Options{Spread: nethttp.Spread{Share: -1}})

		var block *core.BlockError
		require.ErrorAs(t, inside, &block)
		require.Positive(t, block.RetryAfter)
		var retry *errdetails.RetryInfo
		for _, detail := range status.Convert(outside).Details() {
			if found, ok := detail.(*errdetails.RetryInfo); ok {
				retry = found
			}
		}
		require.NotNil(t, retry)
		assert.Equal(t, block.RetryAfter, retry.GetRetryDelay().AsDuration())
	})
}

func TestPermanentRefusalHasNoRetryDelay(t *testing.T) {
	block := &core.BlockError{Resource: "r", Rule: "closed", RetryAfter: rule.Never}
	for _, detail := range status.Convert(penstockgrpc.Error(block)).Details() {
		_, tells := detail.(*errdetails.RetryInfo)
		assert.False(t, tells)
	}
	assert.Equal(t, "penstock: the call was refused", status.Convert(penstockgrpc.Error(block)).Message())
}

func TestBlockedOptionReplacesTheError(t *testing.T) {
	everywhere(t, func(t *testing.T, at side, s shape) {
		engine := newEngine(t, flow.Rule{Resource: s.method, Limit: 0})
		_, err := refuse(t, at, s, engine, penstockgrpc.Options{
			Blocked: func(_ context.Context, fullMethod string, refusal *core.BlockError) error {
				return status.Error(codes.Unavailable, fullMethod+" "+refusal.Rule)
			},
		})
		assert.Equal(t, codes.Unavailable, status.Code(err))
		assert.Equal(t, s.method+" "+s.method, status.Convert(err).Message())
	})
}

func TestRefusalThatHidesRulesNamesNothing(t *testing.T) {
	everywhere(t, func(t *testing.T, at side, s shape) {
		engine := newEngine(t, flow.Rule{Name: "secret", Resource: s.method, Limit: 1, Window: time.Minute})
		passed, err := engine.Entry(t.Context(), s.method)
		require.NoError(t, err)
		passed.Exit()
		_, err = refuse(t, at, s, engine, penstockgrpc.Options{})
		answer := status.Convert(err)
		assert.Equal(t, codes.ResourceExhausted, answer.Code())
		assert.Regexp(t, `^penstock: the call was refused, retry after [0-9m]+s$`, answer.Message())
		require.Len(t, answer.Details(), 1)
		assert.IsType(t, &errdetails.RetryInfo{}, answer.Details()[0])
		assert.NotContains(t, answer.Proto().String(), "secret")
	})
}

func TestRefusalInAHandlerNamesNothingWhereRulesAreHidden(t *testing.T) {
	for _, s := range shapes() {
		t.Run(s.name, func(t *testing.T) {
			engine := newEngine(t, flow.Rule{Name: "secret", Resource: "orders", Limit: 0})
			handler := service{finish: func(ctx context.Context) error {
				_, err := engine.Entry(ctx, "orders")
				return fmt.Errorf("of orders: %w", penstockgrpc.Error(err))
			}}
			var inside error
			client := guard(t, atServer, engine, penstockgrpc.Options{}, handler, outcomes(func(err error) { inside = err })...)
			answer := status.Convert(s.call(t.Context(), client))
			assert.Equal(t, codes.ResourceExhausted, answer.Code())
			assert.Equal(t, "penstock: the call was refused", answer.Message())
			assert.Empty(t, answer.Details())
			assert.ErrorIs(t, inside, core.ErrBlocked, "interceptors further out find it")
		})
	}
}

func TestEntryErrorOptionReplacesTheError(t *testing.T) {
	everywhere(t, func(t *testing.T, at side, s shape) {
		engine := newEngine(t)
		engine.Close()
		_, err := refuse(t, at, s, engine, penstockgrpc.Options{
			EntryError: func(_ context.Context, fullMethod string, err error) error {
				return status.Error(codes.Aborted, fullMethod+" "+err.Error())
			},
		})
		assert.Equal(t, codes.Aborted, status.Code(err))
		assert.Equal(t, s.method+" "+core.ErrClosed.Error(), status.Convert(err).Message())

		_, err = refuse(t, at, s, engine, penstockgrpc.Options{
			EntryError: func(context.Context, string, error) error { return nil },
		})
		assert.Equal(t, codes.Unavailable, status.Code(err), "it never ends well")
	})
}

func TestRefusedCallNeverSucceeds(t *testing.T) {
	everywhere(t, func(t *testing.T, at side, s shape) {
		engine := newEngine(t, flow.Rule{Resource: s.method, Limit: 0})
		_, err := refuse(t, at, s, engine, penstockgrpc.Options{
			Blocked: func(context.Context, string, *core.BlockError) error { return nil },
		})
		assert.Equal(t, codes.ResourceExhausted, status.Code(err))
	})
}

func TestClosedEngineIsUnavailable(t *testing.T) {
	everywhere(t, func(t *testing.T, at side, s shape) {
		engine := newEngine(t)
		engine.Close()
		inside, outside := refuse(t, at, s, engine, penstockgrpc.Options{
			Blocked: func(context.Context, string, *core.BlockError) error { return errors.New("not blocked by a rule") },
		})
		require.ErrorIs(t, inside, core.ErrClosed)
		assert.Equal(t, codes.Unavailable, status.Code(outside))
	})
}

func TestSenselessTokensAreInternal(t *testing.T) {
	everywhere(t, func(t *testing.T, at side, s shape) {
		engine := newEngine(t)
		inside, outside := refuse(t, at, s, engine, penstockgrpc.Options{
			Tokens: func(context.Context, string, any) int { return 0 },
		})
		require.ErrorIs(t, inside, core.ErrInvalid)
		assert.Equal(t, codes.Internal, status.Code(outside))
	})
}

// slow is a rule under which the first call passes and the next one waits.
func slow(resource string) flow.Rule {
	return flow.Rule{Resource: resource, Limit: 1, Algorithm: flow.Throttle, MaxWait: time.Minute}
}

func TestCallThatIsCancelledWhileItWaitsIsCanceled(t *testing.T) {
	everywhere(t, func(t *testing.T, at side, s shape) {
		engine := newEngine(t, slow(s.method))
		inside := make(chan error, 2)
		outer := outcomes(func(err error) { inside <- err })
		client := guard(t, at, engine, penstockgrpc.Options{}, service{finish: succeed}, outer...)
		require.NoError(t, s.call(t.Context(), client))
		require.NoError(t, <-inside)

		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- s.call(ctx, client) }()
		require.Eventually(t, func() bool { return totals(engine, s.method).Waiting == 1 }, eventTimeout, interval)
		cancel()

		err := <-ended
		assert.Equal(t, codes.Canceled, status.Code(err))
		if at == atServer {
			err = <-inside
		}
		require.ErrorIs(t, err, context.Canceled)
		assert.Equal(t, codes.Canceled, status.Code(err))
		assert.EqualValues(t, 1, requireEnded(t, engine, s.method).Passed)
		assert.Zero(t, totals(engine, s.method).Waiting)
	})
}

func TestCallWhoseTimeEndsWhileItWaitsIsDeadlineExceeded(t *testing.T) {
	everywhere(t, func(t *testing.T, at side, s shape) {
		engine := newEngine(t, slow(s.method))
		guard, err := engine.Entry(t.Context(), s.method)
		require.NoError(t, err)
		guard.Exit()
		inside, outside := refuseInTime(t, at, s, engine)
		require.ErrorIs(t, inside, context.DeadlineExceeded)
		assert.Equal(t, codes.DeadlineExceeded, status.Code(inside))
		assert.Equal(t, codes.DeadlineExceeded, status.Code(outside))
	})
}

// refuseInTime is refuse for a call that has 20 ms at the guarded side.
func refuseInTime(t *testing.T, at side, s shape, engine *core.Engine) (inside, outside error) {
	const limit = 20 * time.Millisecond
	outer := outcomes(func(err error) { inside = err })
	ctx := t.Context()
	if at == atClient {
		limited, cancel := context.WithTimeout(ctx, limit)
		defer cancel()
		ctx = limited
	} else {
		outer = append(outer, limitServer(limit)...)
	}
	outside = s.call(ctx, guard(t, at, engine, penstockgrpc.Options{}, service{finish: succeed}, outer...))
	if at == atClient {
		inside = outside
	}
	return inside, outside
}

// limitServer gives the calls of a server little time.
func limitServer(limit time.Duration) []any {
	return []any{
		grpc.ChainUnaryInterceptor(func(ctx context.Context, request any, _ *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
			ctx, cancel := context.WithTimeout(ctx, limit)
			defer cancel()
			return handler(ctx, request)
		}),
		grpc.ChainStreamInterceptor(func(service any, stream grpc.ServerStream, _ *grpc.StreamServerInfo, handler grpc.StreamHandler) error {
			ctx, cancel := context.WithTimeout(stream.Context(), limit)
			defer cancel()
			return handler(service, limitedStream{stream, ctx})
		}),
	}
}

type limitedStream struct {
	grpc.ServerStream
	ctx context.Context
}

func (s limitedStream) Context() context.Context { return s.ctx }

func TestErrorLeavesOtherErrorsAlone(t *testing.T) {
	for _, err := range []error{
		nil, errors.New("of the handler"), status.Error(codes.NotFound, "no such order"),
		penstockgrpc.Error(&core.BlockError{}),
	} {
		assert.Equal(t, err, penstockgrpc.Error(err))
	}
}

func TestErrorTextIsThatOfTheStatus(t *testing.T) {
	err := penstockgrpc.Error(&core.BlockError{Resource: "r", Kind: "flow", Rule: "x"})
	assert.EqualError(t, err, `rpc error: code = ResourceExhausted desc = penstock: the call was refused`)
}

func TestRefusalOfAnUnreadableNameHasNoDetails(t *testing.T) {
	everywhere(t, func(t *testing.T, at side, s shape) {
		engine := newEngine(t, flow.Rule{Match: "*", Limit: 1, Window: time.Hour})
		require.NoError(t, engine.Do(t.Context(), "\xff", func(context.Context) error { return nil }))
		_, err := refuse(t, at, s, engine, penstockgrpc.Options{
			ShowRules: true,
			Resource:  func(context.Context, string) string { return "\xff" },
		})
		assert.Equal(t, codes.ResourceExhausted, status.Code(err))
		assert.Empty(t, status.Convert(err).Details())
	})
}
