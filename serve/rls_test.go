package serve_test

import (
	"math"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	ratelimit "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	rls "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	typev3 "github.com/envoyproxy/go-control-plane/envoy/type/v3"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/penstock-go/penstock/adapters/nethttp"
	"github.com/penstock-go/penstock/serve"
)

func TestDescriptorIsACallOfItsResource(t *testing.T) {
	engine, now := newEngine(t, "flow: [{name: two, resource: orders, limit: 2}]")
	client := dialRLS(t, engine, serve.RLSOptions{})
	for _, d := range []string{"resource", "generic_key"} {
		first := ask(t, client, 0, entries(d, "orders"))
		assert.Equal(t, "o:o", codesOf(first))
		assert.Nil(t, first.GetDynamicMetadata())
		assert.Empty(t, first.GetResponseHeadersToAdd())
	}
	refused := ask(t, client, 0, entries("generic_key", "orders"))
	assert.Equal(t, "x:x", codesOf(refused))
	of := refused.GetStatuses()[0]
	assert.Equal(t, "two", of.GetCurrentLimit().GetName())
	assert.EqualValues(t, 2, of.GetCurrentLimit().GetRequestsPerUnit())
	assert.Equal(t, rls.RateLimitResponse_RateLimit_SECOND, of.GetCurrentLimit().GetUnit())
	assert.Zero(t, of.GetLimitRemaining())
	assert.Positive(t, of.GetDurationUntilReset().AsDuration())
	assert.LessOrEqual(t, of.GetDurationUntilReset().AsDuration(), 1100*time.Millisecond)
	assert.Contains(t, string(refused.GetRawBody()), "quota-exceeded")
	header := map[string]string{}
	for _, field := range refused.GetResponseHeadersToAdd() {
		header[field.GetKey()] = field.GetValue()
	}
	assert.Regexp(t, `^"p-[0-9a-f]{12}";r=0`, header["ratelimit"])
	assert.Contains(t, []string{"1", "2"}, header["retry-after"])
	assert.Equal(t, "application/problem+json", header["content-type"])
	metadata := refused.GetDynamicMetadata().AsMap()
	assert.Equal(t, map[string]any{
		"reason": "rateLimited", "resource": "orders", "kind": "flow", "rule": "two", "descriptor": 0.0,
	}, metadata)
	now.Advance(2 * time.Second)
	assert.Equal(t, "o:o", codesOf(ask(t, client, 0, entries("resource", "orders"))))
}

// TestHitsThatAreUsedAlreadyCountThoughTheyAreMoreThanIsLeft does what Envoy does that asks before a request whether
// it may pass, and reports what its response has used (apply_on_stream_done).
func TestHitsThatAreUsedAlreadyCountThoughTheyAreMoreThanIsLeft(t *testing.T) {
	engine, now := newEngine(t, `
serve: {domain: shop, overdraw: true}
flow: [{resource: chat, limit: 1000, window: 1m, algorithm: tokenBucket}]
hotParam: [{resource: chat, param: user, limit: 900, window: 1m}]
`)
	client := dialRLS(t, engine, serve.RLSOptions{})
	chat := func(hits uint64, negative bool) string {
		d := entries("generic_key", "chat", "user", "alice")
		d.HitsAddend, d.IsNegativeHits = wrapperspb.UInt64(hits), negative
		return codesOf(ask(t, client, 0, d))
	}
	assert.Equal(t, "o:o", chat(0, false))
	assert.Equal(t, "o:o", chat(600, false))
	assert.Equal(t, "o:o", chat(0, false), "300 are left")
	assert.Equal(t, "o:o", chat(600, false), "it has been used")
	assert.Equal(t, "x:x", chat(0, false))
	assert.Equal(t, "x:x", chat(1, false))
	now.Advance(10 * time.Second)
	assert.Equal(t, "x:x", chat(0, false), "the bucket was at 200 below nothing")
	now.Advance(2 * time.Minute)
	assert.Equal(t, "o:o", chat(600, false))
	assert.Equal(t, "o:o", chat(600, true))
	passed := ask(t, client, 5000, entries("generic_key", "chat"), entries("generic_key", "other"))
	assert.Equal(t, "oo:o", codesOf(passed))
	assert.Zero(t, passed.GetStatuses()[0].GetLimitRemaining())
	assert.Equal(t, "xo:x", codesOf(ask(t, client, 0, entries("generic_key", "chat"), entries("generic_key", "other"))))
}

func TestDescriptorWithoutARulePasses(t *testing.T) {
	engine, _ := newEngine(t, "flow: []")
	passed := ask(t, dialRLS(t, engine, serve.RLSOptions{}), 0, entries("user", "alice"))
	assert.Equal(t, "o:o", codesOf(passed))
	assert.Nil(t, passed.GetStatuses()[0].GetCurrentLimit())
}

func TestDomainIsTheResourceOfDescriptorsThatNameNone(t *testing.T) {
	engine, _ := newEngine(t, "serve: {domain: shop, resource: 'eu/{generic_key}'}\nflow: [{resource: eu/shop, limit: 0}]")
	client := dialRLS(t, engine, serve.RLSOptions{})
	assert.Equal(t, "x:x", codesOf(ask(t, client, 0, entries("user", "alice"))))
	assert.Equal(t, "x:x", codesOf(ask(t, client, 0, entries("generic_key", ""))))
	_, err := client.ShouldRateLimit(t.Context(), &rls.RateLimitRequest{Domain: "other"})
	assert.Equal(t, codes.InvalidArgument, status.Code(err))
}

func TestEntriesAreAttributes(t *testing.T) {
	engine, _ := newEngine(t, `
hotParam: [{resource: orders, param: user, limit: 1}]
access:
  - {name: nets, resource: addresses, deny: [192.0.2.0/24]}
  - {name: who, resource: callers, attribute: origin, allow: [web]}
`)
	client := dialRLS(t, engine, serve.RLSOptions{})
	alice := entries("generic_key", "orders", "user", "alice")
	assert.Equal(t, "o:o", codesOf(ask(t, client, 0, alice)))
	assert.Equal(t, "o:o", codesOf(ask(t, client, 0, entries("generic_key", "orders", "user", "bob"))))
	assert.Equal(t, "x:x", codesOf(ask(t, client, 0, alice)))
	assert.Equal(t, "o:o", codesOf(ask(t, client, 0, entries("generic_key", "addresses", "remote_address", "198.51.100.1"))))
	denied := ask(t, client, 0, entries("generic_key", "addresses", "remote_address", "192.0.2.7"))
	assert.Equal(t, "x:x", codesOf(denied))
	assert.Equal(t, "denied", denied.GetDynamicMetadata().AsMap()["reason"])
	assert.Nil(t, denied.GetStatuses()[0].GetCurrentLimit())
	assert.Equal(t, "o:o", codesOf(ask(t, client, 0, entries("generic_key", "callers", "origin", "web"))))
	assert.Equal(t, "x:x", codesOf(ask(t, client, 0, entries("generic_key", "callers", "origin", "batch"))))
}

func TestClientsOfOneIPv6NetworkShareTheLimitOfAnAddress(t *testing.T) {
	engine, _ := newEngine(t, "hotParam: [{resource: login, param: ip, limit: 1}]")
	client := dialRLS(t, engine, serve.RLSOptions{})
	assert.Equal(t, "o:o", codesOf(ask(t, client, 0, entries("generic_key", "login", "remote_address", "2001:db8::1"))))
	assert.Equal(t, "x:x", codesOf(ask(t, client, 0, entries("generic_key", "login", "remote_address", "2001:db8::2"))))
	assert.Equal(t, "o:o", codesOf(ask(t, client, 0, entries("generic_key", "login", "remote_address", "2001:db8:0:1::1"))))
}

func TestRefusedHitsTakeNothing(t *testing.T) {
	for _, algorithm := range []string{"slidingWindow", "fixedWindow", "tokenBucket"} {
		t.Run(algorithm, func(t *testing.T) {
			engine, _ := newEngine(t, "flow: [{resource: a, limit: 100, window: 1m, algorithm: "+algorithm+"}]")
			client := dialRLS(t, engine, serve.RLSOptions{})
			assert.Equal(t, "o:o", codesOf(ask(t, client, 60, entries("resource", "a"))))
			assert.Equal(t, "x:x", codesOf(ask(t, client, 60, entries("resource", "a"))))
			last := ask(t, client, 1, entries("resource", "a"))
			assert.Equal(t, "o:o", codesOf(last))
			assert.EqualValues(t, 39, last.GetStatuses()[0].GetLimitRemaining())
		})
	}
}

func TestRequestTakesAllOfItsDescriptorsOrNone(t *testing.T) {
	engine, _ := newEngine(t, `
flow:
  - {resource: full, limit: 0}
  - {resource: a, limit: 10, window: 1m}
  - {resource: b, limit: 10, window: 1m, algorithm: tokenBucket}
hotParam: [{resource: c, param: user, limit: 10, window: 1m}]
`)
	client := dialRLS(t, engine, serve.RLSOptions{})
	all := entries("resource", "a")
	user := entries("resource", "c", "user", "alice")
	for range 3 {
		refused := ask(t, client, 4, all, entries("resource", "full"), entries("resource", "b"), user)
		assert.Equal(t, "oxoo:x", codesOf(refused))
		assert.EqualValues(t, 10, refused.GetStatuses()[0].GetLimitRemaining())
		assert.EqualValues(t, 1, refused.GetDynamicMetadata().AsMap()["descriptor"])
	}
	passed := ask(t, client, 4, all, entries("resource", "b"), user)
	assert.Equal(t, "ooo:o", codesOf(passed))
	for _, of := range passed.GetStatuses() {
		assert.EqualValues(t, 6, of.GetLimitRemaining())
	}
}

func TestHitsOfADescriptorGoBeforeThoseOfTheRequest(t *testing.T) {
	engine, _ := newEngine(t, "flow: [{resource: a, limit: 10, window: 1m}, {resource: b, limit: 10, window: 1m}]")
	client := dialRLS(t, engine, serve.RLSOptions{})
	r := ask(t, client, 3, hits(7, entries("resource", "a")), entries("resource", "b"))
	assert.EqualValues(t, 3, r.GetStatuses()[0].GetLimitRemaining())
	assert.EqualValues(t, 7, r.GetStatuses()[1].GetLimitRemaining())
	for range 3 { // only asks
		r = ask(t, client, 3, hits(0, entries("resource", "a")))
		assert.Equal(t, "o:o", codesOf(r))
		assert.EqualValues(t, 3, r.GetStatuses()[0].GetLimitRemaining())
	}
	for _, many := range []uint64{11, math.MaxInt32 + 1, math.MaxUint64} {
		assert.Equal(t, "x:x", codesOf(ask(t, client, 0, hits(many, entries("resource", "a")))), many)
	}
	assert.Equal(t, "x:x", codesOf(ask(t, client, math.MaxUint32, entries("resource", "a"))))
}

func TestDescriptorThatIsThereTwiceIsTwoCalls(t *testing.T) {
	engine, _ := newEngine(t, "flow: [{resource: a, limit: 3, window: 1h}]")
	client := dialRLS(t, engine, serve.RLSOptions{})
	a := entries("resource", "a")
	passed := ask(t, client, 0, a, a)
	assert.Equal(t, "oo:o", codesOf(passed))
	assert.EqualValues(t, 1, passed.GetStatuses()[1].GetLimitRemaining())
	refused := ask(t, client, 0, a, a)
	assert.Equal(t, "ox:x", codesOf(refused))
	assert.EqualValues(t, 1, refused.GetStatuses()[0].GetLimitRemaining(), "a request that was refused takes nothing")
	a.Limit = &ratelimit.RateLimitDescriptor_RateLimitOverride{RequestsPerUnit: 1000, Unit: typev3.RateLimitUnit_DAY}
	override := ask(t, client, 2, a)
	assert.Equal(t, "x:x", codesOf(override), "rules have the limits")
	assert.EqualValues(t, 3, override.GetStatuses()[0].GetCurrentLimit().GetRequestsPerUnit())
}

// negative has a descriptor give its hits back.
func negative(d *ratelimit.RateLimitDescriptor) *ratelimit.RateLimitDescriptor {
	d.IsNegativeHits = true
	return d
}

func TestNegativeHitsGiveBackWhatWasTakenAndNoMore(t *testing.T) {
	for _, rule := range []string{
		"flow: [{resource: a, limit: 10, window: 1h}]",
		"flow: [{resource: a, limit: 10, window: 1h, algorithm: fixedWindow}]",
		"flow: [{resource: a, limit: 10, window: 1h, algorithm: tokenBucket}]",
		"hotParam: [{resource: a, param: user, limit: 10, window: 1h}]",
	} {
		engine, _ := newEngine(t, rule)
		client := dialRLS(t, engine, serve.RLSOptions{})
		a := func() *ratelimit.RateLimitDescriptor { return entries("resource", "a", "user", "alice") }
		left := func(want int, r *rls.RateLimitResponse) {
			t.Helper()
			assert.EqualValues(t, want, r.GetStatuses()[len(r.GetStatuses())-1].GetLimitRemaining(), rule)
		}
		left(10, ask(t, client, 7, negative(a())))
		left(0, ask(t, client, 10, a()))
		assert.Equal(t, "x:x", codesOf(ask(t, client, 1, a())))
		r := ask(t, client, 7, negative(hits(4, a())))
		assert.Equal(t, "o:o", codesOf(r), "a full limit refuses nobody who gives back")
		left(4, r)
		left(4, ask(t, client, 7, negative(hits(0, a()))))
		left(1, ask(t, client, 3, a()))
		assert.Equal(t, "xo:x", codesOf(ask(t, client, 5, a(), negative(a()))), "tokens are given back after all others have passed")
		left(1, ask(t, client, 0, hits(0, a())))
		left(3, ask(t, client, 1, a(), negative(hits(3, a()))))
		left(10, ask(t, client, math.MaxUint32, negative(a())))
		left(10, ask(t, client, 0, negative(hits(math.MaxUint64, a()))))
		left(0, ask(t, client, 10, a()))
	}
}

func TestShadowRuleIsReportedAndRefusesNothing(t *testing.T) {
	engine, _ := newEngine(t, "flow: [{name: new, resource: a, limit: 0, shadow: true}]")
	r := ask(t, dialRLS(t, engine, serve.RLSOptions{}), 0, entries("resource", "a"))
	assert.Equal(t, "o:o", codesOf(r))
	assert.Equal(t, map[string]any{"shadows": []any{map[string]any{
		"reason": "rateLimited", "resource": "a", "kind": "flow", "rule": "new", "descriptor": 0.0,
	}}}, r.GetDynamicMetadata().AsMap())
}

func TestLimitIsShownInUnitsOfEnvoy(t *testing.T) {
	type unit = rls.RateLimitResponse_RateLimit_Unit
	for _, test := range []struct {
		rule       string
		requests   uint32
		unit       unit
		multiplier uint32
	}{
		{"limit: 5", 5, rls.RateLimitResponse_RateLimit_SECOND, 0},
		{"limit: 5, window: 10s", 5, rls.RateLimitResponse_RateLimit_SECOND, 10},
		{"limit: 5, window: 90s", 5, rls.RateLimitResponse_RateLimit_SECOND, 90},
		{"limit: 5, window: 1m", 5, rls.RateLimitResponse_RateLimit_MINUTE, 0},
		{"limit: 5, window: 15m", 5, rls.RateLimitResponse_RateLimit_MINUTE, 15},
		{"limit: 5, window: 1h", 5, rls.RateLimitResponse_RateLimit_HOUR, 0},
		{"limit: 5, window: 24h", 5, rls.RateLimitResponse_RateLimit_DAY, 0},
		{"limit: 5, window: 500ms", 10, rls.RateLimitResponse_RateLimit_SECOND, 0},
		{"limit: 1, window: 2500ms", 24, rls.RateLimitResponse_RateLimit_MINUTE, 0},
	} {
		engine, _ := newEngine(t, "flow: [{resource: a, algorithm: tokenBucket, "+test.rule+"}]")
		limit := ask(t, dialRLS(t, engine, serve.RLSOptions{}), 0, entries("resource", "a")).GetStatuses()[0].GetCurrentLimit()
		assert.Equal(t, test.requests, limit.GetRequestsPerUnit(), test.rule)
		assert.Equal(t, test.unit, limit.GetUnit(), test.rule)
		assert.Equal(t, test.multiplier, limit.GetUnitMultiplier().GetValue(), test.rule)
	}
}

func TestCallsWaitForNothing(t *testing.T) {
	engine, _ := newEngine(t, "flow: [{resource: a, limit: 1, algorithm: throttle, maxWait: 1h}]")
	client := dialRLS(t, engine, serve.RLSOptions{})
	assert.Equal(t, "o:o", codesOf(ask(t, client, 0, entries("resource", "a"))))
	refused := ask(t, client, 0, entries("resource", "a"))
	assert.Equal(t, "x:x", codesOf(refused))
	assert.Equal(t, durationpb.New(time.Second).AsDuration(), refused.GetStatuses()[0].GetDurationUntilReset().AsDuration())
}

func TestPassedRequestHasFieldsOfTheTightestDescriptor(t *testing.T) {
	engine, _ := newEngine(t, "flow: [{name: wide, resource: a, limit: 9}, {name: tight, resource: b, limit: 3}]")
	client := dialRLS(t, engine, serve.RLSOptions{Fields: nethttp.Fields{Always: true}})
	fields := ask(t, client, 0, entries("resource", "a"), entries("resource", "b")).GetResponseHeadersToAdd()
	require.NotEmpty(t, fields)
	assert.Regexp(t, `^"p-[0-9a-f]{12}";r=2`, fields[0].GetValue())
}

func TestUnservableRequestsEndWithAnError(t *testing.T) {
	engine, _ := newEngine(t, "serve: {domain: shop}\nflow: [{resource: a, limit: 1}]")
	client := dialRLS(t, engine, serve.RLSOptions{MaxDescriptors: 2, MaxEntries: 2})
	a := entries("resource", "a")
	for name, test := range map[string]struct {
		request *rls.RateLimitRequest
		code    codes.Code
	}{
		"no domain":            {&rls.RateLimitRequest{Descriptors: descriptors(a)}, codes.InvalidArgument},
		"another domain":       {&rls.RateLimitRequest{Domain: "x", Descriptors: descriptors(a)}, codes.NotFound},
		"no descriptors":       {&rls.RateLimitRequest{Domain: "shop"}, codes.InvalidArgument},
		"no entries":           {&rls.RateLimitRequest{Domain: "shop", Descriptors: descriptors(a, entries())}, codes.InvalidArgument},
		"too many descriptors": {&rls.RateLimitRequest{Domain: "shop", Descriptors: descriptors(a, a, a)}, codes.InvalidArgument},
		"too many entries": {
			&rls.RateLimitRequest{Domain: "shop", Descriptors: descriptors(entries("a", "", "b", "", "c", ""))}, codes.InvalidArgument,
		},
	} {
		_, err := client.ShouldRateLimit(t.Context(), test.request)
		assert.Equal(t, test.code, status.Code(err), name)
	}
	assert.Equal(t, "o:o", codesOf(ask(t, client, 0, a)), "what cannot be served has taken something")
	engine.Close()
	_, err := client.ShouldRateLimit(t.Context(), &rls.RateLimitRequest{Domain: "shop", Descriptors: descriptors(a)})
	assert.Equal(t, codes.Unavailable, status.Code(err))
}

func TestNamesBeyondTheBoundOfTheEngineShareALimit(t *testing.T) {
	engine, _ := newEngine(t, "flow: [{match: '*', perResource: true, limit: 1}]")
	client := dialRLS(t, engine, serve.RLSOptions{})
	long := strings.Repeat("x", 100_000)
	assert.Equal(t, "o:o", codesOf(ask(t, client, 0, entries("resource", long))))
	assert.Equal(t, "x:x", codesOf(ask(t, client, 0, entries("resource", long))))
	assert.Equal(t, "x:x", codesOf(ask(t, client, 0, entries("resource", long+"y"))))
	for _, r := range engine.Snapshot().Resources {
		assert.Less(t, len(r.Name), 100)
	}
}

func TestLimitIsExactForConcurrentRequests(t *testing.T) {
	const limit, callers, each = 500, 16, 100
	for _, algorithm := range []string{"slidingWindow", "tokenBucket"} {
		t.Run(algorithm, func(t *testing.T) {
			engine, _ := newEngine(t, "flow: [{resource: a, limit: 500, window: 1m, algorithm: "+algorithm+"}, {resource: b, limit: 10000, window: 1m}]")
			client := dialRLS(t, engine, serve.RLSOptions{})
			var passed atomic.Int64
			var group sync.WaitGroup
			for range callers {
				group.Go(func() {
					for range each {
						r, err := client.ShouldRateLimit(t.Context(), &rls.RateLimitRequest{
							Domain: "shop", Descriptors: descriptors(entries("resource", "b"), entries("resource", "a")),
						})
						if assert.NoError(t, err) && r.GetOverallCode() == rls.RateLimitResponse_OK {
							passed.Add(1)
						}
					}
				})
			}
			group.Wait()
			assert.EqualValues(t, limit, passed.Load())
			rest := ask(t, client, 0, hits(0, entries("resource", "b"))).GetStatuses()[0].GetLimitRemaining()
			assert.EqualValues(t, 10_000-limit, rest, "refused requests have taken something")
		})
	}
}
