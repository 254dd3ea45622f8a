package penstockconnect_test

import (
	"bytes"
	"context"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"connectrpc.com/connect"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/penstock-go/penstock/adapters/adaptertest"
	penstockconnect "github.com/penstock-go/penstock/adapters/connect"
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/flow"
)

// spent returns an engine that refuses calls of a resource, and says when they can pass.
func spent(t *testing.T, resource string) *core.Engine {
	t.Helper()
	engine := newEngine(t, flow.Rule{Name: "orders", Resource: resource, Limit: 1, Window: time.Minute})
	guard, err := engine.Entry(t.Context(), resource)
	require.NoError(t, err)
	guard.Exit()
	return engine
}

// Refusing a call allocates little more than what connect needs to send such an error.
func TestRefusalAllocatesLittle(t *testing.T) {
	for contentType, body := range map[string]string{
		"application/json":           `"a"`,
		"application/grpc+proto":     "\x00\x00\x00\x00\x03\x0a\x01a",
		"application/grpc-web+proto": "\x00\x00\x00\x00\x03\x0a\x01a",
	} {
		engine := spent(t, create)
		var refusal error
		seen := connect.UnaryInterceptorFunc(func(next connect.UnaryFunc) connect.UnaryFunc {
			return func(ctx context.Context, r connect.AnyRequest) (reply connect.AnyResponse, err error) {
				reply, err = next(ctx, r)
				refusal = err
				return reply, err
			}
		})
		interceptor := penstockconnect.ServerInterceptor(engine, penstockconnect.Options{})
		serve := func(end finish, options ...connect.HandlerOption) func() {
			handler := newHandler(end, options...)
			return func() {
				r := httptest.NewRequest(http.MethodPost, create, bytes.NewBufferString(body))
				r.Header.Set("Content-Type", contentType)
				handler.ServeHTTP(httptest.NewRecorder(), r)
			}
		}
		serve(succeed, connect.WithInterceptors(seen, interceptor))()
		require.ErrorIs(t, refusal, core.ErrBlocked, contentType)
		bare := serve(func(context.Context, http.Header) error { return refusal })
		adaptertest.CheckAllocs(t, 3, serve(succeed, connect.WithInterceptors(interceptor)), bare, contentType)
	}
}

// Each refused call has an error of its own, which interceptors may add to.
func TestErrorsOfRefusalsAreIndependent(t *testing.T) {
	engine := spent(t, "orders")
	options := penstockconnect.Options{Resource: func(context.Context, *penstockconnect.Call) string { return "orders" }, Spread: exact}
	call := penstockconnect.ServerInterceptor(engine, options).WrapUnary(
		func(context.Context, connect.AnyRequest) (connect.AnyResponse, error) { return nil, nil }) //nolint:nilnil // not to be called
	refuse := func() *connect.Error {
		_, err := call(t.Context(), connect.NewRequest(wrapperspb.String("a")))
		refused := new(connect.Error)
		assert.ErrorAs(t, err, &refused)
		return refused
	}
	want := len(refuse().Details())
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			refused := refuse()
			detail, err := connect.NewErrorDetail(wrapperspb.String("mine"))
			assert.NoError(t, err)
			refused.AddDetail(detail)
			refused.Meta().Set("X-Request", "mine")
			refused.Meta().Add("Retry-After", "mine")
		})
	}
	all.Wait()
	refused := refuse()
	assert.Len(t, refused.Details(), want)
	assert.Empty(t, refused.Meta().Values("X-Request"))
	assert.Equal(t, []string{"60"}, refused.Meta().Values("Retry-After"))
}
