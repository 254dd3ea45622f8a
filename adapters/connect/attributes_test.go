package penstockconnect_test

import (
	"context"
	"net"
	"net/http"
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
func guardWith(t *testing.T, at adaptertest.Side, w wire, procedure string, engine *core.Engine, options penstockconnect.Options, end finish,
	pairs ...string,
) *connect.Client[text, text] {
	t.Helper()
	if at == adaptertest.AtServer {
		url := serve(t, newHandler(end, connect.WithInterceptors(penstockconnect.ServerInterceptor(engine, options))))
		return w.clientOf(t, url, procedure, withHeader(pairs...))
	}
	return w.clientOf(t, serve(t, newHandler(end)), procedure,
		withHeader(pairs...), connect.WithInterceptors(penstockconnect.ClientInterceptor(engine, options)))
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

func TestOptionsSeeTheMessageOfAUnaryCall(t *testing.T) {
	everywhere(t, func(t *testing.T, at adaptertest.Side, w wire, s shape) {
		p := new(adaptertest.Probe)
		options := penstockconnect.Options{Tokens: func(_ context.Context, c *penstockconnect.Call) int {
			if m, ok := c.Message.(*text); ok {
				return 2 + len(m.GetValue())
			}
			return 2
		}}
		require.NoError(t, s.call(t.Context(), guard(t, at, w, s.procedure, p.NewEngine(t), options, succeed)))
		want := int32(2)
		if s.name == adaptertest.Unary {
			want = 3
		}
		assert.Equal(t, want, p.LastCall().Tokens)
	})
}

func TestPriorityKeyIsReadInAnyCase(t *testing.T) {
	everywhere(t, func(t *testing.T, at adaptertest.Side, w wire, s shape) {
		var sent []string
		options := penstockconnect.Options{
			PriorityKey: strings.ToLower(priority.Field),
			PriorityTrust: func(_ context.Context, c *penstockconnect.Call) (rule.Priority, bool) {
				return rule.PriorityCritical, c.Header.Get("X-Tenant") == "a"
			},
		}
		p := new(adaptertest.Probe)
		client := guardWith(t, at, w, s.procedure, p.NewEngine(t), options, func(_ context.Context, header http.Header) error {
			sent = header.Values(priority.Field)
			return nil
		}, priority.Field, "critical", "X-Tenant", "a")
		want := rule.PriorityCritical // of the caller whom the server trusts
		if at == adaptertest.AtClient {
			want = rule.PriorityHigh // of the context
		}
		require.NoError(t, s.call(core.ContextWithPriority(t.Context(), rule.PriorityHigh), client))
		assert.Equal(t, []string{want.String()}, sent)
		assert.Equal(t, want, p.LastCall().Priority())
	})
}
