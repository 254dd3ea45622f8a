package serve_test

import (
	"strconv"
	"testing"
	"time"

	ratelimit "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	auth "github.com/envoyproxy/go-control-plane/envoy/service/auth/v3"
	rls "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/penstock-go/penstock/serve"
)

func TestEndOfACallGivesItsPlaceBackAndNoTokens(t *testing.T) {
	engine, _ := newEngine(t, `
isolation: [{name: places, resource: render, limit: 2, maxAge: 30s}]
flow: [{name: rate, resource: render, limit: 4, window: 1h}]
`)
	client := dialRLS(t, engine, serve.RLSOptions{})
	one, two := []string{"resource", "render", "page", "1"}, []string{"resource", "render", "page", "2"}
	asked := func(d *ratelimit.RateLimitDescriptor) string { return codesOf(ask(t, client, 0, d)) }
	assert.Equal(t, "o:o", asked(entries(one...)))
	assert.Equal(t, "o:o", asked(entries(two...)))
	refused := ask(t, client, 0, entries(two...))
	assert.Equal(t, "x:x", codesOf(refused))
	assert.Equal(t, "places", refused.GetDynamicMetadata().AsMap()["rule"])
	assert.Equal(t, "o:o", asked(negative(entries("resource", "render", "page", "3"))), "there is no such call")
	assert.Equal(t, "x:x", asked(entries(one...)))
	assert.Equal(t, "o:o", asked(negative(hits(0, entries(one...)))), "it ends none")
	assert.Equal(t, "x:x", asked(entries(one...)))
	assert.Equal(t, "o:o", asked(negative(entries(one...))))
	assert.Equal(t, "o:o", asked(entries(two...)))
	assert.Equal(t, "o:o", asked(negative(hits(100, entries(two...)))), "one call ends, however many hits")
	assert.Equal(t, "o:o", asked(entries(one...)))
	assert.Equal(t, "x:x", asked(entries(one...)))
	assert.Equal(t, "o:o", asked(negative(entries(one...))))
	assert.Equal(t, "o:o", asked(negative(entries(two...))))
	refused = ask(t, client, 0, entries(one...))
	assert.Equal(t, "rate", refused.GetDynamicMetadata().AsMap()["rule"], "ends have given tokens back")
}

func TestPlaceOfACallThatNobodyEndsIsGivenBackAtItsMaxAge(t *testing.T) {
	engine, now := newEngine(t, "isolation: [{resource: render, limit: 2, maxAge: 10s}]")
	client := dialRLS(t, engine, serve.RLSOptions{MaxHolds: 2})
	for i := range 4 {
		for j := range 2 {
			assert.Equal(t, "o:o", codesOf(ask(t, client, 0, entries("resource", "render", "id", strconv.Itoa(2*i+j)))))
		}
		assert.Equal(t, "x:x", codesOf(ask(t, client, 0, entries("resource", "render"))))
		now.Advance(11 * time.Second)
		assert.Equal(t, "o:o", codesOf(ask(t, client, 0, negative(entries("resource", "render", "id", strconv.Itoa(2*i))))), "it is too late")
	}
}

func TestEachValueHasItsPlaces(t *testing.T) {
	engine, _ := newEngine(t, "hotParam: [{resource: render, param: user, concurrency: 1, maxAge: 10s}]")
	client := dialRLS(t, engine, serve.RLSOptions{})
	alice, bob := []string{"resource", "render", "user", "alice"}, []string{"resource", "render", "user", "bob"}
	assert.Equal(t, "oo:o", codesOf(ask(t, client, 0, entries(alice...), entries(bob...))))
	assert.Equal(t, "xo:x", codesOf(ask(t, client, 0, entries(alice...), entries("resource", "other"))))
	assert.Equal(t, "oo:o", codesOf(ask(t, client, 0, negative(entries(alice...)), entries("resource", "other"))))
	assert.Equal(t, "ox:x", codesOf(ask(t, client, 0, entries(alice...), entries(bob...))))
	assert.Equal(t, "o:o", codesOf(ask(t, client, 0, entries(alice...))), "a refused request has kept a place")
}

func TestRequestThatNeedsMoreHoldsThanThereMayBeTakesNothing(t *testing.T) {
	engine, _ := newEngine(t, "isolation: [{resource: render, limit: 10, maxAge: 10s}, {resource: print, limit: 1, maxAge: 10s}]")
	client := dialRLS(t, engine, serve.RLSOptions{MaxHolds: 2})
	render, printed := entries("resource", "render"), entries("resource", "print")
	assert.Equal(t, "o:o", codesOf(ask(t, client, 0, render)))
	_, err := client.ShouldRateLimit(t.Context(), &rls.RateLimitRequest{Domain: "shop", Descriptors: descriptors(printed, render)})
	require.Equal(t, codes.Unavailable, status.Code(err))
	assert.Equal(t, "o:o", codesOf(ask(t, client, 0, printed)))
	assert.Equal(t, "o:o", codesOf(ask(t, client, 0, negative(entries("resource", "print")))))
	assert.Equal(t, "o:o", codesOf(ask(t, client, 0, printed)))
}

func TestProtocolsWithoutAnEndDoNotDecideOnCallsThatNeedOne(t *testing.T) {
	engine, _ := newEngine(t, "isolation: [{resource: unmatched, limit: 1, maxAge: 10s}]")
	authz, err := serve.NewExtAuthz(engine, serve.HTTPOptions{})
	require.NoError(t, err)
	for range 2 {
		_, err = authz.Check(t.Context(), &auth.CheckRequest{Attributes: &auth.AttributeContext{
			Request: &auth.AttributeContext_Request{Http: &auth.AttributeContext_HttpRequest{Method: "GET", Path: "/"}},
		}})
		assert.Equal(t, codes.InvalidArgument, status.Code(err))
		assert.ErrorContains(t, err, "does not say when one has ended")
	}
}
