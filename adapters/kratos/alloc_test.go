package penstockkratos_test

import (
	"bytes"
	"context"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/go-kratos/kratos/v2/middleware"
	"github.com/go-kratos/kratos/v2/transport"
	khttp "github.com/go-kratos/kratos/v2/transport/http"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/adapters/adaptertest"
	penstockkratos "github.com/penstock-go/penstock/adapters/kratos"
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/flow"
)

// Refusing a request allocates little more than what kratos needs to send such an error with such fields.
func TestRefusalAllocatesLittle(t *testing.T) {
	engine := newEngine(t, flow.Rule{Name: "orders", Resource: check, Limit: 1, Window: time.Minute})
	guard, err := engine.Entry(t.Context(), check)
	require.NoError(t, err)
	guard.Exit()
	var refusal error
	seen := func(next middleware.Handler) middleware.Handler {
		return func(ctx context.Context, request any) (reply any, err error) {
			reply, err = next(ctx, request)
			refusal = err
			return reply, err
		}
	}
	serve := func(finish func(context.Context) error, with ...middleware.Middleware) func() {
		server := khttp.NewServer(khttp.Middleware(with...))
		server.Route("/").POST("/health", service{finish: finish}.handle)
		return func() {
			r := httptest.NewRequest(http.MethodPost, "/health", bytes.NewBufferString("{}"))
			r.Header.Set("Content-Type", "application/json")
			server.ServeHTTP(httptest.NewRecorder(), r)
		}
	}
	guarded := penstockkratos.Server(engine, penstockkratos.Options{})
	serve(succeed, seen, guarded)()
	require.ErrorIs(t, refusal, core.ErrBlocked)
	bare := serve(func(ctx context.Context) error {
		tr, _ := transport.FromServerContext(ctx)
		tr.ReplyHeader().Set("Retry-After", "60")
		tr.ReplyHeader().Set("RateLimit-Policy", `"orders";q=1;w=60`)
		tr.ReplyHeader().Set("RateLimit", `"orders";r=0;t=60`)
		return refusal
	}, func(next middleware.Handler) middleware.Handler { return next })
	adaptertest.CheckAllocs(t, 1, serve(succeed, guarded), bare, "a refusal over HTTP")
}
