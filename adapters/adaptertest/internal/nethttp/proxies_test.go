package nethttp_test

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/netip"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/adapters/adaptertest"
	"github.com/penstock-go/penstock/adapters/clientip"
	"github.com/penstock-go/penstock/adapters/nethttp"
	"github.com/penstock-go/penstock/rule"
)

// raw sends a request as it stands, which must be answered well.
func raw(t *testing.T, conn net.Conn, request string) {
	t.Helper()
	_, err := io.WriteString(conn, request)
	require.NoError(t, err)
	response, err := http.ReadResponse(bufio.NewReader(conn), nil)
	require.NoError(t, err)
	_, err = io.Copy(io.Discard, response.Body)
	require.NoError(t, err)
	require.NoError(t, response.Body.Close())
	require.NoError(t, conn.Close())
	require.Equal(t, http.StatusOK, response.StatusCode)
}

// listenOn starts a server on a loopback address.
func listenOn(t *testing.T, address string, handler http.Handler) *httptest.Server {
	t.Helper()
	listener, err := net.Listen("tcp", net.JoinHostPort(address, "0"))
	if err != nil {
		t.Skipf("NOT TESTED: this machine has no %s: %v", address, err)
	}
	server := httptest.NewUnstartedServer(handler)
	require.NoError(t, server.Listener.Close())
	server.Listener = listener
	server.Config.Protocols = new(http.Protocols)
	server.Config.Protocols.SetHTTP1(true)
	server.Config.Protocols.SetUnencryptedHTTP2(true)
	server.Start()
	t.Cleanup(server.Close)
	return server
}

// from returns a transport whose connections come from an address.
func from(t *testing.T, address string, h2c bool) *http.Transport {
	t.Helper()
	dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(address)}}
	transport := &http.Transport{DialContext: dialer.DialContext, Protocols: new(http.Protocols)}
	transport.Protocols.SetHTTP1(!h2c)
	transport.Protocols.SetUnencryptedHTTP2(h2c)
	t.Cleanup(transport.CloseIdleConnections)
	return transport
}

// proxy returns a proxy at an address: it adds the address that it has seen to the field.
func proxy(t *testing.T, address, target string, forwarded, h2c bool) *httptest.Server {
	t.Helper()
	to, err := url.Parse(target)
	require.NoError(t, err)
	return listenOn(t, address, &httputil.ReverseProxy{
		Transport: from(t, address, h2c),
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(to)
			r.Out.Header["X-Forwarded-For"] = r.In.Header["X-Forwarded-For"]
			r.Out.Header["Forwarded"] = r.In.Header["Forwarded"]
			if !forwarded {
				r.SetXForwarded()
				return
			}
			peer := netip.MustParseAddrPort(r.In.RemoteAddr).Addr().String()
			if strings.Contains(peer, ":") {
				peer = `"[` + peer + `]"`
			}
			r.Out.Header.Add("Forwarded", "proto=http;for="+peer)
		},
	})
}

// A client at 127.0.0.5 comes through two proxies to the server, and says whatever it
// likes.
func TestClientBehindRealProxiesCannotChooseItsAddress(t *testing.T) {
	proxies := []netip.Prefix{netip.MustParsePrefix("127.0.1.0/24")}
	for _, test := range []struct {
		name           string
		forwarded, h2c bool
		header         []string
	}{
		{"X-Forwarded-For", false, false, nil},
		{"X-Forwarded-For, forged", false, false, []string{"X-Forwarded-For: 1.1.1.1", "X-Forwarded-For: 127.0.1.9, 127.0.1.8", "Forwarded: for=2.2.2.2"}},
		{"X-Forwarded-For, malformed", false, false, []string{"X-Forwarded-For: ,,;\"", "X-Forwarded-For: "}},
		{"X-Forwarded-For, h2c, forged", false, true, []string{"X-Forwarded-For: 1.1.1.1, 127.0.1.9", "Forwarded: for=2.2.2.2"}},
		{"Forwarded", true, false, nil},
		{"Forwarded, forged", true, false, []string{"Forwarded: for=1.1.1.1", "Forwarded: for=127.0.1.9", "X-Forwarded-For: 2.2.2.2"}},
		{"Forwarded, malformed", true, false, []string{`Forwarded: for="1.1.1.1`, `Forwarded: for="\`}},
		{"Forwarded, h2c, forged", true, true, []string{`Forwarded: for="1.1.1.1`, "X-Forwarded-For: 2.2.2.2"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			p := &adaptertest.Probe{Attribute: "ip"}
			options := nethttp.Options{
				Clients: clientip.Options{TrustedProxies: proxies, UseForwarded: test.forwarded}, Resource: func(*http.Request) string { return "all" },
			}
			server := listenOn(t, "127.0.0.1", nethttp.Middleware(p.NewEngine(t), options)(http.HandlerFunc(ok)))
			inner := proxy(t, "127.0.1.2", server.URL, test.forwarded, test.h2c)
			outer := proxy(t, "127.0.1.1", inner.URL, test.forwarded, test.h2c)
			for address, want := range map[string]string{
				outer.Listener.Addr().String():  "127.0.0.5",
				server.Listener.Addr().String(): "127.0.0.5", // past the proxies: nothing is believed
			} {
				dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP("127.0.0.5")}}
				conn, err := dialer.DialContext(t.Context(), "tcp", address)
				require.NoError(t, err)
				request := "GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n"
				for _, line := range test.header {
					request += line + "\r\n"
				}
				raw(t, conn, request+"\r\n")
				assert.Equal(t, rule.String(want).GoString(), p.LastCall().Attribute.GoString(), address)
			}
		})
	}
}

func TestClientOverIPv6HasItsAddress(t *testing.T) {
	for _, h2c := range []bool{false, true} {
		p := &adaptertest.Probe{Attribute: "ip"}
		options := nethttp.Options{
			Clients: clientip.Options{TrustedProxies: []netip.Prefix{netip.MustParsePrefix("::1/128")}}, Resource: func(*http.Request) string { return "all" },
		}
		server := listenOn(t, "::1", nethttp.Middleware(p.NewEngine(t), options)(http.HandlerFunc(ok)))
		client := &http.Client{Transport: from(t, "::1", h2c)}
		for forwarded, want := range map[string]string{"": "::1", "1.1.1.1, 2001:0DB8::7": "2001:db8::7"} {
			request, err := http.NewRequestWithContext(context.WithoutCancel(t.Context()), http.MethodGet, server.URL, http.NoBody)
			require.NoError(t, err)
			if forwarded != "" {
				request.Header.Set("X-Forwarded-For", forwarded)
			}
			response, err := client.Do(request)
			require.NoError(t, err)
			require.NoError(t, response.Body.Close())
			assert.Equal(t, rule.String(want).GoString(), p.LastCall().Attribute.GoString())
		}
	}
}

// The Transport offers what a client knows of its requests.
func TestTransportHasAttributesOfRequests(t *testing.T) {
	server := serve(t, http.HandlerFunc(ok))
	for key, want := range map[string]rule.Attribute{
		"method": rule.String("GET"), "path": rule.String("/a b"), "host": rule.String("127.0.0.1"),
		"header:x-tenant": rule.String("a"), "query:id": rule.String("7"), "cookie:sid": rule.String("1"),
		"ip": {}, "ipPrefix": {}, "param:id": {},
	} {
		p := &adaptertest.Probe{Attribute: key}
		client := &http.Client{Transport: &nethttp.Transport{Engine: p.NewEngine(t), Base: server.Client().Transport}}
		request, err := http.NewRequestWithContext(t.Context(), "", server.URL+"/a%20b?id=7", http.NoBody)
		require.NoError(t, err)
		request.Method = "" // GET
		request.Header.Set("X-Tenant", "a")
		request.AddCookie(&http.Cookie{Name: "sid", Value: "1"})
		response, err := client.Do(request)
		require.NoError(t, err)
		require.NoError(t, response.Body.Close())
		assert.Equal(t, want.GoString(), p.LastCall().Attribute.GoString(), key)
	}
}
