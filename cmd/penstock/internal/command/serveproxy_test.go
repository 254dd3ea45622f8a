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
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// ask makes a request by way of a proxy, with an address that the client claims to have.
type ask func(path, from string) (status int, header http.Header)

// recipe returns a configuration that docs/serve.md has, of a language.
func recipe(t *testing.T, language string) string {
	t.Helper()
	page, err := os.ReadFile(filepath.Join("..", "..", "..", "..", "docs", "serve.md"))
	require.NoError(t, err)
	found := regexp.MustCompile("(?s)\n```"+language+"\n(.*?)```\n").FindAllStringSubmatch(string(page), -1)
	require.Len(t, found, 1, language)
	return found[0][1]
}

// checkProxied checks a proxy that asks penstock serve as docs/serve.md says. Files are made of what
// write returns, by their names: in it, as in the page, penstock serve is at 127.0.0.1:8082, the
// proxy at 127.0.0.1:8080, and the service behind it at 127.0.0.1:8000.
func checkProxied(t *testing.T, program string, write func() map[string]string, args func(directory string) []string) {
	t.Helper()
	var get ask
	if _, err := exec.LookPath(program); err != nil {
		t.Skipf("NOT TESTED: %s is not on the PATH", program)
	}
	directory := tree(t, map[string]string{"rules/a.yaml": `
flow: [{name: two, resource: "GET:/orders/{id}", limit: 2, window: 1m}]
hotParam: [{name: per-client, resource: "GET:/clients", param: ip, limit: 1, window: 1m}]
access:
  - {name: nobody, resource: "GET:/secret", attribute: path, deny: [/secret]}
  - {name: odd, resource: "GET:/odd", attribute: "header:x-odd", deny: ["a\"b, c=d;é"]}
`})
	s := startServing(t, "--rules", filepath.Join(directory, "rules"), "--http", "127.0.0.1:0",
		"--route", "GET /orders/{id}", "--route", "GET /clients", "--route", "GET /secret", "--route", "GET /odd")
	service := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, "served "+r.URL.Path) }))
	t.Cleanup(service.Close)
	free, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	at := free.Addr().String()
	require.NoError(t, free.Close())
	places := strings.NewReplacer("127.0.0.1:8082", s.address("http"), "127.0.0.1:8080", at, "127.0.0.1:8000", service.Listener.Addr().String())
	for name, text := range write() {
		require.NoError(t, os.WriteFile(filepath.Join(directory, name), []byte(places.Replace(text)), 0o600))
	}
	startProxy(t, directory, program, args(directory), s)
	require.Eventually(t, func() bool {
		conn, err := net.DialTimeout("tcp", at, time.Second)
		if err == nil {
			_ = conn.Close()
		}
		return err == nil
	}, eventTimeout, 10*time.Millisecond, "the proxy does not listen")
	get = func(path, from string) (int, http.Header) {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+at+path, http.NoBody)
		require.NoError(t, err)
		request.Header.Set("X-Forwarded-For", from)
		request.Header.Set("X-Odd", `a"b, c=d;é`)
		response, err := http.DefaultClient.Do(request)
		require.NoError(t, err)
		require.NoError(t, response.Body.Close())
		return response.StatusCode, response.Header
	}
	checkProxy(t, get)
	s.stop()
	status, _ := get("/elsewhere", "")
	assert.GreaterOrEqual(t, status, 500, "nobody answers the proxy")
}

// startProxy starts a proxy in a directory, and ends it with the test.
func startProxy(t *testing.T, directory, program string, args []string, asked *servers) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	proxy := exec.CommandContext(ctx, program, args...)
	proxy.Dir = directory
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
			t.Log(log.String(), asked.log.String())
		}
	})
}

// checkProxy checks that a proxy asks about every request, and does as it is told.
func checkProxy(t *testing.T, get ask) {
	t.Helper()
	for i, want := range []int{200, 200, 429} {
		status, header := get(fmt.Sprintf("/orders/%d?x=1", i), "")
		assert.Equal(t, want, status, i)
		if want == 429 {
			assert.NotEmpty(t, header.Get("Retry-After"))
			assert.Regexp(t, `^"p-[0-9a-f]{12}";r=0;t=\d+$`, header.Get("RateLimit"))
		}
	}
	for _, test := range []struct {
		path, from string
		want       int
	}{
		{"/secret", "", 403},
		{"/secret?x=/orders/1", "", 403},
		{"//secret", "", 403},
		{"/odd", "", 403}, // the proxy passes on the header fields of the client as they are
		{"/elsewhere", "", 200},
		{"/clients", "192.0.2.1", 200},
		{"/clients", "192.0.2.2", 429}, // a client does not choose its address
	} {
		status, _ := get(test.path, test.from)
		assert.Equal(t, test.want, status, test.path)
	}
}

func TestNginxAsksByAuthRequest(t *testing.T) {
	checkProxied(t, "nginx", func() map[string]string {
		return map[string]string{"nginx.conf": `
daemon off;
master_process off;
pid nginx.pid;
error_log stderr;
events {}
http {
  access_log off;
  client_body_temp_path body; proxy_temp_path proxy; fastcgi_temp_path f; uwsgi_temp_path u; scgi_temp_path s;
` + recipe(t, "nginx") + "}\n"}
	}, func(directory string) []string {
		return []string{"-c", directory + "/nginx.conf", "-p", directory + "/"}
	})
}

func TestCaddyAsksByForwardAuth(t *testing.T) {
	checkProxied(t, "caddy", func() map[string]string {
		return map[string]string{"Caddyfile": "{\n\tadmin off\n\tauto_https off\n}\n" + recipe(t, "caddyfile")}
	}, func(string) []string { return []string{"run", "--adapter", "caddyfile", "--config", "Caddyfile"} })
}

func TestHAProxyAsksByLua(t *testing.T) {
	checkProxied(t, "haproxy", func() map[string]string {
		return map[string]string{"haproxy.cfg": recipe(t, "haproxy"), "penstock.lua": recipe(t, "lua")}
	}, func(string) []string { return []string{"-db", "-f", "haproxy.cfg"} })
}
