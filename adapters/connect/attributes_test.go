package penstockconnect_test

import (
	"context"
	"net"
	"net/http"
	"net/netip"
	"path/filepath"
	"strings"
	"testing"

	"connectrpc.com/connect"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/penstock-go/penstock/adapters/adaptertest"
	penstockconnect "github.com/penstock-go/penstock/adapters/connect"
	"github.com/penstock-go/penstock/adapters/priority"
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/rule"
)

// withHeader is an interceptor of clients that sets fields of the header, as callers do.
func withHeader(pairs ...string) connect.ClientOption {
	return connect.WithInterceptors(headerInterceptor(pairs))
}

type headerInterceptor []string

func (h headerInterceptor) setIn(header http.Header) {
	for i := 0; i < len(h); i += 2 {
		header.Add(h[i], h[i+1])
	}
}

func (h headerInterceptor) WrapUnary(next connect.UnaryFunc) connect.UnaryFunc {
	return func(ctx context.Context, r connect.AnyRequest) (connect.AnyResponse, error) {
		h.setIn(r.Header())
		return next(ctx, r)
	}
}

func (h headerInterceptor) WrapStreamingClient(next connect.StreamingClientFunc) connect.StreamingClientFunc {
	return func(ctx context.Context, spec connect.Spec) connect.StreamingClientConn {
		conn := next(ctx, spec)
		h.setIn(conn.RequestHeader()) // after the guard has returned the stream
		return conn
	}
}

func (h headerInterceptor) WrapStreamingHandler(next connect.StreamingHandlerFunc) connect.StreamingHandlerFunc {
	return next
}

// guardWith is guard with fields in the headers of requests.
func guardWith(t *testing.T, at side, w wire, procedure string, engine *core.Engine, options penstockconnect.Options, end finish,
	pairs ...string,
) *connect.Client[text, text] {
	t.Helper()
	if at == atServer {
		url := serve(t, newHandler(end, connect.WithInterceptors(penstockconnect.ServerInterceptor(engine, options))))
		return w.clientOf(t, url, procedure, withHeader(pairs...))
	}
	return w.clientOf(t, serve(t, newHandler(end)), procedure,
		withHeader(pairs...), connect.WithInterceptors(penstockconnect.ClientInterceptor(engine, options)))
}

func TestAttributes(t *testing.T) {
	everywhere(t, func(t *testing.T, at side, w wire, s shape) {
		for key, want := range map[string]string{
			"method": s.procedure, "metadata:X-Tenant": "a", "metadata:x-tenant": "a", "metadata:x-missing": "",
			"ip": "127.0.0.1", "ipPrefix": "127.0.0.1", "own": "mine", "header:X-Tenant": "",
		} {
			if at == atClient && strings.HasPrefix(key, "ip") {
				want = ""
			}
			p := &adaptertest.Probe{Attribute: key}
			options := penstockconnect.Options{Attributes: func(context.Context, *penstockconnect.Call) []core.Option {
				return []core.Option{core.String("own", "mine")}
			}}
			client := guardWith(t, at, w, s.procedure, p.NewEngine(t), options, succeed, "X-Tenant", "a", "X-Tenant", "b")
			require.NoError(t, s.call(t.Context(), client))
			seen, _ := p.LastCall().Attribute.Text()
			assert.Equal(t, want, seen, key)
		}
	})
}

func TestLongAttributesAreShortened(t *testing.T) {
	p := &adaptertest.Probe{Attribute: "metadata:X-Tenant"}
	client := guardWith(t, atServer, wires()[0], create, p.NewEngine(t), penstockconnect.Options{}, succeed,
		"X-Tenant", strings.Repeat("a", 5000))
	require.NoError(t, callUnary(t.Context(), client))
	seen, _ := p.LastCall().Attribute.Text()
	assert.Len(t, seen, 1024+1+32)
}

func TestTrustedProxiesNameTheClient(t *testing.T) {
	local := []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}
	for name, row := range map[string]struct {
		options penstockconnect.Options
		want    string
	}{
		"nobody is trusted": {penstockconnect.Options{}, "127.0.0.1"},
		"trusted":           {penstockconnect.Options{TrustedProxies: local}, "192.0.2.7"},
		"Forwarded":         {penstockconnect.Options{TrustedProxies: local, UseForwarded: true}, "192.0.2.8"},
	} {
		t.Run(name, func(t *testing.T) {
			for _, w := range wires() {
				p := &adaptertest.Probe{Attribute: "ip"}
				client := guardWith(t, atServer, w, create, p.NewEngine(t), row.options, succeed,
					"X-Forwarded-For", "192.0.2.7", "Forwarded", "for=192.0.2.8")
				require.NoError(t, callUnary(t.Context(), client))
				seen, _ := p.LastCall().Attribute.Text()
				assert.Equal(t, row.want, seen)
			}
		})
	}
}

func TestPeerOnAUnixSocketIsLocal(t *testing.T) {
	p := &adaptertest.Probe{Attribute: "ip"}
	listener, err := net.Listen("unix", filepath.Join(t.TempDir(), "s"))
	require.NoError(t, err)
	server := &http.Server{Handler: newHandler(succeed,
		connect.WithInterceptors(penstockconnect.ServerInterceptor(p.NewEngine(t), penstockconnect.Options{})))}
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	transport := &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", listener.Addr().String())
	}}
	client := connect.NewClient[text, text](&http.Client{Transport: transport}, "http://orders"+create)
	_, err = client.CallUnary(t.Context(), connect.NewRequest(wrapperspb.String("a")))
	require.NoError(t, err)
	seen, _ := p.LastCall().Attribute.Text()
	assert.Equal(t, "127.0.0.1", seen)
	transport.CloseIdleConnections()
	require.NoError(t, server.Close())
	require.ErrorIs(t, <-served, http.ErrServerClosed)
}

func TestOptionsOfACall(t *testing.T) {
	everywhere(t, func(t *testing.T, at side, w wire, s shape) {
		p := &adaptertest.Probe{Origin: "shop a"}
		options := penstockconnect.Options{
			Resource: func(_ context.Context, c *penstockconnect.Call) string {
				return "orders of " + c.Header.Get("X-Tenant")
			},
			Origin: func(_ context.Context, c *penstockconnect.Call) string { return "shop " + c.Header.Get("X-Tenant") },
			Tokens: func(_ context.Context, c *penstockconnect.Call) int {
				if m, ok := c.Message.(*text); ok {
					return 2 + len(m.GetValue())
				}
				return 2
			},
		}
		engine := p.NewEngine(t)
		client := guardWith(t, at, w, s.procedure, engine, options, succeed, "X-Tenant", "a")
		require.NoError(t, s.call(t.Context(), client))
		want := int32(2)
		if s.name == "unary" {
			want = 3
		}
		assert.Equal(t, want, p.LastCall().Tokens)
		assert.EqualValues(t, 1, requireEnded(t, engine, "orders of a").Passed)
	})
}

func TestCallWithoutAResourceIsNotGuarded(t *testing.T) {
	everywhere(t, func(t *testing.T, at side, w wire, s shape) {
		engine := newEngine(t, flow.Rule{Match: "**", Limit: 0})
		options := penstockconnect.Options{Resource: func(context.Context, *penstockconnect.Call) string { return "" }}
		require.NoError(t, s.call(t.Context(), guard(t, at, w, s.procedure, engine, options, succeed)))
		assert.Empty(t, engine.Snapshot().Resources)
	})
}

func TestCallsOfServersAreInbound(t *testing.T) {
	for at, want := range map[side]bool{atServer: true, atClient: false} {
		p := new(adaptertest.Probe)
		require.NoError(t, callUnary(t.Context(), guard(t, at, wires()[0], create, p.NewEngine(t), penstockconnect.Options{}, succeed)))
		assert.Equal(t, want, p.LastCall().Inbound(), at)
	}
}

func TestPriorityThatACallerChooses(t *testing.T) {
	all := []netip.Prefix{netip.MustParsePrefix("0.0.0.0/0")}
	byProcedure := func(context.Context, *penstockconnect.Call) rule.Priority { return core.PriorityLow }
	for name, row := range map[string]struct {
		options penstockconnect.Options
		want    rule.Priority
	}{
		"nobody reads it":    {penstockconnect.Options{}, core.PriorityNormal},
		"nobody is trusted":  {penstockconnect.Options{PriorityKey: "penstock-priority"}, core.PriorityNormal},
		"the service says":   {penstockconnect.Options{Priority: byProcedure}, core.PriorityLow},
		"not trusted at all": {penstockconnect.Options{PriorityKey: priority.Field, Priority: byProcedure}, core.PriorityLow},
		"trusted": {penstockconnect.Options{
			PriorityKey: "penstock-priority", Priority: byProcedure,
			PriorityCallers: []priority.Callers{{From: all, Max: core.PriorityCritical}},
		}, core.PriorityCritical},
		"trusted up to high": {penstockconnect.Options{
			PriorityKey: priority.Field, PriorityCallers: []priority.Callers{{From: all, Max: core.PriorityHigh}},
		}, core.PriorityHigh},
		"trusted by function": {penstockconnect.Options{
			PriorityKey: priority.Field,
			PriorityTrust: func(_ context.Context, c *penstockconnect.Call) (rule.Priority, bool) {
				return core.PriorityHigh, c.Header.Get("X-Tenant") == "a"
			},
		}, core.PriorityHigh},
	} {
		t.Run(name, func(t *testing.T) {
			for _, w := range wires() {
				for _, s := range shapes() {
					if s.needsHTTP2 && !w.http2 {
						continue
					}
					p := new(adaptertest.Probe)
					client := guardWith(t, atServer, w, s.procedure, p.NewEngine(t), row.options,
						func(ctx context.Context, _ http.Header) error {
							seen, known := core.PriorityFromContext(ctx)
							assert.Equal(t, row.want, seen)
							assert.Equal(t, row.want != core.PriorityNormal, known)
							return nil
						}, priority.Field, "critical", "X-Tenant", "a")
					require.NoError(t, s.call(t.Context(), client))
					assert.Equal(t, row.want, p.LastCall().Priority())
				}
			}
		})
	}
}

func TestClientPassesThePriorityOfItsContextOn(t *testing.T) {
	for _, w := range wires() {
		for _, s := range shapes() {
			if s.needsHTTP2 && !w.http2 {
				continue
			}
			p := new(adaptertest.Probe)
			var sent []string
			options := penstockconnect.Options{PriorityKey: "penstock-priority"}
			client := guardWith(t, atClient, w, s.procedure, p.NewEngine(t), options, func(_ context.Context, header http.Header) error {
				sent = header.Values(priority.Field)
				return nil
			}, priority.Field, "critical") // of a stranger
			require.NoError(t, s.call(core.ContextWithPriority(t.Context(), core.PriorityHigh), client))
			assert.Equal(t, []string{"high"}, sent)
			assert.Equal(t, core.PriorityHigh, p.LastCall().Priority())
			require.NoError(t, s.call(t.Context(), client))
			assert.Empty(t, sent, "what a stranger has written is removed")
			assert.Equal(t, core.PriorityNormal, p.LastCall().Priority())
		}
	}
}
