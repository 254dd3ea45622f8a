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
	"google.golang.org/grpc/codes"
	testpb "google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/status"

	penstockgrpc "github.com/penstock-go/penstock/adapters/grpc"
	"github.com/penstock-go/penstock/breaker"
	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/rule"
	"github.com/penstock-go/penstock/rules"
)

func refusal(reason rule.Reason) error {
	return fmt.Errorf("query: %w", &core.BlockError{Resource: "db", Rule: "pool", Reason: reason})
}

func TestOutcomeOfACallForRules(t *testing.T) {
	for _, test := range []struct {
		name       string
		err        error // of the handler
		want       string
		wantClient string // of the same call, guarded at the client
	}{
		{"answered", nil, "ended well", "ended well"},
		{"not found", status.Error(codes.NotFound, ""), "ended well", "ended well"},
		{"quota of the server", status.Error(codes.ResourceExhausted, ""), "ended well", "ended well"},
		{"internal error", status.Error(codes.Internal, ""), "failed", "failed"},
		{"panic", nil, "failed", "failed"},
		{"call that the handler cancelled", context.Canceled, "ignored", ""},
		{"refusal, rate limited", penstockgrpc.Error(refusal(rule.RateLimited)), "ignored", "ended well"},
		{"refusal, overloaded", penstockgrpc.Error(refusal(rule.Overloaded)), "ignored", "failed"},
		{"refusal, denied", penstockgrpc.Error(refusal(rule.Denied)), "ignored", "ended well"},
		{"refusal without a status", refusal(rule.Unavailable), "ignored", "failed"},
	} {
		everywhere(t, func(t *testing.T, at side, s shape) {
			want := test.want
			if at == atClient {
				want = test.wantClient
			}
			if want == "" {
				return
			}
			t.Run(test.name, func(t *testing.T) {
				p := new(probe)
				engine := p.newEngine(t, "")
				client := guard(t, at, engine, penstockgrpc.Options{}, service{finish: func(context.Context) error {
					if test.name == "panic" {
						panic("boom")
					}
					return test.err
				}}, recovered(func(any) {})...)
				_ = s.call(t.Context(), client)
				requireEnded(t, engine, s.method)
				assert.Equal(t, []string{want}, p.outcomes())
			})
		})
	}
}

func TestCallCancelledByItsCallerIsIgnored(t *testing.T) {
	for name, end := range map[string]func() error{
		"answered":       func() error { return nil },
		"internal error": func() error { return status.Error(codes.Internal, "") },
		"panic":          func() error { panic("boom") },
	} {
		everywhere(t, func(t *testing.T, at side, s shape) {
			t.Run(name, func(t *testing.T) {
				p := new(probe)
				engine := p.newEngine(t, "")
				here := make(chan struct{})
				client := guard(t, at, engine, penstockgrpc.Options{}, service{finish: func(ctx context.Context) error {
					close(here)
					<-ctx.Done()
					return end()
				}}, recovered(func(any) {})...)
				ctx, leave := context.WithCancel(t.Context())
				defer leave()
				go func() {
					<-here
					leave()
				}()
				require.Equal(t, codes.Canceled, status.Code(s.call(ctx, client)))
				requireEnded(t, engine, s.method)
				assert.Equal(t, []string{"ignored"}, p.outcomes())
			})
		})
	}
}

func TestCallThatMetItsDeadlineHasFailedEvenWithARefusal(t *testing.T) {
	late := fmt.Errorf("%w: %w", status.Error(codes.DeadlineExceeded, ""), refusal(rule.Overloaded))
	assert.True(t, penstockgrpc.IsFailure(late))
	assert.False(t, penstockgrpc.IsFailure(refusal(rule.Overloaded)))
	assert.False(t, penstockgrpc.IsFailure(penstockgrpc.Error(refusal(rule.Unavailable))))
}

func TestFailureOptionDecidesAboutRefusals(t *testing.T) {
	p := new(probe)
	engine := p.newEngine(t, "")
	options := penstockgrpc.Options{Failure: func(err error) bool { return errors.Is(err, core.ErrBlocked) }}
	s := shapes()[0]
	client := guard(t, atServer, engine, options, service{finish: func(context.Context) error { return refusal(rule.RateLimited) }})
	require.Error(t, s.call(t.Context(), client))
	requireEnded(t, engine, s.method)
	assert.Equal(t, []string{"failed"}, p.outcomes())
}

func TestRefusalOfAnInnerInterceptorIsIgnoredByTheOuterOne(t *testing.T) {
	for _, s := range shapes() {
		t.Run(s.name, func(t *testing.T) {
			outer, inner := new(probe), &probe{reason: rule.Unavailable, refuses: time.Second}
			address, _ := serve(t, service{finish: succeed})
			engine := outer.newEngine(t, "")
			opts := append(guardClient(engine, penstockgrpc.Options{}), guardClient(inner.newEngine(t, ""), penstockgrpc.Options{})...)
			client := testpb.NewTestServiceClient(dial(t, address, opts...))
			require.Equal(t, codes.Unavailable, status.Code(s.call(t.Context(), client)))
			requireEnded(t, engine, s.method)
			assert.Equal(t, []string{"ignored"}, outer.outcomes())
		})
	}
}

func TestCancelledCallsNeitherOpenNorCloseABreaker(t *testing.T) {
	everywhere(t, func(t *testing.T, at side, s shape) {
		engine := newEngine(t)
		require.NoError(t, engine.Load(rules.Set{Breaker: []breaker.Rule{{
			Resource: s.method, Strategy: breaker.ErrorCount, Threshold: 1, OpenFor: time.Second, Probes: 1,
		}}}))
		state := func() string { return engine.Explain(s.method)[0].State }
		next := make(chan func(context.Context) error, 1)
		client := guard(t, at, engine, penstockgrpc.Options{}, service{finish: func(ctx context.Context) error { return (<-next)(ctx) }})
		call := func(end func(context.Context) error) {
			next <- end
			_ = s.call(t.Context(), client)
			requireEnded(t, engine, s.method)
		}
		leave := func() {
			here := make(chan struct{})
			next <- func(ctx context.Context) error {
				close(here)
				<-ctx.Done()
				return ctx.Err()
			}
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			go func() {
				<-here
				cancel()
			}()
			require.Equal(t, codes.Canceled, status.Code(s.call(ctx, client)))
			requireEnded(t, engine, s.method)
		}
		leave()
		require.Equal(t, breaker.Closed, state())
		call(func(context.Context) error { return status.Error(codes.Internal, "") })
		require.Equal(t, breaker.Open, state())
		engine.Clock().(*clock.Virtual).Advance(time.Second)
		leave()
		leave()
		require.Equal(t, breaker.HalfOpen, state())
		call(succeed)
		assert.Equal(t, breaker.Closed, state())
	})
}

func TestRulesGetWhatTheOptionsSayOfACall(t *testing.T) {
	everywhere(t, func(t *testing.T, at side, s shape) {
		p := new(probe)
		engine := p.newEngine(t, "mobile")
		origin := "batch"
		client := guard(t, at, engine, penstockgrpc.Options{
			Origin: func(context.Context) string { return origin },
			Tokens: func(context.Context, string, any) int { return 7 },
			Attributes: func(_ context.Context, fullMethod string, _ any) []core.Option {
				return []core.Option{core.String("user", fullMethod), core.Int("size", 3), core.Priority(core.PriorityLow)}
			},
		}, service{finish: succeed})
		require.NoError(t, s.call(t.Context(), client))
		requireEnded(t, engine, s.method)
		assert.Empty(t, p.outcomes(), "the rule is for another origin")
		origin = "mobile"
		require.NoError(t, s.call(t.Context(), client))
		requireEnded(t, engine, s.method)
		require.Equal(t, []string{"ended well"}, p.outcomes())
		want := rule.Call{Now: engine.Clock().Now(), Tokens: 7, Attribute: rule.String(s.method)}
		want.SetCaller(rule.PriorityLow, at == atServer)
		assert.Equal(t, fmt.Sprintf("%#v", want), fmt.Sprintf("%#v", p.call()))
	})
}

func TestRefusalIsAnsweredByItsReason(t *testing.T) {
	for _, test := range []struct {
		reason  rule.Reason
		code    codes.Code
		details []any
	}{
		{rule.RateLimited, codes.ResourceExhausted, []any{&errdetails.QuotaFailure{}, &errdetails.RetryInfo{}}},
		{rule.Overloaded, codes.Unavailable, []any{&errdetails.RetryInfo{}}},
		{rule.Unavailable, codes.Unavailable, []any{&errdetails.RetryInfo{}}},
		{rule.Injected, codes.Unavailable, []any{&errdetails.RetryInfo{}}},
		{rule.Denied, codes.PermissionDenied, nil},
	} {
		everywhere(t, func(t *testing.T, at side, s shape) {
			t.Run(test.reason.String(), func(t *testing.T) {
				p := &probe{reason: test.reason, refuses: 1500 * time.Millisecond}
				_, outside := refuse(t, at, s, p.newEngine(t, ""), penstockgrpc.Options{})
				answer := status.Convert(outside)
				assert.Equal(t, test.code, answer.Code())
				require.Len(t, answer.Details(), len(test.details))
				for i, detail := range answer.Details() {
					assert.IsType(t, test.details[i], detail)
				}
			})
		})
	}
}
