package penstockkratos_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	kerrors "github.com/go-kratos/kratos/v2/errors"
	"github.com/go-kratos/kratos/v2/middleware"
	"github.com/go-kratos/kratos/v2/transport"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/penstock-go/penstock/adapters/adaptertest"
	penstockkratos "github.com/penstock-go/penstock/adapters/kratos"
	"github.com/penstock-go/penstock/adapters/nethttp"
	"github.com/penstock-go/penstock/adapters/outgoing"
	"github.com/penstock-go/penstock/adapters/priority"
	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/hotparam"
	"github.com/penstock-go/penstock/rule"
	"github.com/penstock-go/penstock/rules"
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

// The metadata and details of a refusal are those of its transport.
func TestRefusalSaysWhatItsTransportHas(t *testing.T) {
	everywhere(t, func(t *testing.T, at adaptertest.Side, kind transport.Kind) {
		engine := newEngine(t, flow.Rule{Name: "orders", Resource: check, Limit: 1, Window: time.Minute})
		call := guard(t, at, kind, engine, penstockkratos.Options{ShowRules: true}, succeed)
		require.NoError(t, call(t.Context()))
		err := call(t.Context())
		of := kerrors.FromError(err)
		assert.EqualValues(t, 429, of.Code)
		assert.Equal(t, penstockkratos.ReasonRateLimited, of.Reason)
		assert.Equal(t, map[string]string{"resource": check, "kind": "flow", "rule": "orders", "retry_after": "1m0s"}, of.Metadata)
		if kind == transport.KindGRPC || at == adaptertest.AtClient {
			assert.Equal(t, codes.ResourceExhausted, status.Code(err))
			assert.Equal(t, time.Minute, detailOf[*errdetails.RetryInfo](err).GetRetryDelay().AsDuration())
			assert.Equal(t, check, detailOf[*errdetails.QuotaFailure](err).GetViolations()[0].GetSubject())
		}
	})
}

// exact has Retry-After tell all clients the same.
var exact = nethttp.Spread{Share: -1}

func TestHTTPResponseTellsOfTheValueOfTheCaller(t *testing.T) {
	engine := newEngine(t)
	require.NoError(t, engine.Load(rules.Set{HotParam: []hotparam.Rule{
		{Name: "per-user", Resource: check, Param: rule.StringsOf("user"), Limit: 1, Window: time.Hour},
	}}))
	address := serve(t, transport.KindHTTP, service{finish: succeed}, penstockkratos.Server(engine, penstockkratos.Options{
		ShowRules: true,
		Attributes: func(ctx context.Context, _ string, _ any) []core.Option {
			tr, _ := transport.FromServerContext(ctx)
			return []core.Option{core.String("user", tr.RequestHeader().Get("User"))}
		},
	}))
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	partitions := map[string]bool{}
	for _, user := range []string{"ann", "bob"} {
		for _, status := range []int{http.StatusOK, http.StatusTooManyRequests} {
			request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+address+"/health", strings.NewReader("{}"))
			require.NoError(t, err)
			request.Header.Set("Content-Type", "application/json")
			request.Header.Set("User", user)
			response, err := client.Do(request)
			require.NoError(t, err)
			require.NoError(t, response.Body.Close())
			require.Equal(t, status, response.StatusCode)
			if status == http.StatusTooManyRequests {
				assert.Regexp(t, `^"per-user";r=0;t=3[56]\d\d;pk=:[A-Za-z0-9+/]{12}:$`, response.Header.Get("RateLimit"))
				assert.Regexp(t, `^"per-user";q=1;w=3600;pk=:[A-Za-z0-9+/]{12}:$`, response.Header.Get("RateLimit-Policy"))
				partitions[response.Header.Get("RateLimit-Policy")] = true
			}
		}
	}
	assert.Len(t, partitions, 2, "one of each user")
}

// With Fields.Always the answers over HTTP tell of the limits, whether the call succeeds or not.
func TestHTTPResponsesOfCallsThatPassTellOfTheLimits(t *testing.T) {
	for _, result := range []error{nil, kerrors.NotFound("NONE", "no such order")} {
		engine := newEngine(t, flow.Rule{Name: "orders", Resource: check, Limit: 9, Window: time.Minute})
		finish := func(context.Context) error { return result }
		address := serve(t, transport.KindHTTP, service{finish: finish}, penstockkratos.Server(engine, penstockkratos.Options{
			Fields: nethttp.Fields{Always: true, ShowRules: true},
		}))
		client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
		response, err := client.Post("http://"+address+"/health", "application/json", strings.NewReader("{}"))
		require.NoError(t, err)
		require.NoError(t, response.Body.Close())
		assert.Equal(t, result == nil, response.StatusCode == http.StatusOK)
		assert.Regexp(t, `^"orders";r=8(;t=\d+)?$`, response.Header.Get("RateLimit"))
		assert.Equal(t, `"orders";q=9;w=60`, response.Header.Get("RateLimit-Policy"))
	}
}

func TestHTTPResponseToARefusal(t *testing.T) {
	for _, hide := range []bool{false, true} {
		engine := newEngine(t, flow.Rule{Name: "orders", Resource: check, Limit: 1, Window: time.Minute})
		_, err := engine.Entry(t.Context(), check)
		require.NoError(t, err)
		address := serve(t, transport.KindHTTP, service{finish: succeed}, penstockkratos.Server(engine, penstockkratos.Options{ShowRules: !hide, Spread: exact}))
		client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
		response, err := client.Post("http://"+address+"/health", "application/json", strings.NewReader("{}"))
		require.NoError(t, err)
		require.NoError(t, response.Body.Close())
		assert.Equal(t, http.StatusTooManyRequests, response.StatusCode)
		assert.Equal(t, "60", response.Header.Get("Retry-After"))
		if hide {
			assert.Regexp(t, `^"p-[0-9a-f]{12}";r=0;t=60$`, response.Header.Get("RateLimit"))
		} else {
			assert.Equal(t, `"orders";r=0;t=60`, response.Header.Get("RateLimit"))
			assert.Equal(t, `"orders";q=1;w=60`, response.Header.Get("RateLimit-Policy"))
		}
	}
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
			everywhere(t, func(t *testing.T, at adaptertest.Side, kind transport.Kind) {
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
			options := penstockkratos.Options{ShowRules: !hide}
			err = guard(t, adaptertest.AtServer, kind, engine, options, func(ctx context.Context) error {
				_, err := inner.Entry(ctx, "orders.db")
				return penstockkratos.Error(err)
			})(t.Context())
			of := kerrors.FromError(err)
			assert.EqualValues(t, 429, of.Code)
			assert.Equal(t, !hide, of.Metadata["rule"] == "database")
			assert.Equal(t, !hide, strings.Contains(of.Message, "database"))
			assert.Equal(t, "1m0s", of.Metadata["retry_after"])
			assert.Zero(t, adaptertest.RequireEnded(t, engine, check, 1).Failed, "a refusal further down is no failure")
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

func TestOptionsSeeTheRequest(t *testing.T) {
	everywhere(t, func(t *testing.T, at adaptertest.Side, kind transport.Kind) {
		p := new(adaptertest.Probe)
		options := penstockkratos.Options{Tokens: func(_ context.Context, _ string, request any) int {
			if _, ok := request.(*healthpb.HealthCheckRequest); ok {
				return 3
			}
			return 1
		}}
		require.NoError(t, guard(t, at, kind, p.NewEngine(t), options, succeed)(t.Context()))
		assert.EqualValues(t, 3, p.LastCall().Tokens)
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

func TestClientPassesThePriorityOfItsContextOn(t *testing.T) {
	for _, kind := range []transport.Kind{transport.KindHTTP, transport.KindGRPC} {
		p := new(adaptertest.Probe)
		var sent []string
		call := guard(t, adaptertest.AtClient, kind, p.NewEngine(t), penstockkratos.Options{PriorityKey: priority.Field}, func(ctx context.Context) error {
			tr, _ := transport.FromServerContext(ctx)
			sent = tr.RequestHeader().Values(priority.Field)
			return nil
		}, withHeader(priority.Field, "critical")) // of a stranger
		ctx := t.Context()
		if kind == transport.KindGRPC {
			ctx = metadata.AppendToOutgoingContext(ctx, "penstock-priority", "critical")
		}
		require.NoError(t, call(core.ContextWithPriority(ctx, rule.PriorityHigh)))
		assert.Equal(t, []string{"high"}, sent)
		assert.Equal(t, rule.PriorityHigh, p.LastCall().Priority())
		require.NoError(t, call(ctx))
		_, valid := priority.Parse(sent)
		assert.False(t, valid, "what a stranger has written does not arrive: %q", sent)
	}
}

func TestUnreachableTargetIsRejected(t *testing.T) {
	for _, kind := range []transport.Kind{transport.KindHTTP, transport.KindGRPC} {
		throttle, err := outgoing.NewThrottle(outgoing.ThrottleOptions{Clock: clock.NewVirtual(time.Unix(1_700_000_000, 0)), Seed: 7})
		require.NoError(t, err)
		options := penstockkratos.Options{Throttle: throttle}
		call := dial(t, kind, "127.0.0.1:1", penstockkratos.Client(newEngine(t), options))
		require.Error(t, call(t.Context()))
		targets := options.Throttle.Stats().Targets
		require.Len(t, targets, 1)
		assert.EqualValues(t, 1, targets[0].Rejected)
		assert.Contains(t, targets[0].Target, "127.0.0.1:1")
	}
}
