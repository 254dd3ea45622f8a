package console_test

import (
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/console"
)

const ordersRule = `flow: [{name: orders, resource: orders, limit: 2}]`

func TestPageAllowsNothingOfOthers(t *testing.T) {
	url := serve(t, console.Options{Engine: newEngine(t, ordersRule)})
	for _, path := range []string{"/", "/penstock/", "/assets/app.js", "/api/me", "/api/nothing", "/nothing"} {
		_, header, _ := send(t, http.MethodGet, url+path, "", nil)
		policy := header.Get("Content-Security-Policy")
		for _, part := range []string{"default-src 'none'", "script-src 'self';", "style-src 'self';", "frame-ancestors 'none'", "base-uri 'none'"} {
			assert.Contains(t, policy, part, path)
		}
		assert.NotContains(t, policy, "unsafe", path)
		assert.Equal(t, "nosniff", header.Get("X-Content-Type-Options"), path)
	}
}

func TestRequestsForOtherHostsAreRefused(t *testing.T) {
	url := serve(t, console.Options{Engine: newEngine(t, ordersRule), Hosts: []string{"Console.internal"}})
	for host, want := range map[string]int{
		"evil.example": http.StatusForbidden, "evil.example:80": http.StatusForbidden, "localhost.evil.example": http.StatusForbidden,
		"127.0.0.1.evil.example": http.StatusForbidden, "localhost:7070": http.StatusOK, "[::1]:7070": http.StatusOK,
		"10.1.2.3": http.StatusOK, "console.internal:7070": http.StatusOK, "CONSOLE.internal.": http.StatusOK,
	} {
		for _, path := range []string{"/", "/api/me"} {
			code, _, _ := send(t, http.MethodGet, url+path, "", func(r *http.Request) { r.Host = host })
			assert.Equal(t, want, code, "%s%s", host, path)
		}
	}
}

func TestWritesOfOtherOriginsAreRefused(t *testing.T) {
	url := serve(t, console.Options{Engine: newEngine(t, ordersRule), Authorize: everybody(console.Editor)})
	for _, origin := range []string{"https://evil.example", "null", "http://127.0.0.1:1"} {
		for _, path := range []string{"/api/push", "/api/rollback", "/api/confirm", "/api/check", "/api/session", "/api/switch", "/api/recharge", "/api/try"} {
			code, _, body := send(t, http.MethodPost, url+path, "{}", func(r *http.Request) {
				r.Header.Set("Origin", origin)
				r.Header.Set("Content-Type", "application/json")
			})
			assert.Equal(t, http.StatusForbidden, code, "%s of %s: %s", path, origin, body)
		}
	}
}

func TestRolesMayDoWhatTheyMayAndNoMore(t *testing.T) {
	for role, want := range map[console.Role]map[string]int{
		console.Nobody:   {"GET me": 401, "GET live?screen=overview": 401, "POST check": 401, "POST confirm": 401, "POST switch": 401, "POST push": 401},
		console.Viewer:   {"GET me": 200, "POST confirm": 403, "POST switch": 403, "POST recharge": 403, "POST try": 403, "POST push": 403, "POST rollback": 403},
		console.Operator: {"GET me": 200, "POST confirm": 400, "POST switch": 400, "POST recharge": 400, "POST try": 400, "GET switch": 404, "GET recharge": 404, "POST push": 403, "POST rollback": 403},
		console.Editor:   {"GET me": 200, "POST push": 400, "GET push": 404, "POST me": 404},
	} {
		url := serve(t, console.Options{Engine: newEngine(t, ordersRule), Authorize: everybody(role)})
		for request, code := range want {
			method, path, _ := strings.Cut(request, " ")
			got, _, body := send(t, method, url+"/api/"+path, `{"name":"a","text":"b","expect":1,"message":"c"}`, asJSON)
			assert.Equal(t, code, got, "%v %s: %s", role, request, body)
		}
	}
}

func TestTokenSignsInAndOut(t *testing.T) {
	name := filepath.Join(t.TempDir(), "tokens")
	require.NoError(t, os.WriteFile(name, []byte("# who\neditor alice 0123456789abcdef # hers\nviewer bob fedcba9876543210\n"), 0o600))
	authorize, err := console.TokenFile(name)
	require.NoError(t, err)
	url := serve(t, console.Options{Engine: newEngine(t, ordersRule), Authorize: authorize})

	code, _, _ := send(t, http.MethodPost, url+"/api/session", `{"token":"0123456789abcdeX"}`, asJSON)
	assert.Equal(t, http.StatusUnauthorized, code)
	code, header, _ := send(t, http.MethodPost, url+"/api/session", `{"token":"0123456789abcdef"}`, asJSON)
	assert.Equal(t, http.StatusNoContent, code)
	kept := header.Get("Set-Cookie")
	assert.Contains(t, kept, "HttpOnly")
	assert.Contains(t, kept, "SameSite=Strict")
	_, _, body := send(t, http.MethodGet, url+"/api/me", "", func(r *http.Request) { r.Header.Set("Cookie", strings.Split(kept, ";")[0]) })
	assert.Contains(t, body, `"who":"alice"`)
	_, _, body = send(t, http.MethodGet, url+"/api/me", "", func(r *http.Request) { r.Header.Set("Authorization", "Bearer fedcba9876543210") })
	assert.Contains(t, body, `"role":"viewer"`)
	code, _, _ = send(t, http.MethodGet, url+"/api/me", "", nil)
	assert.Equal(t, http.StatusUnauthorized, code)
}

func TestMistakesInATokenFileAreNamedWithoutTheTokens(t *testing.T) {
	for text, want := range map[string]string{
		"editor alice short":                     ":1: the token has less than 16 characters",
		"\nadmin alice 0123456789abcdef":         ":2: console: \"admin\" is no role",
		"editor 0123456789abcdefalice two three": ":1: must be a role, a name and a token",
	} {
		name := filepath.Join(t.TempDir(), "tokens")
		require.NoError(t, os.WriteFile(name, []byte(text), 0o600))
		_, err := console.TokenFile(name)
		require.ErrorContains(t, err, want)
		assert.NotContains(t, err.Error(), "0123456789abcdef")
	}
}

func TestProxyIsBelievedFromItsNetworkOnly(t *testing.T) {
	roles := map[string]console.Role{"alice": console.Editor, "*": console.Viewer}
	near := console.ProxyHeader("X-User", []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}, roles)
	for _, c := range []struct {
		from string
		user []string
		want console.Role
	}{
		{"10.0.0.5:1234", []string{"alice"}, console.Editor},
		{"[::ffff:10.0.0.5]:1234", []string{"bob"}, console.Viewer},
		{"192.0.2.1:1234", []string{"alice"}, console.Nobody},
		{"10.0.0.5:1234", nil, console.Nobody},
		{"10.0.0.5:1234", []string{"*"}, console.Nobody},
		{"10.0.0.5:1234", []string{"alice", "bob"}, console.Nobody},
	} {
		_, role := near(&http.Request{RemoteAddr: c.from, Header: http.Header{"X-User": c.user}})
		assert.Equal(t, c.want, role, "%v", c)
	}
}

func TestAssetsAreSmall(t *testing.T) {
	const most = 120 << 10
	url := serve(t, console.Options{Engine: newEngine(t, ordersRule)})
	files, err := os.ReadDir("assets")
	require.NoError(t, err)
	sum, paths := 0, []string{"/"}
	for _, f := range files {
		if strings.HasSuffix(f.Name(), ".js") || strings.HasSuffix(f.Name(), ".css") || strings.HasSuffix(f.Name(), ".svg") {
			paths = append(paths, "/assets/"+f.Name())
		}
	}
	for _, path := range paths {
		code, header, body := send(t, http.MethodGet, url+path, "", func(r *http.Request) { r.Header.Set("Accept-Encoding", "gzip") })
		assert.Equal(t, http.StatusOK, code, path)
		assert.Equal(t, "gzip", header.Get("Content-Encoding"), path)
		sum += len(body)
	}
	assert.LessOrEqual(t, sum, most, "all assets, compressed")
	t.Logf("all assets have %d bytes, compressed", sum)
}

func TestPageReadsNoTextAsHTML(t *testing.T) {
	files, err := filepath.Glob("assets/*.js")
	require.NoError(t, err)
	for _, name := range files {
		text, err := os.ReadFile(name)
		require.NoError(t, err)
		for _, word := range []string{"innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "http://", "https://"} {
			if !strings.HasSuffix(name, "editor.js") {
				assert.NotContains(t, strings.ReplaceAll(string(text), "http://www.w3.org/2000/svg", ""), word, name)
			}
		}
	}
}

func asJSON(r *http.Request) { r.Header.Set("Content-Type", "application/json") }

func everybody(role console.Role) func(*http.Request) (console.Identity, console.Role) {
	return func(*http.Request) (console.Identity, console.Role) { return "alice", role }
}

// The page names its files by their content, so that a browser keeps them for good, and asks for none twice.
func TestFilesOfThePageAreKeptForGood(t *testing.T) {
	url := serve(t, console.Options{Engine: newEngine(t, ordersRule)})
	none := func(*http.Request) {}
	_, _, page := send(t, http.MethodGet, url+"/", "", none)
	names := regexp.MustCompile(`"(/?assets/[0-9a-f]{16}/[a-z.]+)"`).FindAllStringSubmatch(page, -1)
	assert.GreaterOrEqual(t, len(names), 3)
	assert.Len(t, names, strings.Count(page, `"assets/`))
	for _, name := range names {
		code, header, _ := send(t, http.MethodGet, url+"/"+name[1], "", none)
		assert.Equal(t, http.StatusOK, code, name)
		assert.Contains(t, header.Get("Cache-Control"), "immutable", name)
	}
	for _, path := range []string{"/", "/assets/app.js", "/assets/0123456789abcdef/app.js"} {
		code, header, _ := send(t, http.MethodGet, url+path, "", none)
		assert.Equal(t, http.StatusOK, code, path)
		assert.Equal(t, "no-cache", header.Get("Cache-Control"), path)
	}
}

func TestClientCertificateIsBelievedOnceItIsVerified(t *testing.T) {
	roles := map[string]console.Role{"alice": console.Editor, "*": console.Viewer}
	known := console.ClientCertificates(roles)
	certificate := func(name string) []*x509.Certificate {
		return []*x509.Certificate{{Subject: pkix.Name{CommonName: name}}, {Subject: pkix.Name{CommonName: "issuer"}}}
	}
	verified := func(name string) *tls.ConnectionState {
		chain := certificate(name)
		return &tls.ConnectionState{PeerCertificates: chain, VerifiedChains: [][]*x509.Certificate{chain}}
	}
	for name, c := range map[string]struct {
		state *tls.ConnectionState
		who   console.Identity
		want  console.Role
	}{
		"somebody with a role":   {verified("alice"), "alice", console.Editor},
		"somebody else":          {verified("bob"), "bob", console.Viewer},
		"not verified":           {&tls.ConnectionState{PeerCertificates: certificate("alice")}, "", console.Nobody},
		"no certificate":         {&tls.ConnectionState{}, "", console.Nobody},
		"no TLS":                 {nil, "", console.Nobody},
		"no name":                {verified(""), "", console.Nobody},
		"the name of all others": {verified("*"), "", console.Nobody},
	} {
		who, role := known(&http.Request{TLS: c.state})
		assert.Equal(t, c.who, who, name)
		assert.Equal(t, c.want, role, name)
	}
}
