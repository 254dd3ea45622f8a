package command_test

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"io"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	ratelimit "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	rls "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"

	"github.com/penstock-go/penstock/cmd/penstock/internal/command"
	"github.com/penstock-go/penstock/datasource/etcd"
	"github.com/penstock-go/penstock/datasource/etcd/etcdtest"
)

// servers is a penstock serve that runs.
type servers struct {
	t     *testing.T
	log   notes
	end   context.CancelFunc
	ended chan int
}

// startServing runs penstock serve on free ports.
func startServing(t *testing.T, args ...string) *servers {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	s := &servers{t: t, end: cancel, ended: make(chan int, 1)}
	if !slices.Contains(args, "--admin") {
		args = append(args, "--admin", "127.0.0.1:0")
	}
	args = append([]string{"serve", "--grpc", "127.0.0.1:0"}, args...)
	go func() {
		s.ended <- command.Run(ctx, command.Env{
			In: strings.NewReader(""), Out: new(bytes.Buffer), Err: &s.log, Getenv: func(string) string { return "" },
		}, args)
	}()
	t.Cleanup(func() {
		cancel()
		if code, open := <-s.ended; open {
			assert.Equal(t, command.ExitDone, code, s.log.String())
		}
	})
	return s
}

// stop ends the server as SIGTERM does, and returns the exit code.
func (s *servers) stop() int {
	s.end()
	code := <-s.ended
	close(s.ended)
	return code
}

// until waits until the log matches, and returns what the first group is.
func (s *servers) until(pattern string) string {
	s.t.Helper()
	var found []string
	require.Eventually(s.t, func() bool {
		found = regexp.MustCompile(pattern).FindStringSubmatch(s.log.String())
		return found != nil
	}, eventTimeout, 5*time.Millisecond, pattern)
	return found[len(found)-1]
}

// address is that of what is served.
func (s *servers) address(of string) string { return s.until(`for=` + of + ` address=(\S+)`) }

func (s *servers) dial(with credentials.TransportCredentials) *grpc.ClientConn {
	s.t.Helper()
	return dial(s.t, s.address("grpc"), with)
}

func dial(t *testing.T, address string, with credentials.TransportCredentials) *grpc.ClientConn {
	t.Helper()
	conn, err := grpc.NewClient(address, grpc.WithTransportCredentials(with))
	assert.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

// get returns what the address for operators answers.
func (s *servers) get(path string) string {
	s.t.Helper()
	response, err := http.Get("http://" + s.address("admin") + path) //nolint:noctx // of a test
	require.NoError(s.t, err)
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	require.NoError(s.t, err)
	return response.Status + "\n" + string(body)
}

// shouldLimit asks about a call of a resource.
func shouldLimit(ctx context.Context, conn *grpc.ClientConn, domain, resource string) (rls.RateLimitResponse_Code, error) {
	answer, err := rls.NewRateLimitServiceClient(conn).ShouldRateLimit(ctx, &rls.RateLimitRequest{
		Domain: domain,
		Descriptors: []*ratelimit.RateLimitDescriptor{{
			Entries: []*ratelimit.RateLimitDescriptor_Entry{{Key: "generic_key", Value: resource}},
		}},
	})
	return answer.GetOverallCode(), err
}

func TestServeDecidesByTheRulesOfFiles(t *testing.T) {
	t.Parallel()
	directory := tree(t, map[string]string{
		"rules/a.yaml":      "serve: {domain: shop, resource: 'shop/{generic_key}'}\nflow: [{resource: shop/a, limit: 0}]\naccess: [{name: l, resource: shop/l, attribute: user, list: blocked}]\n",
		"rules/b.yaml":      "flow: [{resource: shop/b, limit: 0}]\nbreaker:\n  - {resource: b, threshold: 0.5, minCalls: 20, openFor: 5s}\n",
		"lists/blocked.txt": "eve\n",
	})
	s := startServing(t, "--rules", filepath.Join(directory, "rules"), "--lists", filepath.Join(directory, "lists"))
	conn := s.dial(insecure.NewCredentials())
	code, err := shouldLimit(t.Context(), conn, "shop", "a")
	require.NoError(t, err)
	assert.Equal(t, rls.RateLimitResponse_OVER_LIMIT, code)
	code, err = shouldLimit(t.Context(), conn, "shop", "b")
	require.NoError(t, err)
	assert.Equal(t, rls.RateLimitResponse_OK, code, "the document cannot be served")
	s.until(`b.yaml:3:5: breaker rule \S+ cannot be served`)
	_, err = shouldLimit(t.Context(), conn, "mail", "a")
	require.Error(t, err)
	s.until(`level=ERROR msg="penstock: a request was not decided.*code=NotFound`)

	health, err := healthpb.NewHealthClient(conn).Check(t.Context(), &healthpb.HealthCheckRequest{Service: rls.RateLimitService_ServiceDesc.ServiceName})
	require.NoError(t, err)
	assert.Equal(t, healthpb.HealthCheckResponse_SERVING, health.GetStatus())
	assert.Contains(t, s.get("/metrics"), `penstock_serve_requests_total{code="OK",method="ShouldRateLimit"} 2`)
	assert.Contains(t, s.get("/metrics"), `penstock_blocked_total{resource="shop/a"} 1`)
	assert.Contains(t, s.get("/ready"), "200 OK")
	shown := user{}.run(t, "status", "--engine", s.address("admin"))
	assert.Contains(t, shown.out, "b.yaml")
	assert.NotContains(t, s.log.String(), "can use it", "it listens on loopback")
	assert.Equal(t, command.ExitDone, s.stop(), s.log.String())
}

func TestServeDecidesByTheRulesInEtcd(t *testing.T) {
	t.Parallel()
	server, _ := startEtcd(t, etcdtest.Options{})
	_, err := server.Client().Put(t.Context(), etcd.Prefix("shop")+"a.yaml", "flow: [{resource: a, limit: 0}]")
	require.NoError(t, err)
	free, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // of a test
	require.NoError(t, err)
	require.NoError(t, free.Close())
	s := startServing(t, "--app", "shop", "--endpoints", server.Endpoint(), "--instance", "one", "--admin", free.Addr().String())
	code, err := shouldLimit(t.Context(), s.dial(insecure.NewCredentials()), "shop", "a")
	require.NoError(t, err)
	assert.Equal(t, rls.RateLimitResponse_OVER_LIMIT, code)
	require.Eventually(t, func() bool {
		shown := user{}.run(t, "top", "--app", "shop", "--endpoints", server.Endpoint(), "--once")
		return shown.code == command.ExitDone && strings.Contains(shown.out, "1 service of")
	}, eventTimeout, 50*time.Millisecond, "operators find the server by its report")
}

func TestServeAnswersRequestsUnderWayBeforeItEnds(t *testing.T) {
	directory := tree(t, map[string]string{"a.yaml": "flow: [{resource: a, limit: 0}]"})
	s := startServing(t, "--rules", directory)
	conn := s.dial(insecure.NewCredentials())
	watch, err := healthpb.NewHealthClient(conn).Watch(t.Context(), &healthpb.HealthCheckRequest{Service: rls.RateLimitService_ServiceDesc.ServiceName})
	require.NoError(t, err)
	first, err := watch.Recv()
	require.NoError(t, err)
	assert.Equal(t, healthpb.HealthCheckResponse_SERVING, first.GetStatus())
	s.end()
	second, err := watch.Recv()
	require.NoError(t, err)
	assert.Equal(t, healthpb.HealthCheckResponse_NOT_SERVING, second.GetStatus())
	require.NoError(t, conn.Close())
}

func TestServeBoundsMessages(t *testing.T) {
	directory := tree(t, map[string]string{"a.yaml": "flow: []"})
	s := startServing(t, "--rules", directory, "--max-message", "100")
	_, err := shouldLimit(t.Context(), s.dial(insecure.NewCredentials()), "shop", strings.Repeat("a", 100))
	assert.ErrorContains(t, err, "larger than max")
}

func TestServeWantsCertificatesOfClients(t *testing.T) {
	directory := tree(t, map[string]string{"rules/a.yaml": "flow: [{resource: a, limit: 0}]"})
	ca, pair := certificates(t, directory)
	pem := func(name string) string { return filepath.Join(directory, name) }
	s := startServing(t, "--rules", pem("rules"), "--tls-cert", pem("cert.pem"), "--tls-key", pem("key.pem"), "--tls-client-ca", pem("ca.pem"))
	trusted := &tls.Config{RootCAs: ca, MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{pair}}
	code, err := shouldLimit(t.Context(), s.dial(credentials.NewTLS(trusted)), "shop", "a")
	require.NoError(t, err)
	assert.Equal(t, rls.RateLimitResponse_OVER_LIMIT, code)
	_, err = shouldLimit(t.Context(), s.dial(credentials.NewTLS(&tls.Config{RootCAs: ca, MinVersion: tls.VersionTLS12})), "shop", "a")
	require.Error(t, err, "a client without a certificate")
	_, err = shouldLimit(t.Context(), s.dial(insecure.NewCredentials()), "shop", "a")
	require.Error(t, err, "a client without TLS")
}

// certificates writes ca.pem, and cert.pem with key.pem for 127.0.0.1, and returns them.
func certificates(t *testing.T, directory string) (ca *x509.CertPool, pair tls.Certificate) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true,
		KeyUsage:    x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	require.NoError(t, err)
	keyDER, err := x509.MarshalPKCS8PrivateKey(key)
	require.NoError(t, err)
	certPEM := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	keyPEM := pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: keyDER})
	for name, data := range map[string][]byte{"ca.pem": certPEM, "cert.pem": certPEM, "key.pem": keyPEM} {
		require.NoError(t, os.WriteFile(filepath.Join(directory, name), data, 0o600))
	}
	ca = x509.NewCertPool()
	require.True(t, ca.AppendCertsFromPEM(certPEM))
	pair, err = tls.X509KeyPair(certPEM, keyPEM)
	require.NoError(t, err)
	return ca, pair
}

func TestServeSaysWhatIsWrongWithItsFlags(t *testing.T) {
	for name, test := range map[string]struct {
		args []string
		want string
		code int
	}{
		"no rules":                  {nil, "which rules are meant?", command.ExitUsage},
		"nothing to serve":          {[]string{"--rules=x", "--grpc="}, "there is nothing to serve", command.ExitUsage},
		"a proxy by its name":       {[]string{"--rules=x", "--trusted-proxy=nginx"}, "must be a network", command.ExitUsage},
		"a route without a path":    {[]string{"--rules=x", "--route=GET"}, "the route", command.ExitFailed},
		"a certificate alone":       {[]string{"--rules=x", "--tls-cert=x"}, "belong together", command.ExitUsage},
		"clients of no certificate": {[]string{"--rules=x", "--tls-client-ca=x"}, "needs TLS", command.ExitUsage},
		"no message":                {[]string{"--rules=x", "--max-message=-1"}, "at least 1", command.ExitUsage},
		"no requests":               {[]string{"--rules=x", "--max-requests=0"}, "at least 1", command.ExitUsage},
		"quotas of nobody":          {[]string{"--rules=x", "--grpc=", "--http=:0", "--rlqs"}, "over gRPC", command.ExitUsage},
		"a token for nobody":        {[]string{"--rules=x", "--admin=", "--control-token-file=x"}, "--admin", command.ExitUsage},
		"a copy of files":           {[]string{"--rules=x", "--copy=x"}, "rules in etcd", command.ExitUsage},
		"priorities of nobody":      {[]string{"--rules=x", "--priority-header=P"}, "--priority-caller", command.ExitUsage},
		"a priority of no name": {
			[]string{"--rules=x", "--priority-header=P", "--priority-caller=10.0.0.0/8=urgent"}, "10.0.0.0/8=high", command.ExitUsage,
		},
		"a certificate that is not there": {
			[]string{"--rules=x", "--tls-cert=/nowhere", "--tls-key=/nowhere"}, "no such file", command.ExitFailed,
		},
		"an address of nobody": {
			[]string{"--rules=" + tree(t, map[string]string{"a.yaml": "flow: []"}), "--admin=", "--grpc=192.0.2.1:1"}, "--grpc", command.ExitFailed,
		},
	} {
		got := user{}.run(t, append([]string{"serve"}, test.args...)...)
		assert.Equal(t, test.code, got.code, name)
		assert.Contains(t, got.err, test.want, name)
	}
}
