package command_test

import (
	"context"
	"crypto/tls"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	ratelimit "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	quota "github.com/envoyproxy/go-control-plane/envoy/service/rate_limit_quota/v3"
	rls "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	"github.com/penstock-go/penstock/cmd/penstock/internal/command"
	"github.com/penstock-go/penstock/datasource/etcd"
	"github.com/penstock-go/penstock/datasource/etcd/etcdtest"
	"github.com/penstock-go/penstock/serve"
)

func TestServeDividesQuotas(t *testing.T) {
	directory := tree(t, map[string]string{"a.yaml": "flow:\n" +
		"  - {name: rate, resource: shop/a, limit: 500}\n" +
		"  - {name: daily, resource: shop/a, limit: 9, window: 24h, algorithm: fixedWindow}\n" +
		"serve: {domain: shop, resource: 'shop/{resource}'}\n"})
	s := startServing(t, "--rules", directory, "--rlqs")
	s.until(`level=WARN msg="penstock: a rule sets no quota".*daily.*a.yaml:3.*fixed window`)
	stream, err := quota.NewRateLimitQuotaServiceClient(s.dial(insecure.NewCredentials())).StreamRateLimitQuotas(t.Context())
	require.NoError(t, err)
	require.NoError(t, stream.Send(&quota.RateLimitQuotaUsageReports{
		Domain: "shop",
		BucketQuotaUsages: []*quota.RateLimitQuotaUsageReports_BucketQuotaUsage{{
			BucketId: &quota.BucketId{Bucket: map[string]string{"resource": "a"}}, NumRequestsAllowed: 1,
		}},
	}))
	answer, err := stream.Recv()
	require.NoError(t, err)
	require.Len(t, answer.GetBucketAction(), 1)
	bucket := answer.GetBucketAction()[0].GetQuotaAssignmentAction().GetRateLimitStrategy().GetTokenBucket()
	assert.EqualValues(t, 500, bucket.GetTokensPerFill().GetValue())
	assert.Contains(t, s.get("/metrics"), "penstock_serve_quota_buckets 1")
	assert.Equal(t, command.ExitDone, s.stop(), s.log.String())
	_, err = stream.Recv()
	assert.Equal(t, codes.Unavailable, status.Code(err))
	assert.NotContains(t, s.log.String(), "cut off", "a stream kept it from ending")
	validated := user{}.run(t, "validate", "--for", "rlqs", directory)
	assert.Equal(t, command.ExitNo, validated.code)
	assert.Contains(t, validated.out, "a.yaml:3:5")
	assert.Equal(t, command.ExitDone, user{}.run(t, "validate", "--for", "rls", directory).code)
}

func TestServeRefusesRequestsBeyondItsBoundAtOnce(t *testing.T) {
	directory := tree(t, map[string]string{"a.yaml": "flow: [{resource: a, limit: 0}]"})
	s := startServing(t, "--rules", directory, "--max-requests", "1")
	conn := s.dial(insecure.NewCredentials())
	ctx, cancel := context.WithCancel(t.Context())
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		for ctx.Err() == nil { // it is refused if it comes beside one of those below
			// A request of which only the header has come is under way.
			stream, err := conn.NewStream(ctx, &grpc.StreamDesc{ClientStreams: true}, rls.RateLimitService_ShouldRateLimit_FullMethodName)
			if err == nil {
				_ = stream.RecvMsg(new(rls.RateLimitResponse))
			}
		}
	}()
	asked := func() error { _, err := shouldLimit(t.Context(), conn, "shop", "a"); return err }
	require.Eventually(t, func() bool { return status.Code(asked()) == codes.Unavailable }, eventTimeout, time.Millisecond)
	assert.Regexp(t, "penstock_serve_shed_total [1-9]", s.get("/metrics"))
	cancel()
	<-gone
	require.Eventually(t, func() bool { return asked() == nil }, eventTimeout, time.Millisecond)
}

func TestServeReadsCertificatesAgainWhenTheyChange(t *testing.T) {
	t.Parallel()
	directory := tree(t, map[string]string{"rules/a.yaml": "flow: [{resource: a, limit: 0}]"})
	client := func() credentials.TransportCredentials {
		ca, pair := certificates(t, directory)
		return credentials.NewTLS(&tls.Config{RootCAs: ca, MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{pair}})
	}
	file := func(name string) string { return filepath.Join(directory, name) }
	before := client()
	s := startServing(t, "--rules", file("rules"), "--tls-cert", file("cert.pem"), "--tls-key", file("key.pem"), "--tls-client-ca", file("ca.pem"))
	_, err := shouldLimit(t.Context(), s.dial(before), "shop", "a")
	require.NoError(t, err)
	after, address := client(), s.address("grpc")
	require.Eventually(t, func() bool {
		_, err := shouldLimit(t.Context(), dial(t, address, after), "shop", "a")
		return err == nil
	}, eventTimeout, 10*time.Millisecond)
	s.until(`the certificates have changed, and are used`)
	_, err = shouldLimit(t.Context(), s.dial(before), "shop", "a")
	require.Error(t, err, "a client of the CA before")

	require.NoError(t, os.WriteFile(file("cert.pem"), []byte("no certificate"), 0o600))
	require.Eventually(t, func() bool {
		_, err := shouldLimit(t.Context(), dial(t, address, after), "shop", "a")
		assert.NoError(t, err, "what was read before goes on")
		return strings.Contains(s.log.String(), "cannot be used: those before go on")
	}, eventTimeout, 10*time.Millisecond)
}

func TestServeStartsWithACopyWhileEtcdIsAway(t *testing.T) {
	server, _ := startEtcd(t, etcdtest.Options{})
	_, err := server.Client().Put(t.Context(), etcd.Prefix("shop")+"a.yaml", "flow: [{resource: a, limit: 0}]")
	require.NoError(t, err)
	copies := filepath.Join(t.TempDir(), "copies")
	first := startServing(t, "--app", "shop", "--endpoints", server.Endpoint(), "--instance", "one", "--copy", copies)
	code, err := shouldLimit(t.Context(), first.dial(insecure.NewCredentials()), "shop", "a")
	require.NoError(t, err)
	assert.Equal(t, rls.RateLimitResponse_OVER_LIMIT, code)
	require.Equal(t, command.ExitDone, first.stop(), first.log.String())

	second := startServing(t, "--app", "shop", "--endpoints", "127.0.0.1:1", "--instance", "one", "--copy", copies)
	code, err = shouldLimit(t.Context(), second.dial(insecure.NewCredentials()), "shop", "a")
	require.NoError(t, err)
	assert.Equal(t, rls.RateLimitResponse_OVER_LIMIT, code, "by the copy")
}

// askOver asks over HTTP about a request for a path, and returns the status and what nginx hears; 0 if there is no answer.
func askOver(ctx context.Context, url, path string) (status int, meant string) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return 0, err.Error()
	}
	request.Header.Set("X-Forwarded-Uri", path)
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return 0, err.Error()
	}
	_ = response.Body.Close()
	return response.StatusCode, response.Header.Get(serve.StatusField)
}

func TestServeRefusesRequestsOverHTTPBeyondItsBoundAtOnce(t *testing.T) {
	directory := tree(t, map[string]string{"a.yaml": `flow: [{resource: "GET:/slow", limit: 1, window: 1h, algorithm: tokenBucket, maxWait: 24h}]`})
	s := startServing(t, "--rules", directory, "--http", "127.0.0.1:0", "--route", "GET /slow", "--max-requests", "1")
	ctx, cancel := context.WithCancel(t.Context())
	server := "http://" + s.address("http")
	status, meant := askOver(ctx, server+"/", "/slow")
	require.Equal(t, http.StatusOK, status, meant)
	waits := make(chan struct{})
	go func() {
		defer close(waits)
		for ctx.Err() == nil { // it is refused if it comes beside one of those below
			askOver(ctx, server+"/", "/slow")
		}
	}()
	require.Eventually(t, func() bool {
		status, _ := askOver(t.Context(), server+"/", "/elsewhere")
		return status == http.StatusServiceUnavailable
	}, eventTimeout, time.Millisecond)
	status, meant = askOver(t.Context(), server+"/nginx", "/elsewhere")
	assert.Equal(t, http.StatusForbidden, status)
	assert.Equal(t, "503", meant)
	cancel()
	<-waits
	require.Eventually(t, func() bool {
		status, _ := askOver(t.Context(), server+"/", "/elsewhere")
		return status == http.StatusOK
	}, eventTimeout, time.Millisecond)
}

func TestServeFollowsWhatDocumentsSayIsServed(t *testing.T) {
	directory := tree(t, map[string]string{"a.yaml": "flow: [{resource: named, limit: 0}]"})
	s := startServing(t, "--rules", directory)
	client := rls.NewRateLimitServiceClient(s.dial(insecure.NewCredentials()))
	asked := func(domain string) string {
		d := &ratelimit.RateLimitDescriptor{Entries: []*ratelimit.RateLimitDescriptor_Entry{{Key: "resource", Value: "other"}, {Key: "name", Value: "named"}}}
		answer, err := client.ShouldRateLimit(t.Context(), &rls.RateLimitRequest{Domain: domain, Descriptors: []*ratelimit.RateLimitDescriptor{d}})
		if err != nil {
			return status.Code(err).String()
		}
		return answer.GetOverallCode().String()
	}
	assert.Equal(t, "OK", asked("shop"))
	write := func(name, text string) {
		require.NoError(t, os.WriteFile(filepath.Join(directory, name), []byte(text), 0o600))
	}
	write("b.yaml", "serve: {domain: shop, resource: '{name}'}\n")
	require.Eventually(t, func() bool { return asked("shop") == "OVER_LIMIT" }, eventTimeout, time.Millisecond)
	assert.Equal(t, "NotFound", asked("mail"))
	write("c.yaml", "serve: [{domain: mail}, {domain: shop}]\n")
	s.until(`c.yaml:1:25: serve says of the domain \S+ other than the one at b.yaml:1:8`)
	assert.Equal(t, "OK", asked("mail"))
	assert.Equal(t, "OVER_LIMIT", asked("shop"))
	shown := user{}.run(t, "status", "--engine", s.address("admin"))
	assert.Contains(t, shown.out, "c.yaml:1:25")
	require.NoError(t, os.Remove(filepath.Join(directory, "b.yaml")))
	require.Eventually(t, func() bool { return asked("shop") == "OK" }, eventTimeout, time.Millisecond)
}
