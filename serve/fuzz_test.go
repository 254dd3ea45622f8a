package serve

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"log/slog"
	"math"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	common "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	auth "github.com/envoyproxy/go-control-plane/envoy/service/auth/v3"
	quota "github.com/envoyproxy/go-control-plane/envoy/service/rate_limit_quota/v3"
	ratelimit "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/rules"
)

// fuzzedEngine is an engine on a virtual clock, with few resources and a rule of each kind that is served.
func fuzzedEngine(f *testing.F) *core.Engine {
	engine := core.New(core.Config{
		Clock: clock.NewVirtual(time.Unix(1_000_000, 0)), Logger: slog.New(slog.DiscardHandler), MaxResources: 100,
	})
	f.Cleanup(engine.Close)
	set, err := rules.Parse("a.yaml", []byte(`
flow:
  - {match: "*", perResource: true, limit: 100, window: 1h}
  - {name: bucket, resource: orders, limit: 50, window: 1h, algorithm: tokenBucket}
  - {name: never, resource: closed, limit: 0}
hotParam: [{resource: orders, param: user, limit: 10, window: 1h}, {name: ip, resource: orders, param: ip, limit: 10}]
access: [{name: nets, resource: orders, deny: [192.0.2.0/24]}]
`))
	require.NoError(f, err)
	require.NoError(f, engine.Load(set))
	return engine
}

// expected fails unless an error is none, or what a service says of a message that is none of its.
func expected(t *testing.T, err error) {
	t.Helper()
	if code := status.Code(err); code != codes.OK && code != codes.InvalidArgument {
		t.Fatal(err)
	}
}

func FuzzRLS(f *testing.F) {
	engine := fuzzedEngine(f)
	service := NewRLS(engine, RLSOptions{})
	d := func(keysAndValues ...string) *common.RateLimitDescriptor {
		d := &common.RateLimitDescriptor{}
		for i := 0; i < len(keysAndValues); i += 2 {
			d.Entries = append(d.Entries, &common.RateLimitDescriptor_Entry{Key: keysAndValues[i], Value: keysAndValues[i+1]})
		}
		return d
	}
	negative, many, override := d("generic_key", "orders"), d("generic_key", "orders"), d("generic_key", "closed")
	negative.IsNegativeHits = true
	many.HitsAddend = wrapperspb.UInt64(math.MaxUint64)
	override.Limit = &common.RateLimitDescriptor_RateLimitOverride{RequestsPerUnit: 1000}
	same := d("resource", "orders", "user", "alice", "user", "bob", "remote_address", "192.0.2.1", "ip", "x", "", "")
	for _, request := range []*ratelimit.RateLimitRequest{
		{},
		{Domain: "shop", Descriptors: []*common.RateLimitDescriptor{same, same, negative, many, override, {}, nil}, HitsAddend: 7},
		{Domain: "shop", Descriptors: []*common.RateLimitDescriptor{same, same, negative, many}, HitsAddend: math.MaxUint32},
		{Domain: strings.Repeat("x", 2000), Descriptors: []*common.RateLimitDescriptor{d("user", strings.Repeat("y", 9000))}},
		{Domain: "a\x00/ b", Descriptors: []*common.RateLimitDescriptor{d("generic_key", "\u202e\n\r\x7f")}},
	} {
		wire, err := proto.Marshal(request)
		require.NoError(f, err)
		f.Add(wire)
	}
	f.Fuzz(func(t *testing.T, wire []byte) {
		var request ratelimit.RateLimitRequest
		if proto.Unmarshal(wire, &request) != nil {
			return
		}
		answer, err := service.ShouldRateLimit(t.Context(), &request)
		expected(t, err)
		if err != nil {
			return
		}
		over := false
		for _, s := range answer.GetStatuses() {
			over = over || s.GetCode() == ratelimit.RateLimitResponse_OVER_LIMIT
		}
		if len(answer.GetStatuses()) != len(request.GetDescriptors()) || over != (answer.GetOverallCode() == ratelimit.RateLimitResponse_OVER_LIMIT) {
			t.Fatal(&request, answer)
		}
		wellFormed(t, answer.GetResponseHeadersToAdd())
		for _, r := range engine.Snapshot().Resources {
			for _, of := range r.Rules {
				if q := of.Quota; q != nil && float64(q.Remaining) > max(q.Limit, 0) {
					t.Fatalf("%d of %v are left of rule %s on %s: %v", q.Remaining, q.Limit, of.Name, r.Name, &request)
				}
			}
		}
		if _, err := proto.Marshal(answer); err != nil {
			t.Fatal(err)
		}
	})
}

// wellFormed fails if a header field could not be written as it is.
func wellFormed(t *testing.T, fields []*corev3.HeaderValue) {
	t.Helper()
	for _, field := range fields {
		if strings.ContainsAny(field.GetKey()+field.GetValue(), "\r\n\x00") || field.GetKey() == "" {
			t.Fatalf("%q: %q", field.GetKey(), field.GetValue())
		}
	}
}

func FuzzExtAuthz(f *testing.F) {
	service, err := NewExtAuthz(fuzzedEngine(f), HTTPOptions{Routes: []string{"/orders/{id}"}, OriginHeader: "x-caller"})
	require.NoError(f, err)
	of := func(path string, headers map[string]string) *auth.CheckRequest {
		return &auth.CheckRequest{Attributes: &auth.AttributeContext{
			Request: &auth.AttributeContext_Request{Http: &auth.AttributeContext_HttpRequest{
				Method: "GET", Path: path, Host: "shop", Headers: headers,
				HeaderMap: &corev3.HeaderMap{Headers: []*corev3.HeaderValue{{Key: "X-\xff", RawValue: []byte("\r\n\x00")}}},
			}},
			ContextExtensions: map[string]string{ResourceExtension: "orders"},
		}}
	}
	for _, request := range []*auth.CheckRequest{
		{},
		of("/orders/7?x=%zz", map[string]string{"x-forwarded-for": "192.0.2.1, \u202e", "cookie": "a=b;;=;\x7f"}),
		of("*", nil), of("orders", nil), of("//../orders/%2f..", map[string]string{":path": "x", "": "y", "a b": "c\r\nd"}),
	} {
		if wire, err := proto.Marshal(request); err == nil {
			f.Add(wire)
		}
	}
	f.Fuzz(func(t *testing.T, wire []byte) {
		var request auth.CheckRequest
		if proto.Unmarshal(wire, &request) != nil {
			return
		}
		answer, err := service.Check(t.Context(), &request)
		expected(t, err)
		if err != nil {
			return
		}
		denied := answer.GetDeniedResponse()
		if (denied == nil) != (answer.GetStatus().GetCode() == int32(codes.OK)) {
			t.Fatal(answer)
		}
		for _, field := range append(denied.GetHeaders(), answer.GetOkResponse().GetHeaders()...) {
			wellFormed(t, []*corev3.HeaderValue{field.GetHeader()})
		}
		if _, err := proto.Marshal(answer); err != nil {
			t.Fatal(err)
		}
	})
}

func FuzzForwardAuth(f *testing.F) {
	handler, err := NewForwardAuth(fuzzedEngine(f), ForwardAuthOptions{
		HTTPOptions: HTTPOptions{Routes: []string{"/orders/{id}"}, OriginHeader: "X-Caller"}, ResourceHeader: "Penstock-Resource",
	})
	require.NoError(f, err)
	for _, fields := range []string{
		"X-Forwarded-Uri: /orders/7?x=1\r\nX-Forwarded-Method: GET\r\nX-Forwarded-For: 192.0.2.1\r\n",
		"X-Forwarded-Uri: //orders/../%2e%2e/\r\nX-Forwarded-Method: \x7f\r\nX-Forwarded-For: ,,x\r\nX-Forwarded-Host: a b\r\n",
		"X-Forwarded-Uri: *\r\n", "X-Forwarded-Uri: http://x/orders/7\r\n", "Penstock-Resource: orders\r\nCookie: a=b;;=\r\n", "",
		"X-Forwarded-Uri: /a\r\nX-Forwarded-Uri: /b\r\nX-Caller: \u202e\r\n",
	} {
		f.Add([]byte("GET / HTTP/1.1\r\nHost: x\r\n" + fields + "\r\n"))
	}
	f.Fuzz(func(t *testing.T, wire []byte) {
		request, err := http.ReadRequest(bufio.NewReader(bytes.NewReader(wire)))
		if err != nil {
			return
		}
		request.RemoteAddr = "127.0.0.1:5000"
		answer := httptest.NewRecorder()
		handler.ServeHTTP(answer, request.WithContext(t.Context()))
		switch answer.Code {
		case 200, 400, 403, 429:
		default:
			t.Fatal(answer.Code, answer.Body)
		}
	})
}

// fuzzedStream is a stream of one report, which ends then.
type fuzzedStream struct {
	grpc.ServerStream
	ctx     context.Context //nolint:containedctx // it is a stream
	message *quota.RateLimitQuotaUsageReports
}

func (s *fuzzedStream) Context() context.Context                 { return s.ctx }
func (s *fuzzedStream) Send(*quota.RateLimitQuotaResponse) error { return nil }
func (s *fuzzedStream) Recv() (*quota.RateLimitQuotaUsageReports, error) {
	message := s.message
	if message == nil {
		return nil, io.EOF
	}
	s.message = nil
	return message, nil
}

func FuzzRLQS(f *testing.F) {
	service := NewRLQS(fuzzedEngine(f), RLQSOptions{MaxBuckets: 50, MaxShares: 60, MaxStreamBuckets: 20})
	f.Cleanup(service.Close)
	for _, elapsed := range []*durationpb.Duration{nil, {Seconds: 5}, {Seconds: math.MaxInt64, Nanos: -1}, {Seconds: -5, Nanos: math.MinInt32}} {
		wire, err := proto.Marshal(&quota.RateLimitQuotaUsageReports{Domain: "shop", BucketQuotaUsages: []*quota.RateLimitQuotaUsageReports_BucketQuotaUsage{
			{BucketId: &quota.BucketId{Bucket: map[string]string{"resource": "orders", "user": "alice"}}, NumRequestsAllowed: math.MaxUint64, TimeElapsed: elapsed},
			{BucketId: &quota.BucketId{}},
			{},
			{BucketId: &quota.BucketId{Bucket: map[string]string{"": strings.Repeat("x", 2000)}}},
		}})
		require.NoError(f, err)
		f.Add(wire)
	}
	f.Fuzz(func(t *testing.T, wire []byte) {
		message := new(quota.RateLimitQuotaUsageReports)
		if proto.Unmarshal(wire, message) != nil {
			return
		}
		expected(t, service.StreamRateLimitQuotas(&fuzzedStream{ctx: t.Context(), message: message}))
		q := service.quotas
		q.mu.Lock()
		defer q.mu.Unlock()
		for _, b := range q.buckets {
			for _, s := range b.shares {
				if math.IsNaN(s.demand) || math.IsInf(s.demand, 0) || s.demand < 0 || math.IsNaN(s.part) || s.part < 0 {
					t.Fatal(s.demand, s.part)
				}
			}
		}
	})
}
