package penstockconnect_test

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"testing"
	"time"

	"connectrpc.com/connect"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/protobuf/types/known/durationpb"

	penstockconnect "github.com/penstock-go/penstock/adapters/connect"
	"github.com/penstock-go/penstock/adapters/outgoing"
	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/flow"
)

func throttled(t *testing.T) (penstockconnect.Options, *clock.Virtual) {
	t.Helper()
	virtual := clock.NewVirtual(time.Unix(1_700_000_000, 0))
	throttle, err := outgoing.NewThrottle(outgoing.ThrottleOptions{Clock: virtual, Seed: 7})
	require.NoError(t, err)
	budgets, err := outgoing.NewRetryBudgets(outgoing.RetryOptions{Clock: virtual, Burst: 2})
	require.NoError(t, err)
	return penstockconnect.Options{Throttle: throttle, RetryBudgets: budgets}, virtual
}

// atClients runs a test for each wire and each shape of procedure.
func atClients(t *testing.T, test func(t *testing.T, w wire, s shape)) {
	everywhere(t, func(t *testing.T, at side, w wire, s shape) {
		if at == atClient {
			test(t, w, s)
		}
	})
}

func TestRefusalOfAServerPausesTheClient(t *testing.T) {
	atClients(t, func(t *testing.T, w wire, s shape) {
		engine := newEngine(t, flow.Rule{Resource: s.procedure, Limit: 1, Window: 5 * time.Second})
		address := serve(t, newHandler(succeed, connect.WithInterceptors(penstockconnect.ServerInterceptor(engine, penstockconnect.Options{}))))
		options, virtual := throttled(t)
		ours := newEngine(t)
		client := w.clientOf(t, address, s.procedure, connect.WithInterceptors(penstockconnect.ClientInterceptor(ours, options)))
		require.NoError(t, s.call(t.Context(), client))
		require.Equal(t, connect.CodeResourceExhausted, connect.CodeOf(s.call(t.Context(), client)))
		err := s.call(t.Context(), client)
		if s.name == "server stream" {
			err = s.call(t.Context(), client)
		}
		require.ErrorIs(t, err, outgoing.ErrPaused)
		require.ErrorIs(t, err, core.ErrBlocked)
		require.Equal(t, connect.CodeUnavailable, connect.CodeOf(err))
		assert.Equal(t, 6*time.Second, detailOf[*errdetails.RetryInfo](t, err).GetRetryDelay().AsDuration())
		assert.EqualValues(t, 2, requireEnded(t, ours, s.procedure).Passed, "a paused call is none of the resource")
		virtual.Advance(7 * time.Second)
		require.Equal(t, connect.CodeResourceExhausted, connect.CodeOf(s.call(t.Context(), client)), "it is asked again")

		targets := options.Throttle.Stats().Targets
		require.Len(t, targets, 1)
		parsed, err := url.Parse(address)
		require.NoError(t, err)
		assert.Equal(t, parsed.Host, targets[0].Target)
	})
}

func TestRetriesHaveABudget(t *testing.T) {
	atClients(t, func(t *testing.T, w wire, s shape) {
		options, _ := throttled(t)
		options.Throttle = nil
		arrived := 0
		client := guard(t, atClient, w, s.procedure, newEngine(t), options, func(context.Context, http.Header) error {
			arrived++
			return connect.NewError(connect.CodeAborted, errors.New("no"))
		})
		ctx := outgoing.WithRetries(t.Context())
		for range 3 { // the call and two retries
			require.Equal(t, connect.CodeAborted, connect.CodeOf(s.call(ctx, client)))
		}
		require.ErrorIs(t, s.call(ctx, client), outgoing.ErrRetryBudget)
		assert.Equal(t, 3, arrived)
	})
}

func TestRefusalOverGRPCForbidsRetries(t *testing.T) {
	atClients(t, func(t *testing.T, w wire, s shape) {
		engine := newEngine(t, flow.Rule{Resource: s.procedure, Limit: 0})
		address := serve(t, newHandler(succeed, connect.WithInterceptors(penstockconnect.ServerInterceptor(engine, penstockconnect.Options{}))))
		options, _ := throttled(t)
		options.Throttle = nil
		client := w.clientOf(t, address, s.procedure,
			connect.WithInterceptors(penstockconnect.ClientInterceptor(newEngine(t), options)))
		ctx := outgoing.WithRetries(t.Context())
		require.Equal(t, connect.CodeResourceExhausted, connect.CodeOf(s.call(ctx, client)))
		err := s.call(ctx, client)
		assert.Equal(t, w.isGRPC(), errors.Is(err, outgoing.ErrNotRetryable), err)
	})
}

func TestRefusedByARuleTellsTheThrottleNothing(t *testing.T) {
	atClients(t, func(t *testing.T, w wire, s shape) {
		options, _ := throttled(t)
		engine := newEngine(t, flow.Rule{Resource: s.procedure, Limit: 0})
		client := guard(t, atClient, w, s.procedure, engine, options, succeed)
		for range 20 {
			require.ErrorIs(t, s.call(t.Context(), client), core.ErrBlocked)
		}
		for _, target := range options.Throttle.Stats().Targets {
			assert.Zero(t, target.Rejected)
			assert.Zero(t, target.Throttled)
		}
	})
}

func TestTargetAndAnswerOfTheService(t *testing.T) {
	atClients(t, func(t *testing.T, w wire, s shape) {
		options, _ := throttled(t)
		options.Target = func(_ context.Context, c *penstockconnect.Call) string { return "orders" + c.Spec.Procedure }
		options.Answer = func(err error) outgoing.Answer {
			if err == nil {
				return outgoing.Answer{Result: outgoing.Rejected, RetryAfter: time.Second}
			}
			return penstockconnect.Answer(err)
		}
		client := guard(t, atClient, w, s.procedure, newEngine(t), options, succeed)
		require.NoError(t, s.call(t.Context(), client))
		require.ErrorIs(t, s.call(t.Context(), client), outgoing.ErrPaused)
		assert.Equal(t, "orders"+s.procedure, options.Throttle.Stats().Targets[0].Target)
	})
}

func TestAnswer(t *testing.T) {
	coded := func(code connect.Code, after time.Duration, pairs ...string) error {
		err := connect.NewError(code, errors.New("no"))
		if after > 0 {
			detail, failure := connect.NewErrorDetail(&errdetails.RetryInfo{RetryDelay: durationpb.New(after)})
			require.NoError(t, failure)
			err.AddDetail(detail)
		}
		for i := 0; i < len(pairs); i += 2 {
			err.Meta().Add(pairs[i], pairs[i+1])
		}
		return err
	}
	accepted, rejected := outgoing.Answer{Result: outgoing.Accepted}, outgoing.Answer{Result: outgoing.Rejected}
	after := func(d time.Duration) outgoing.Answer {
		return outgoing.Answer{Result: outgoing.Rejected, RetryAfter: d}
	}
	const pushback = "Grpc-Retry-Pushback-Ms"
	for _, row := range []struct {
		err  error
		want outgoing.Answer
	}{
		{nil, accepted},
		{errors.New("plain"), accepted},
		{coded(connect.CodeInternal, time.Second), accepted},
		{coded(connect.CodeCanceled, 0), outgoing.Answer{}},
		{context.Canceled, outgoing.Answer{}},
		{context.DeadlineExceeded, rejected},
		{coded(connect.CodeDeadlineExceeded, 0), rejected},
		{coded(connect.CodeUnavailable, 0), rejected},
		{coded(connect.CodeUnavailable, time.Second), after(time.Second)},
		{coded(connect.CodeResourceExhausted, time.Second, "Retry-After", "3"), after(3 * time.Second)},
		{coded(connect.CodeResourceExhausted, 5*time.Second, "Retry-After", "3"), after(5 * time.Second)},
		{coded(connect.CodeResourceExhausted, 0, "Ratelimit", `"a";r=0;t=7`), after(7 * time.Second)},
		{coded(connect.CodeUnavailable, 0, pushback, "250"), after(250 * time.Millisecond)},
		{coded(connect.CodeUnavailable, 0, pushback, "-1"), outgoing.Answer{Result: outgoing.Rejected, NoRetry: true}},
		{coded(connect.CodeInternal, 0, pushback, "soon"), outgoing.Answer{Result: outgoing.Accepted, NoRetry: true}},
		{coded(connect.CodeInternal, 0, pushback, "1", pushback, "1"), outgoing.Answer{Result: outgoing.Accepted, NoRetry: true}},
	} {
		assert.Equal(t, row.want, penstockconnect.Answer(row.err), "%v", row.err)
	}
}
