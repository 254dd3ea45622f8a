package penstockkratos_test

import (
	"context"
	"errors"
	"net/http"
	"net/netip"
	"strings"
	"testing"
	"time"

	kerrors "github.com/go-kratos/kratos/v2/errors"
	"github.com/go-kratos/kratos/v2/middleware"
	"github.com/go-kratos/kratos/v2/transport"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/penstock-go/penstock/adapters/adaptertest"
	penstockkratos "github.com/penstock-go/penstock/adapters/kratos"
	"github.com/penstock-go/penstock/adapters/outgoing"
	"github.com/penstock-go/penstock/adapters/priority"
	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/rule"
)

// detailOf returns the detail of a type in the status of an error.
func detailOf[T any](err error) (found T) {
	for _, detail := range status.Convert(err).Details() {
		if of, ok := detail.(T); ok {
			return of
		}
	}
	return found
}

func TestCallsAreGuardedOverBothTransports(t *testing.T) {
	everywhere(t, func(t *testing.T, at side, kind transport.Kind) {
		engine := newEngine(t, flow.Rule{Name: "orders", Resource: check, Limit: 1, Window: time.Minute})
		handled := 0
		call := guard(t, at, kind, engine, penstockkratos.Options{}, func(context.Context) error {
			handled++
			return nil
		})
		require.NoError(t, call(t.Context()))
		err := call(t.Context())
		require.Error(t, err)
		assert.Equal(t, 1, handled, "a refused call does not reach its handler")
		of := kerrors.FromError(err)
		assert.EqualValues(t, 429, of.Code)
		assert.Equal(t, penstockkratos.ReasonRateLimited, of.Reason)
		assert.Equal(t, map[string]string{"resource": check, "kind": "flow", "rule": "orders", "retry_after": "1m0s"}, of.Metadata)
		if kind == transport.KindGRPC || at == atClient {
			assert.Equal(t, codes.ResourceExhausted, status.Code(err))
			assert.Equal(t, time.Minute, detailOf[*errdetails.RetryInfo](err).GetRetryDelay().AsDuration())
			assert.Equal(t, check, detailOf[*errdetails.QuotaFailure](err).GetViolations()[0].GetSubject())
		}
		counted := requireEnded(t, engine, check)
		assert.EqualValues(t, 1, counted.Passed)
		assert.EqualValues(t, 1, counted.Blocked)
		assert.Zero(t, counted.Failed)
		if at == atClient {
			var block *core.BlockError
			require.ErrorAs(t, err, &block)
			assert.Equal(t, "orders", block.Rule)
		}
	})
}

func TestHTTPResponseToARefusal(t *testing.T) {
	for _, hide := range []bool{false, true} {
		engine := newEngine(t, flow.Rule{Name: "orders", Resource: check, Limit: 1, Window: time.Minute})
		_, err := engine.Entry(t.Context(), check)
		require.NoError(t, err)
		address := serve(t, transport.KindHTTP, service{finish: succeed}, penstockkratos.Server(engine, penstockkratos.Options{HideRules: hide}))
		client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
		response, err := client.Post("http://"+address+"/health", "application/json", strings.NewReader("{}"))
		require.NoError(t, err)
		require.NoError(t, response.Body.Close())
		assert.Equal(t, http.StatusTooManyRequests, response.StatusCode)
		assert.Equal(t, "60", response.Header.Get("Retry-After"))
		if hide {
			assert.Empty(t, response.Header.Get("RateLimit"))
		} else {
			assert.Equal(t, `"orders";r=0;t=60`, response.Header.Get("RateLimit"))
			assert.Equal(t, `"orders";q=1;w=60`, response.Header.Get("RateLimit-Policy"))
		}
	}
}

// A retry policy of a client of gRPC does not multiply refused calls.
func TestRetryPolicyOfAClientSparesARefusedCall(t *testing.T) {
	engine := newEngine(t, flow.Rule{Resource: check, Limit: 0})
	address := serve(t, transport.KindGRPC, service{finish: succeed}, penstockkratos.Server(engine, penstockkratos.Options{}))
	conn, err := grpc.Dial(address, grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithDefaultServiceConfig( //nolint:staticcheck // of the oldest version
		`{"methodConfig":[{"name":[{}],"retryPolicy":{"maxAttempts":5,"initialBackoff":"0.001s","maxBackoff":"0.001s",`+
			`"backoffMultiplier":1,"retryableStatusCodes":["RESOURCE_EXHAUSTED"]}}]}`))
	require.NoError(t, err)
	defer func() { require.NoError(t, conn.Close()) }()
	var trailer metadata.MD
	_, err = healthpb.NewHealthClient(conn).Check(t.Context(), &healthpb.HealthCheckRequest{}, grpc.Trailer(&trailer))
	require.Equal(t, codes.ResourceExhausted, status.Code(err))
	assert.Equal(t, []string{"-1"}, trailer.Get("grpc-retry-pushback-ms"))
	assert.EqualValues(t, 1, totals(engine, check).Blocked)
}

func TestHideRulesNamesNoRule(t *testing.T) {
	everywhere(t, func(t *testing.T, at side, kind transport.Kind) {
		engine := newEngine(t, flow.Rule{Name: "orders", Resource: check, Limit: 1, Window: time.Minute})
		call := guard(t, at, kind, engine, penstockkratos.Options{HideRules: true}, succeed)
		require.NoError(t, call(t.Context()))
		err := call(t.Context())
		of := kerrors.FromError(err)
		require.EqualValues(t, 429, of.Code)
		assert.NotContains(t, of.Message, "orders")
		assert.Equal(t, map[string]string{"retry_after": "1m0s"}, of.Metadata)
		assert.Nil(t, detailOf[*errdetails.QuotaFailure](err))
	})
}

func TestReasonDecidesOnTheCode(t *testing.T) {
	for reason, want := range map[rule.Reason]struct {
		code   int32
		grpc   codes.Code
		reason string
	}{
		rule.RateLimited: {429, codes.ResourceExhausted, penstockkratos.ReasonRateLimited},
		rule.Overloaded:  {503, codes.Unavailable, penstockkratos.ReasonOverloaded},
		rule.Unavailable: {503, codes.Unavailable, penstockkratos.ReasonUnavailable},
		rule.Denied:      {403, codes.PermissionDenied, penstockkratos.ReasonDenied},
		rule.Injected:    {503, codes.Unavailable, penstockkratos.ReasonInjected},
	} {
		t.Run(reason.String(), func(t *testing.T) {
			everywhere(t, func(t *testing.T, at side, kind transport.Kind) {
				p := &adaptertest.Probe{Reason: reason, RefuseAfter: 1500 * time.Millisecond}
				err := guard(t, at, kind, p.NewEngine(t), penstockkratos.Options{}, succeed)(t.Context())
				of := kerrors.FromError(err)
				assert.Equal(t, want.code, of.Code)
				assert.Equal(t, want.reason, of.Reason)
				if kind == transport.KindGRPC {
					assert.Equal(t, want.grpc, status.Code(err))
				}
				after := ""
				if reason != rule.Denied && reason != rule.Injected {
					after = "1.5s"
				}
				assert.Equal(t, after, of.Metadata["retry_after"])
			})
		})
	}
}

func TestRefusalThatAHandlerPassesOn(t *testing.T) {
	for _, hide := range []bool{false, true} {
		for _, kind := range []transport.Kind{transport.KindHTTP, transport.KindGRPC} {
			inner := newEngine(t, flow.Rule{Name: "database", Resource: "orders.db", Limit: 1, Window: time.Minute})
			_, err := inner.Entry(t.Context(), "orders.db")
			require.NoError(t, err)
			engine := newEngine(t)
			options := penstockkratos.Options{HideRules: hide}
			err = guard(t, atServer, kind, engine, options, func(ctx context.Context) error {
				_, err := inner.Entry(ctx, "orders.db")
				return penstockkratos.Error(err)
			})(t.Context())
			of := kerrors.FromError(err)
			assert.EqualValues(t, 429, of.Code)
			assert.Equal(t, !hide, of.Metadata["rule"] == "database")
			assert.Equal(t, !hide, strings.Contains(of.Message, "database"))
			assert.Equal(t, "1m0s", of.Metadata["retry_after"])
			assert.Zero(t, requireEnded(t, engine, check).Failed, "a refusal further down is no failure")
		}
	}
}

func TestErrorLeavesOtherErrorsAlone(t *testing.T) {
	plain := errors.New("plain")
	coded := kerrors.NotFound("NO", "no")
	require.NoError(t, penstockkratos.Error(nil))
	assert.Equal(t, plain, penstockkratos.Error(plain))
	assert.Equal(t, error(coded), penstockkratos.Error(coded))
	for err, want := range map[error]int{
		core.ErrClosed: 503, core.ErrInvalid: 500, core.ErrBlocked: 429, context.Canceled: 499, context.DeadlineExceeded: 504,
	} {
		made := penstockkratos.Error(err)
		assert.Equal(t, want, kerrors.Code(made))
		assert.ErrorIs(t, made, err)
	}
}

func TestBlockedAndEntryErrorReplaceTheErrors(t *testing.T) {
	everywhere(t, func(t *testing.T, at side, kind transport.Kind) {
		engine := newEngine(t, flow.Rule{Name: "orders", Resource: check, Limit: 0})
		options := penstockkratos.Options{
			Blocked: func(_ context.Context, operation string, refusal *core.BlockError) error {
				return kerrors.New(418, "TEAPOT", refusal.Rule+operation)
			},
			EntryError: func(_ context.Context, _ string, err error) error { return kerrors.New(409, "CLOSED", err.Error()) },
		}
		call := guard(t, at, kind, engine, options, succeed)
		assert.Equal(t, "TEAPOT", kerrors.Reason(call(t.Context())))
		engine.Close()
		assert.Equal(t, "CLOSED", kerrors.Reason(call(t.Context())))
	})
}

func TestCodesFrom500UpAreFailures(t *testing.T) {
	for err, want := range map[error]bool{
		kerrors.NotFound("NO", "no"): false, kerrors.New(429, "NO", "no"): false, kerrors.InternalServer("NO", "no"): true,
		kerrors.ServiceUnavailable("NO", "no"): true, kerrors.GatewayTimeout("NO", "no"): true, kerrors.ClientClosed("NO", "no"): false,
		errors.New("plain"): true, context.Canceled: false, context.DeadlineExceeded: true,
		status.Error(codes.NotFound, "no"): false, status.Error(codes.DataLoss, "no"): true, status.Error(codes.Canceled, "no"): false,
		&core.BlockError{}: false, penstockkratos.Error(&core.BlockError{Reason: rule.Overloaded}): false,
	} {
		assert.Equal(t, want, penstockkratos.IsFailure(err), "%v", err)
	}
}

func TestEndOfACallIsItsOutcome(t *testing.T) {
	for end, want := range map[error]adaptertest.Outcome{
		nil:                                    adaptertest.Succeeded,
		kerrors.NotFound("NO", "no"):           adaptertest.Succeeded,
		kerrors.ServiceUnavailable("NO", "no"): adaptertest.Failed,
		errors.New("no"):                       adaptertest.Failed,
	} {
		everywhere(t, func(t *testing.T, at side, kind transport.Kind) {
			p := new(adaptertest.Probe)
			err := guard(t, at, kind, p.NewEngine(t), penstockkratos.Options{}, func(context.Context) error { return end })(t.Context())
			assert.Equal(t, end == nil, err == nil)
			p.RequireOutcome(t, want)
		})
	}
}

func TestPanicIsAFailure(t *testing.T) {
	everywhere(t, func(t *testing.T, at side, kind transport.Kind) {
		p := new(adaptertest.Probe)
		call := guard(t, at, kind, p.NewEngine(t), penstockkratos.Options{}, func(context.Context) error { panic("on purpose") })
		require.Error(t, call(t.Context()))
		p.RequireOutcome(t, adaptertest.Failed)
	})
}

func TestCancelledCallCountsNeitherWay(t *testing.T) {
	everywhere(t, func(t *testing.T, at side, kind transport.Kind) {
		p := new(adaptertest.Probe)
		begun := make(chan struct{})
		call := guard(t, at, kind, p.NewEngine(t), penstockkratos.Options{}, func(ctx context.Context) error {
			close(begun)
			<-ctx.Done()
			return errors.New("broken off")
		})
		ctx, cancel := context.WithCancel(t.Context())
		go func() {
			<-begun
			cancel()
		}()
		require.Error(t, call(ctx))
		p.RequireOutcome(t, adaptertest.Ignored)
	})
}

func TestCallUnderWayAtItsDeadlineIsAFailure(t *testing.T) {
	p := new(adaptertest.Probe)
	handler := penstockkratos.Server(p.NewEngine(t), penstockkratos.Options{})(func(ctx context.Context, _ any) (any, error) {
		<-ctx.Done()
		return nil, nil //nolint:nilnil // a reply that comes too late
	})
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	_, err := handler(ctx, nil)
	require.NoError(t, err)
	p.RequireOutcome(t, adaptertest.Failed)
}

// withHeader is a middleware of clients that sets a field, as callers do.
func withHeader(pairs ...string) middleware.Middleware {
	return func(next middleware.Handler) middleware.Handler {
		return func(ctx context.Context, request any) (any, error) {
			tr, _ := transport.FromClientContext(ctx)
			for i := 0; i < len(pairs); i += 2 {
				tr.RequestHeader().Set(pairs[i], pairs[i+1])
			}
			return next(ctx, request)
		}
	}
}

func TestAttributes(t *testing.T) {
	everywhere(t, func(t *testing.T, at side, kind transport.Kind) {
		for key, want := range map[string]string{
			"method": check, "metadata:X-Tenant": "a", "metadata:x-tenant": "a", "metadata:x-missing": "",
			"ip": "127.0.0.1", "ipPrefix": "127.0.0.1", "own": "mine",
		} {
			if at == atClient && strings.HasPrefix(key, "ip") {
				want = ""
			}
			p := &adaptertest.Probe{Attribute: key}
			options := penstockkratos.Options{Attributes: func(context.Context, string, any) []core.Option {
				return []core.Option{core.String("own", "mine")}
			}}
			require.NoError(t, guard(t, at, kind, p.NewEngine(t), options, succeed, withHeader("X-Tenant", "a"))(t.Context()))
			seen, _ := p.LastCall().Attribute.Text()
			assert.Equal(t, want, seen, key)
			assert.Equal(t, at == atServer, p.LastCall().Inbound())
		}
	})
}

func TestTrustedProxiesNameTheClient(t *testing.T) {
	local := []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}
	for _, kind := range []transport.Kind{transport.KindHTTP, transport.KindGRPC} {
		for want, options := range map[string]penstockkratos.Options{
			"127.0.0.1": {},
			"192.0.2.7": {TrustedProxies: local},
			"192.0.2.8": {TrustedProxies: local, UseForwarded: true},
		} {
			p := &adaptertest.Probe{Attribute: "ip"}
			fields := withHeader("X-Forwarded-For", "192.0.2.7", "Forwarded", "for=192.0.2.8")
			require.NoError(t, guard(t, atServer, kind, p.NewEngine(t), options, succeed, fields)(t.Context()))
			seen, _ := p.LastCall().Attribute.Text()
			assert.Equal(t, want, seen)
		}
	}
}

func TestOptionsOfACall(t *testing.T) {
	everywhere(t, func(t *testing.T, at side, kind transport.Kind) {
		p := &adaptertest.Probe{Origin: "shop"}
		options := penstockkratos.Options{
			Resource: func(_ context.Context, operation string) string { return "orders" + operation },
			Origin:   func(context.Context) string { return "shop" },
			Tokens: func(_ context.Context, _ string, request any) int {
				if _, ok := request.(*healthpb.HealthCheckRequest); ok {
					return 3
				}
				return 1
			},
		}
		engine := p.NewEngine(t)
		require.NoError(t, guard(t, at, kind, engine, options, succeed)(t.Context()))
		assert.EqualValues(t, 3, p.LastCall().Tokens)
		assert.EqualValues(t, 1, requireEnded(t, engine, "orders"+check).Passed)
	})
}

func TestCallWithoutAResourceIsNotGuarded(t *testing.T) {
	everywhere(t, func(t *testing.T, at side, kind transport.Kind) {
		engine := newEngine(t, flow.Rule{Match: "**", Limit: 0})
		options := penstockkratos.Options{Resource: func(context.Context, string) string { return "" }}
		require.NoError(t, guard(t, at, kind, engine, options, succeed)(t.Context()))
		assert.Empty(t, engine.Snapshot().Resources)
	})
}

func TestCallWithoutATransportIsUnmatched(t *testing.T) {
	engine := newEngine(t, flow.Rule{Resource: penstockkratos.Unmatched, Limit: 0})
	for _, with := range []middleware.Middleware{
		penstockkratos.Server(engine, penstockkratos.Options{PriorityKey: priority.Field}),
		penstockkratos.Client(engine, penstockkratos.Options{PriorityKey: priority.Field}),
	} {
		_, err := with(func(context.Context, any) (any, error) { panic("not to be called") })(t.Context(), nil)
		require.ErrorIs(t, err, core.ErrBlocked)
	}
}

func TestPriorityThatACallerChooses(t *testing.T) {
	all := []netip.Prefix{netip.MustParsePrefix("0.0.0.0/0")}
	low := func(context.Context, string) rule.Priority { return core.PriorityLow }
	for name, row := range map[string]struct {
		options penstockkratos.Options
		want    rule.Priority
	}{
		"nobody reads it":   {penstockkratos.Options{}, core.PriorityNormal},
		"nobody is trusted": {penstockkratos.Options{PriorityKey: priority.Field, Priority: low}, core.PriorityLow},
		"trusted": {penstockkratos.Options{
			PriorityKey: "penstock-priority", PriorityCallers: []priority.Callers{{From: all, Max: core.PriorityHigh}},
		}, core.PriorityHigh},
		"trusted by function": {penstockkratos.Options{
			PriorityKey: priority.Field, PriorityTrust: func(context.Context) (rule.Priority, bool) { return core.PriorityCritical, true },
		}, core.PriorityCritical},
	} {
		for _, kind := range []transport.Kind{transport.KindHTTP, transport.KindGRPC} {
			t.Run(name+", "+kind.String(), func(t *testing.T) {
				p := new(adaptertest.Probe)
				var seen rule.Priority
				call := guard(t, atServer, kind, p.NewEngine(t), row.options, func(ctx context.Context) error {
					seen, _ = core.PriorityFromContext(ctx)
					return nil
				}, withHeader(priority.Field, "critical"))
				require.NoError(t, call(t.Context()))
				assert.Equal(t, row.want, p.LastCall().Priority())
				assert.Equal(t, row.want, seen)
			})
		}
	}
}

func TestClientPassesThePriorityOfItsContextOn(t *testing.T) {
	for _, kind := range []transport.Kind{transport.KindHTTP, transport.KindGRPC} {
		p := new(adaptertest.Probe)
		var sent []string
		call := guard(t, atClient, kind, p.NewEngine(t), penstockkratos.Options{PriorityKey: priority.Field}, func(ctx context.Context) error {
			tr, _ := transport.FromServerContext(ctx)
			sent = tr.RequestHeader().Values(priority.Field)
			return nil
		}, withHeader(priority.Field, "critical")) // of a stranger
		ctx := t.Context()
		if kind == transport.KindGRPC {
			ctx = metadata.AppendToOutgoingContext(ctx, "penstock-priority", "critical")
		}
		require.NoError(t, call(core.ContextWithPriority(ctx, core.PriorityHigh)))
		assert.Equal(t, []string{"high"}, sent)
		assert.Equal(t, core.PriorityHigh, p.LastCall().Priority())
		require.NoError(t, call(ctx))
		_, valid := priority.Parse(sent)
		assert.False(t, valid, "what a stranger has written does not arrive: %q", sent)
	}
}

func throttled(t *testing.T) (penstockkratos.Options, *clock.Virtual) {
	t.Helper()
	virtual := clock.NewVirtual(time.Unix(1_700_000_000, 0))
	throttle, err := outgoing.NewThrottle(outgoing.ThrottleOptions{Clock: virtual, Seed: 7})
	require.NoError(t, err)
	budgets, err := outgoing.NewRetryBudgets(outgoing.RetryOptions{Clock: virtual, Burst: 2})
	require.NoError(t, err)
	return penstockkratos.Options{Throttle: throttle, RetryBudgets: budgets}, virtual
}

func TestRefusalOfAServerPausesTheClient(t *testing.T) {
	for _, kind := range []transport.Kind{transport.KindHTTP, transport.KindGRPC} {
		engine := newEngine(t, flow.Rule{Resource: check, Limit: 1, Window: 5 * time.Second})
		address := serve(t, kind, service{finish: succeed}, penstockkratos.Server(engine, penstockkratos.Options{}))
		options, virtual := throttled(t)
		ours := newEngine(t)
		call := dial(t, kind, address, penstockkratos.Client(ours, options))
		require.NoError(t, call(t.Context()))
		require.Equal(t, penstockkratos.ReasonRateLimited, kerrors.Reason(call(t.Context())))
		err := call(t.Context())
		require.ErrorIs(t, err, outgoing.ErrPaused)
		require.Equal(t, penstockkratos.ReasonOverloaded, kerrors.Reason(err))
		assert.EqualValues(t, 2, requireEnded(t, ours, check).Passed, "a paused call is none of the resource")
		virtual.Advance(7 * time.Second)
		require.Equal(t, penstockkratos.ReasonRateLimited, kerrors.Reason(call(t.Context())), "it is asked again")
	}
}

func TestRetriesHaveABudget(t *testing.T) {
	for _, kind := range []transport.Kind{transport.KindHTTP, transport.KindGRPC} {
		options, _ := throttled(t)
		arrived := 0
		call := guard(t, atClient, kind, newEngine(t), options, func(context.Context) error {
			arrived++
			return kerrors.Conflict("NO", "no")
		})
		ctx := outgoing.WithRetries(t.Context())
		for range 3 { // the call and two retries
			require.Equal(t, 409, kerrors.Code(call(ctx)))
		}
		require.ErrorIs(t, call(ctx), outgoing.ErrRetryBudget)
		assert.Equal(t, 3, arrived)
	}
}

func TestUnreachableTargetIsRejected(t *testing.T) {
	for _, kind := range []transport.Kind{transport.KindHTTP, transport.KindGRPC} {
		options, _ := throttled(t)
		call := dial(t, kind, "127.0.0.1:1", penstockkratos.Client(newEngine(t), options))
		require.Error(t, call(t.Context()))
		targets := options.Throttle.Stats().Targets
		require.Len(t, targets, 1)
		assert.EqualValues(t, 1, targets[0].Rejected)
		assert.Contains(t, targets[0].Target, "127.0.0.1:1")
	}
}
