package penstockconnect_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"connectrpc.com/connect"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/penstock-go/penstock/adapters/adaptertest"
	penstockconnect "github.com/penstock-go/penstock/adapters/connect"
	"github.com/penstock-go/penstock/adapters/outgoing"
	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/flow"
)

func newThrottle(t *testing.T) *outgoing.Throttle {
	t.Helper()
	throttle, err := outgoing.NewThrottle(outgoing.ThrottleOptions{Clock: clock.NewVirtual(time.Unix(1_700_000_000, 0)), Seed: 7})
	require.NoError(t, err)
	return throttle
}

// atClients runs a test for each wire and each shape of procedure.
func atClients(t *testing.T, test func(t *testing.T, w wire, s shape)) {
	everywhere(t, func(t *testing.T, at adaptertest.Side, w wire, s shape) {
		if at == adaptertest.AtClient {
			test(t, w, s)
		}
	})
}

func TestRefusalOverGRPCForbidsRetries(t *testing.T) {
	atClients(t, func(t *testing.T, w wire, s shape) {
		engine := newEngine(t, flow.Rule{Resource: s.procedure, Limit: 0})
		address := serve(t, newHandler(succeed, connect.WithInterceptors(penstockconnect.ServerInterceptor(engine, penstockconnect.Options{}))))
		budgets, err := outgoing.NewRetryBudgets(outgoing.RetryOptions{})
		require.NoError(t, err)
		options := penstockconnect.Options{RetryBudgets: budgets}
		client := w.clientOf(t, address, s.procedure,
			connect.WithInterceptors(penstockconnect.ClientInterceptor(newEngine(t), options)))
		ctx := outgoing.WithRetries(t.Context())
		require.Equal(t, connect.CodeResourceExhausted, connect.CodeOf(s.call(ctx, client)))
		err = s.call(ctx, client)
		assert.Equal(t, w.isGRPC(), errors.Is(err, outgoing.ErrNotRetryable), err)
	})
}

func TestRefusedByARuleTellsTheThrottleNothing(t *testing.T) {
	atClients(t, func(t *testing.T, w wire, s shape) {
		options := penstockconnect.Options{Throttle: newThrottle(t)}
		engine := newEngine(t, flow.Rule{Resource: s.procedure, Limit: 0})
		client := guard(t, adaptertest.AtClient, w, s.procedure, engine, options, succeed)
		for range 20 {
			require.ErrorIs(t, s.call(t.Context(), client), core.ErrBlocked)
		}
		targets := options.Throttle.Stats().Targets
		require.Len(t, targets, 1)
		assert.Zero(t, targets[0].Rejected+targets[0].Throttled)
		assert.Contains(t, targets[0].Target, "127.0.0.1:", "the host of the client's URL")
	})
}

func TestTargetAndAnswerOfTheService(t *testing.T) {
	atClients(t, func(t *testing.T, w wire, s shape) {
		options := penstockconnect.Options{Throttle: newThrottle(t)}
		options.Target = func(_ context.Context, c *penstockconnect.Call) string { return "orders" + c.Spec.Procedure }
		options.Answer = func(err error) outgoing.Answer {
			if err == nil {
				return outgoing.Answer{Result: outgoing.Rejected, RetryAfter: time.Second}
			}
			return penstockconnect.Answer(err)
		}
		client := guard(t, adaptertest.AtClient, w, s.procedure, newEngine(t), options, succeed)
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
