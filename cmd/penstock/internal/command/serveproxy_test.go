package command_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// ask makes a request by way of a proxy, with an address that the client claims to have.
type ask func(path, from string) (status int, header http.Header)

// proxied starts penstock serve, and a proxy that asks it, by a configuration of the proxy in
// which the verbs are the addresses of penstock, of a service, and of the proxy itself.
func proxied(t *testing.T, program, configuration string, args func(config, directory string) []string) (get ask) {
	t.Helper()
	if _, err := exec.LookPath(program); err != nil {
		t.Skipf("NOT TESTED: %s is not on the PATH", program)
	}
	directory := tree(t, map[string]string{"rules/a.yaml": `
flow: [{name: two, resource: "GET:/orders/{id}", limit: 2, window: 1m}]
hotParam: [{name: per-client, resource: "GET:/clients", param: ip, limit: 1, window: 1m}]
access: [{name: nobody, resource: "GET:/secret", attribute: path, deny: [/secret]}]
`})
	s := startServing(t, "--rules", filepath.Join(directory, "rules"), "--http", "127.0.0.1:0",
		"--route", "GET /orders/{id}", "--route", "GET /clients", "--route", "GET /secret")
	service := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, "served "+r.URL.Path) }))
	t.Cleanup(service.Close)
	free, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	at := free.Addr().String()
	require.NoError(t, free.Close())
	config := filepath.Join(directory, "proxy.conf")
	text := fmt.Sprintf(configuration, s.address("http"), service.Listener.Addr(), at)
	require.NoError(t, os.WriteFile(config, []byte(text), 0o600))
	ctx, cancel := context.WithCancel(t.Context())
	proxy := exec.CommandContext(ctx, program, args(config, directory)...)
	proxy.Env = append(os.Environ(), "HOME="+directory)
	var log notes
	proxy.Cancel = func() error { return proxy.Process.Signal(os.Interrupt) }
	proxy.WaitDelay = 10 * time.Second
	proxy.Stdout, proxy.Stderr = &log, &log
	require.NoError(t, proxy.Start())
	t.Cleanup(func() {
		cancel()
		_ = proxy.Wait()
		if t.Failed() {
			t.Log(log.String(), s.log.String())
		}
	})
	require.Eventually(t, func() bool {
		conn, err := net.DialTimeout("tcp", at, time.Second)
		if err == nil {
			_ = conn.Close()
		}
		return err == nil
	}, eventTimeout, 10*time.Millisecond, "the proxy does not listen")
	return func(path, from string) (int, http.Header) {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+at+path, http.NoBody)
		require.NoError(t, err)
		request.Header.Set("X-Forwarded-For", from)
		response, err := http.DefaultClient.Do(request)
		require.NoError(t, err)
		require.NoError(t, response.Body.Close())
		return response.StatusCode, response.Header
	}
}

// checkProxy checks that a proxy asks about every request, and does as it is told.
func checkProxy(t *testing.T, get ask) {
	t.Helper()
	for i, want := range []int{200, 200, 429} {
		status, header := get(fmt.Sprintf("/orders/%d?x=1", i), "")
		assert.Equal(t, want, status, i)
		if want == 429 {
			assert.NotEmpty(t, header.Get("Retry-After"))
			assert.Contains(t, header.Get("RateLimit"), `"two";r=0`)
		}
	}
	for _, test := range []struct {
		path, from string
		want       int
	}{
		{"/secret", "", 403},
		{"/elsewhere", "", 200},
		{"/clients", "192.0.2.1", 200},
		{"/clients", "192.0.2.2", 429}, // a client does not choose its address
	} {
		status, _ := get(test.path, test.from)
		assert.Equal(t, test.want, status, test.path)
	}
}

func TestNginxAsksByAuthRequest(t *testing.T) {
	checkProxy(t, proxied(t, "nginx", `
daemon off;
master_process off;
pid nginx.pid;
error_log stderr;
events {}
http {
  access_log off;
  client_body_temp_path body; proxy_temp_path proxy; fastcgi_temp_path f; uwsgi_temp_path u; scgi_temp_path s;
  upstream penstock { server %[1]s; keepalive 32; }
  server {
    listen %[3]s;
    location / {
      auth_request /penstock;
      auth_request_set $penstock_status $upstream_http_penstock_status;
      auth_request_set $penstock_retry $upstream_http_retry_after;
      auth_request_set $penstock_limit $upstream_http_ratelimit;
      error_page 403 = @refused;
      proxy_pass http://%[2]s;
    }
    location = /penstock {
      internal;
      proxy_pass http://penstock/nginx;
      proxy_http_version 1.1;
      proxy_pass_request_body off;
      proxy_set_header Connection "";
      proxy_set_header Content-Length "";
      proxy_set_header X-Forwarded-Method $request_method;
      proxy_set_header X-Forwarded-Uri $request_uri;
      proxy_set_header X-Forwarded-Host $host;
      proxy_set_header X-Forwarded-For $remote_addr;
    }
    location @refused {
      add_header Retry-After $penstock_retry always;
      add_header RateLimit $penstock_limit always;
      if ($penstock_status = 429) { return 429; }
      return 403;
    }
  }
}
`, func(config, directory string) []string { return []string{"-c", config, "-p", directory + "/"} }))
}

func TestCaddyAsksByForwardAuth(t *testing.T) {
	checkProxy(t, proxied(t, "caddy", `
{
	admin off
	auto_https off
}
http://%[3]s {
	forward_auth %[1]s {
		uri /
	}
	reverse_proxy %[2]s
}
`, func(config, _ string) []string { return []string{"run", "--adapter", "caddyfile", "--config", config} }))
}
