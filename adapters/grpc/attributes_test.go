package penstockgrpc_test

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	testpb "google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"

	"github.com/penstock-go/penstock/adapters/adaptertest"
	"github.com/penstock-go/penstock/adapters/clientip"
	penstockgrpc "github.com/penstock-go/penstock/adapters/grpc"
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/hotparam"
	"github.com/penstock-go/penstock/rule"
	"github.com/penstock-go/penstock/rules"
)

func TestRulesLookAtMetadataAndMethod(t *testing.T) {
	everywhere(t, func(t *testing.T, at side, s shape) {
		for key, want := range map[string]rule.Attribute{
			"method":            rule.String(s.method),
			"metadata:tenant":   rule.String("a"),
			"metadata:TENANT":   rule.String("a"),
			"metadata:id-bin":   rule.String("\x00\xff"),
			"metadata:empty":    rule.String(""),
			"metadata:missing":  {},
			"metadata:":         {},
			"metadata":          {},
			"header:tenant":     {},
			"metadata:x-tenant": {},
		} {
			p := &adaptertest.Probe{Attribute: key}
			client := guard(t, at, p.NewEngine(t), penstockgrpc.Options{}, service{finish: succeed})
			ctx := metadata.AppendToOutgoingContext(t.Context(), "tenant", "a", "Tenant", "b", "id-bin", "\x00\xff", "empty", "")
			require.NoError(t, s.call(ctx, client))
			assert.Equal(t, want.GoString(), p.LastCall().Attribute.GoString(), key)
		}
	})
}

func TestOptionsGoBeforeAttributesOfTheCall(t *testing.T) {
	everywhere(t, func(t *testing.T, at side, s shape) {
		for _, key := range []string{"method", "metadata:tenant"} {
			p := &adaptertest.Probe{Attribute: key}
			options := penstockgrpc.Options{Attributes: func(context.Context, string, any) []core.Option {
				return []core.Option{core.Int(key, 7)}
			}}
			client := guard(t, at, p.NewEngine(t), options, service{finish: succeed})
			require.NoError(t, s.call(metadata.AppendToOutgoingContext(t.Context(), "tenant", "a"), client))
			assert.Equal(t, rule.Int(7).GoString(), p.LastCall().Attribute.GoString())
		}
	})
}

func TestClientBehindTrustedProxiesHasItsAddress(t *testing.T) {
	proxies := []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}
	for _, test := range []struct {
		name, key string
		options   penstockgrpc.Options
		want      string
	}{
		{"nobody is trusted", "ip", penstockgrpc.Options{}, "127.0.0.1"},
		{"x-forwarded-for", "ip", penstockgrpc.Options{Clients: clientip.Options{TrustedProxies: proxies}}, "2001:db8:1:2:3:4:5:6"},
		{"forwarded", "ip", penstockgrpc.Options{Clients: clientip.Options{TrustedProxies: proxies, UseForwarded: true}}, "3.3.3.3"},
		{"by prefix", "ipPrefix", penstockgrpc.Options{Clients: clientip.Options{TrustedProxies: proxies}}, "2001:db8:1:2::/64"},
		{"by another prefix", "ipPrefix", penstockgrpc.Options{Clients: clientip.Options{TrustedProxies: proxies, IPv6Prefix: 32}}, "2001:db8::/32"},
	} {
		t.Run(test.name, func(t *testing.T) {
			for _, s := range shapes() {
				p := &adaptertest.Probe{Attribute: test.key}
				client := guard(t, atServer, p.NewEngine(t), test.options, service{finish: succeed})
				ctx := metadata.AppendToOutgoingContext(t.Context(), "x-forwarded-for", "1.1.1.1, 127.0.0.7",
					"x-forwarded-for", "1.1.1.1, 2001:db8:1:2:3:4:5:6, 127.0.0.1", "forwarded", `for="2.2.2.2`, "forwarded", "for=3.3.3.3")
				require.NoError(t, s.call(ctx, client))
				assert.Equal(t, rule.String(test.want).GoString(), p.LastCall().Attribute.GoString(), s.name)
			}
		})
	}
}

func TestClientsHaveNoAddressOfTheirPeer(t *testing.T) {
	for _, key := range []string{"ip", "ipPrefix"} {
		p := &adaptertest.Probe{Attribute: key}
		client := guard(t, atClient, p.NewEngine(t), penstockgrpc.Options{}, service{finish: succeed})
		require.NoError(t, callUnary(t.Context(), client))
		assert.Equal(t, rule.Attribute{}.GoString(), p.LastCall().Attribute.GoString())
	}
}

// serveAt starts a guarded server and returns a client of it.
func serveAt(t *testing.T, listener net.Listener, target string, engine *core.Engine) testpb.TestServiceClient {
	t.Helper()
	server := grpc.NewServer(guardServer(engine, penstockgrpc.Options{})...)
	testpb.RegisterTestServiceServer(server, service{finish: succeed})
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	t.Cleanup(func() {
		server.Stop()
		assert.NoError(t, <-served)
	})
	conn, err := grpc.NewClient(target, grpc.WithTransportCredentials(insecure.NewCredentials()))
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, conn.Close()) })
	return testpb.NewTestServiceClient(conn)
}

func TestPeersOverUnixSocketsAndIPv6(t *testing.T) {
	t.Chdir(t.TempDir())
	for want, network := range map[string]string{"127.0.0.1": "unix", "::1": "tcp6"} {
		t.Run(network, func(t *testing.T) {
			address := map[string]string{"unix": "server.sock", "tcp6": "[::1]:0"}[network]
			listener, err := net.Listen(network, address)
			if err != nil {
				t.Skipf("NOT TESTED: this machine has no %s: %v", network, err)
			}
			target := listener.Addr().String()
			if network == "unix" {
				target = "unix:" + address
			}
			p := &adaptertest.Probe{Attribute: "ip"}
			require.NoError(t, callUnary(t.Context(), serveAt(t, listener, target, p.NewEngine(t))))
			assert.Equal(t, rule.String(want).GoString(), p.LastCall().Attribute.GoString())
		})
	}
}

// called is a context as the server makes it.
func called(ctx context.Context, from *peer.Peer, md metadata.MD) context.Context {
	if from != nil {
		ctx = peer.NewContext(ctx, from)
	}
	return metadata.NewIncomingContext(ctx, md)
}

func TestUnusualPeersHaveDefinedAddresses(t *testing.T) {
	tcp := &net.TCPAddr{IP: net.IPv4(203, 0, 113, 1), Port: 80}
	for want, from := range map[string]*peer.Peer{
		"203.0.113.1": {Addr: tcp},
		"127.0.0.1":   {Addr: tcp, LocalAddr: &net.UnixAddr{}}, // a path that looks like an address
		"unknown":     nil,
	} {
		p := &adaptertest.AttributeReader{Key: "ip"}
		intercept := penstockgrpc.UnaryServerInterceptor(p.NewEngine(t), penstockgrpc.Options{})
		_, err := intercept(called(t.Context(), from, nil), nil, &grpc.UnaryServerInfo{FullMethod: "/s/M"},
			func(context.Context, any) (any, error) { return nil, nil })
		require.NoError(t, err)
		assert.Equal(t, want, p.Text)
	}
	p := &adaptertest.AttributeReader{Key: "ip"}
	intercept := penstockgrpc.UnaryServerInterceptor(p.NewEngine(t), penstockgrpc.Options{})
	_, err := intercept(called(t.Context(), &peer.Peer{}, nil), nil, &grpc.UnaryServerInfo{FullMethod: "/s/M"},
		func(context.Context, any) (any, error) { return nil, nil })
	require.NoError(t, err)
	assert.Equal(t, "unknown", p.Text, "a peer without an address")
}

func TestLongMethodsAndMetadataAreShortened(t *testing.T) {
	long := strings.Repeat("x", 5000)
	for _, key := range []string{"method", "metadata:x"} {
		p := &adaptertest.AttributeReader{Key: key}
		intercept := penstockgrpc.UnaryServerInterceptor(p.NewEngine(t), penstockgrpc.Options{})
		_, err := intercept(called(t.Context(), nil, metadata.Pairs("x", long)), nil, &grpc.UnaryServerInfo{FullMethod: long},
			func(context.Context, any) (any, error) { return nil, nil })
		require.NoError(t, err)
		assert.Len(t, p.Text, 1024+1+32)
	}
}

// What reading an attribute allocates is the copy of the values that package metadata
// makes: one for a key.
func TestAttributesAllocateAtMostTheirMetadata(t *testing.T) {
	ctx := called(t.Context(), &peer.Peer{Addr: &net.TCPAddr{IP: net.IPv4(192, 0, 2, 1), Port: 80}}, metadata.Pairs("x-forwarded-for", "2001:DB8::7", "tenant", "a"))
	proxies := []netip.Prefix{netip.MustParsePrefix("192.0.2.0/24")}
	info := &grpc.UnaryServerInfo{FullMethod: "/s/M"}
	handler := func(context.Context, any) (any, error) { return nil, nil }
	allocated := func(key string, options penstockgrpc.Options) float64 {
		p := &adaptertest.AttributeReader{Key: key}
		intercept := penstockgrpc.UnaryServerInterceptor(p.NewEngine(t), options)
		call := func() { _, _ = intercept(ctx, nil, info, handler) }
		call()
		require.Equal(t, key != "user", p.Found)
		return testing.AllocsPerRun(200, call)
	}
	trusting := penstockgrpc.Options{Clients: clientip.Options{TrustedProxies: proxies}}
	none := allocated("user", penstockgrpc.Options{})
	for _, test := range []struct {
		key     string
		options penstockgrpc.Options
		most    float64
	}{
		{"method", trusting, 0},
		{"ip", penstockgrpc.Options{}, 0},
		{"ipPrefix", penstockgrpc.Options{}, 0},
		{"metadata:tenant", trusting, 1},
		{"ip", trusting, 1},
		{"ipPrefix", trusting, 1},
	} {
		assert.LessOrEqual(t, allocated(test.key, test.options), none+test.most, fmt.Sprint(test))
	}
}

func TestEachValueOfMetadataAndEachClientHasALimit(t *testing.T) {
	everywhere(t, func(t *testing.T, at side, s shape) {
		if at == atClient && s.name != "unary" {
			t.Skip("a client has the same attributes whatever the shape of its calls")
		}
		engine := newEngine(t)
		require.NoError(t, engine.Load(rules.Set{HotParam: []hotparam.Rule{
			{Name: "tenant", Match: "*", Param: rule.StringsOf("metadata:tenant"), Limit: 1e-6, Burst: 2},
			{Name: "client", Match: "*", Param: rule.StringsOf("ip"), Limit: 1e-6, Burst: 5},
		}}))
		options := penstockgrpc.Options{Clients: clientip.Options{TrustedProxies: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}}}
		client := guard(t, at, engine, options, service{finish: succeed})
		passed := 0
		for i := range 30 {
			ctx := metadata.AppendToOutgoingContext(t.Context(), "tenant", fmt.Sprint(i%5), "x-forwarded-for", fmt.Sprintf("2001:db8::%x", i))
			if s.call(ctx, client) == nil {
				passed++
			}
		}
		want := 5 // of one client
		if at == atClient {
			want = 10 // of five tenants: clients know no addresses
		}
		assert.Equal(t, want, passed)
	})
}
