package penstockconnect_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"connectrpc.com/connect"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/protobuf/proto"

	"github.com/penstock-go/penstock/adapters/adaptertest"
	penstockconnect "github.com/penstock-go/penstock/adapters/connect"
	"github.com/penstock-go/penstock/adapters/nethttp"
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/hotparam"
	"github.com/penstock-go/penstock/rule"
	"github.com/penstock-go/penstock/rules"
)

// exact has Retry-After tell all clients the same.
var exact = nethttp.Spread{Share: -1}

// detailOf returns the detail of a type in an error, nil if it has none.
func detailOf[T proto.Message](t *testing.T, err error) (found T) {
	t.Helper()
	var coded *connect.Error
	require.ErrorAs(t, err, &coded)
	for _, detail := range coded.Details() {
		value, err := detail.Value()
		require.NoError(t, err)
		if of, ok := value.(T); ok {
			return of
		}
	}
	return found
}

func metaOf(t *testing.T, err error) http.Header {
	t.Helper()
	var coded *connect.Error
	require.ErrorAs(t, err, &coded)
	return coded.Meta()
}

func TestRefusalTellsOfTheValueOfTheCaller(t *testing.T) {
	engine := newEngine(t)
	require.NoError(t, engine.Load(rules.Set{HotParam: []hotparam.Rule{
		{Name: "per-user", Resource: create, Param: rule.StringsOf("user"), Limit: 1, Window: time.Hour},
	}}))
	user := "ann"
	options := penstockconnect.Options{ShowRules: true, Attributes: func(context.Context, *penstockconnect.Call) []core.Option {
		return []core.Option{core.String("user", user)}
	}}
	client := guard(t, adaptertest.AtServer, wires()[0], create, engine, options, succeed)
	partitions := map[string]bool{}
	for _, user = range []string{"ann", "bob"} {
		require.NoError(t, callUnary(t.Context(), client))
		meta := metaOf(t, callUnary(t.Context(), client))
		assert.Regexp(t, `^"per-user";r=0;t=3[56]\d\d;pk=:[A-Za-z0-9+/]{12}:$`, meta.Get("RateLimit"))
		assert.Regexp(t, `^"per-user";q=1;w=3600;pk=:[A-Za-z0-9+/]{12}:$`, meta.Get("RateLimit-Policy"))
		partitions[meta.Get("RateLimit-Policy")] = true
	}
	assert.Len(t, partitions, 2, "one of each user")
}

// The fields and details of a refusal are those of its protocol.
func TestRefusalSaysWhatItsProtocolHas(t *testing.T) {
	everywhere(t, func(t *testing.T, at adaptertest.Side, w wire, s shape) {
		engine := newEngine(t, flow.Rule{Name: "orders", Resource: s.procedure, Limit: 1, Window: time.Minute})
		client := guard(t, at, w, s.procedure, engine, penstockconnect.Options{ShowRules: true, Spread: exact}, succeed)
		require.NoError(t, s.call(t.Context(), client))
		err := s.call(t.Context(), client)
		require.Equal(t, connect.CodeResourceExhausted, connect.CodeOf(err))
		assert.Equal(t, time.Minute, detailOf[*errdetails.RetryInfo](t, err).GetRetryDelay().AsDuration())
		quota := detailOf[*errdetails.QuotaFailure](t, err).GetViolations()
		require.Len(t, quota, 1)
		assert.Equal(t, s.procedure, quota[0].GetSubject())
		assert.Equal(t, `refused by the flow rule "orders"`, quota[0].GetDescription())
		meta := metaOf(t, err)
		assert.Equal(t, "60", meta.Get("Retry-After"))
		switch {
		case at == adaptertest.AtClient:
			assert.Len(t, meta, 1)
		case w.isGRPC():
			assert.Equal(t, []string{"-1"}, meta.Values("Grpc-Retry-Pushback-Ms"))
			assert.Empty(t, meta.Values("RateLimit"))
		default:
			assert.Equal(t, `"orders";r=0;t=60`, meta.Get("RateLimit"))
			assert.Equal(t, `"orders";q=1;w=60`, meta.Get("RateLimit-Policy"))
			assert.Empty(t, meta.Values("Grpc-Retry-Pushback-Ms"))
		}
	})
}

func TestReasonDecidesOnTheFields(t *testing.T) {
	for reason, want := range map[rule.Reason]struct {
		after    string
		pushback bool
	}{
		rule.RateLimited: {"2", true},
		rule.Overloaded:  {"2", true},
		rule.Denied:      {"", true},
		rule.Injected:    {"", false},
	} {
		t.Run(reason.String(), func(t *testing.T) {
			for _, w := range wires() {
				p := &adaptertest.Probe{Reason: reason, RefuseAfter: 1500 * time.Millisecond}
				err := callUnary(t.Context(), guard(t, adaptertest.AtServer, w, create, p.NewEngine(t), penstockconnect.Options{Spread: exact}, succeed))
				assert.Equal(t, want.after, metaOf(t, err).Get("Retry-After"), w.name)
				assert.Equal(t, want.pushback && w.isGRPC(), metaOf(t, err).Get("Grpc-Retry-Pushback-Ms") == "-1", w.name)
			}
		})
	}
}

func TestHTTPStatusOfARefusal(t *testing.T) {
	engine := newEngine(t, flow.Rule{Name: "orders", Resource: create, Limit: 1, Window: time.Minute})
	url := serve(t, newHandler(succeed, connect.WithInterceptors(penstockconnect.ServerInterceptor(engine, penstockconnect.Options{Spread: exact}))))
	client := wires()[0].httpClient(t)
	for _, want := range []int{http.StatusOK, http.StatusTooManyRequests} {
		response, err := client.Post(url+create, "application/json", strings.NewReader(`"a"`))
		require.NoError(t, err)
		require.NoError(t, response.Body.Close())
		assert.Equal(t, want, response.StatusCode)
		assert.Equal(t, want != http.StatusOK, response.Header.Get("Retry-After") == "60")
		assert.Equal(t, want != http.StatusOK, response.Header.Get("RateLimit") != "")
	}
}

func TestRefusalThatAHandlerPassesOn(t *testing.T) {
	for _, hide := range []bool{false, true} {
		for _, w := range wires() {
			for _, s := range shapes() {
				if s.needsHTTP2 && !w.http2 {
					continue
				}
				inner := newEngine(t, flow.Rule{Name: "database", Resource: "orders.db", Limit: 1, Window: time.Minute})
				_, err := inner.Entry(t.Context(), "orders.db")
				require.NoError(t, err)
				engine := newEngine(t)
				options := penstockconnect.Options{ShowRules: !hide, Spread: exact}
				client := guard(t, adaptertest.AtServer, w, s.procedure, engine, options, func(ctx context.Context, _ http.Header) error {
					_, err := inner.Entry(ctx, "orders.db")
					return penstockconnect.Error(err)
				})
				err = s.call(t.Context(), client)
				require.Equal(t, connect.CodeResourceExhausted, connect.CodeOf(err), w.name)
				assert.Equal(t, time.Minute, detailOf[*errdetails.RetryInfo](t, err).GetRetryDelay().AsDuration())
				assert.Equal(t, []string{"60"}, metaOf(t, err).Values("Retry-After"))
				assert.Equal(t, w.isGRPC(), metaOf(t, err).Get("Grpc-Retry-Pushback-Ms") == "-1")
				if hide {
					assert.NotContains(t, err.Error(), "database")
					assert.Nil(t, detailOf[*errdetails.QuotaFailure](t, err))
				} else {
					assert.Contains(t, err.Error(), "database")
				}
				counted := adaptertest.RequireEnded(t, engine, s.procedure, 1)
				assert.Zero(t, counted.Failed, "a refusal further down is no failure")
			}
		}
	}
}

func TestErrorLeavesOtherErrorsAlone(t *testing.T) {
	plain := errors.New("plain")
	coded := connect.NewError(connect.CodeNotFound, plain)
	require.NoError(t, penstockconnect.Error(nil))
	assert.Equal(t, plain, penstockconnect.Error(plain))
	assert.Equal(t, error(coded), penstockconnect.Error(coded))
	for err, want := range map[error]connect.Code{
		core.ErrClosed: connect.CodeUnavailable, core.ErrInvalid: connect.CodeInternal, core.ErrBlocked: connect.CodeResourceExhausted,
		context.Canceled: connect.CodeCanceled, context.DeadlineExceeded: connect.CodeDeadlineExceeded,
	} {
		made := penstockconnect.Error(err)
		assert.Equal(t, want, connect.CodeOf(made))
		assert.ErrorIs(t, made, err)
	}
}

func TestInterceptorOfTheOtherSideIsAnError(t *testing.T) {
	for _, w := range wires() {
		for _, s := range shapes() {
			if s.needsHTTP2 && !w.http2 {
				continue
			}
			url := serve(t, newHandler(succeed))
			err := s.call(t.Context(), w.clientOf(t, url, s.procedure,
				connect.WithInterceptors(penstockconnect.ServerInterceptor(newEngine(t), penstockconnect.Options{}))))
			require.Equal(t, connect.CodeInternal, connect.CodeOf(err), w.name+string(s.name))
			url = serve(t, newHandler(succeed,
				connect.WithInterceptors(penstockconnect.ClientInterceptor(newEngine(t), penstockconnect.Options{}))))
			err = s.call(t.Context(), w.clientOf(t, url, s.procedure))
			require.Equal(t, connect.CodeInternal, connect.CodeOf(err), w.name+string(s.name))
			assert.ErrorContains(t, err, "ClientInterceptor for clients")
		}
	}
}
