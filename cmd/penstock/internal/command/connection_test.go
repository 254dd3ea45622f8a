package command_test

import (
	"context"
	"crypto/x509"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.etcd.io/etcd/client/pkg/v3/transport"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/server/v3/embed"
	"go.uber.org/zap"

	"github.com/penstock-go/penstock/cmd/penstock/internal/command"
	"github.com/penstock-go/penstock/datasource/etcd/etcdtest"
)

func TestUnreachableEtcdIsExplained(t *testing.T) {
	got := user{}.run(t, "status", "--app=shop", "--endpoints=127.0.0.1:1,http://127.0.0.1:2")
	assert.Equal(t, command.ExitFailed, got.code)
	assert.Contains(t, got.err, "penstock: etcd cannot be reached:\n")
	assert.Contains(t, got.err, "  127.0.0.1:1: connect: connection refused\n")
	assert.Contains(t, got.err, "  http://127.0.0.1:2: connect: connection refused\n")
	assert.Contains(t, got.err, "The endpoints are those of --endpoints.\n")
}

func TestSilentServerIsExplained(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0") // takes connections and never says a word
	require.NoError(t, err)
	defer func() { _ = listener.Close() }()
	got := user{env: map[string]string{"PENSTOCK_ENDPOINTS": listener.Addr().String()}}.
		run(t, "status", "--app=shop", "--dial-timeout=200ms")
	assert.Equal(t, command.ExitFailed, got.code)
	assert.Contains(t, got.err, listener.Addr().String()+" takes connections but gave no answer in 200ms.\nDoes it ask for TLS")
	assert.Contains(t, got.err, "The endpoints are those of PENSTOCK_ENDPOINTS.")
}

func TestServiceOtherThanEtcdIsExplained(t *testing.T) {
	server := httptest.NewUnstartedServer(http.NotFoundHandler())
	server.Config.Protocols = new(http.Protocols)
	server.Config.Protocols.SetUnencryptedHTTP2(true) // as a proxy may speak it
	server.Start()
	defer server.Close()
	got := user{}.run(t, "status", "--app=shop", "--endpoints", server.URL)
	assert.Equal(t, command.ExitFailed, got.code)
	assert.Contains(t, got.err, "penstock: "+server.URL+" answers, but not as etcd does: is it a proxy, or another service?")
}

func TestInterruptEndsTheWait(t *testing.T) {
	_, u := startEtcd(t, etcdtest.Options{})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	var out, errs strings.Builder
	code := command.Run(ctx, command.Env{
		In: strings.NewReader(""), Out: &out, Err: &errs, Getenv: func(name string) string { return u.env[name] },
	}, []string{"history"})
	assert.Equal(t, command.ExitFailed, code)
	assert.Equal(t, "penstock: interrupted\n", errs.String())
}

func TestInterruptMessageNamesWhatWasInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	in, writer := io.Pipe()
	defer func() { _ = writer.Close() }()
	var errs strings.Builder
	code := command.Run(ctx, command.Env{In: in, Out: io.Discard, Err: &errs}, []string{"validate", "-"})
	assert.Equal(t, command.ExitFailed, code)
	assert.Equal(t, "penstock: interrupted: reading standard input\n", errs.String())
}

func TestTLS(t *testing.T) {
	own, err := transport.SelfCert(zap.NewNop(), t.TempDir(), []string{"127.0.0.1:0"}, 1)
	require.NoError(t, err)
	server, u := startEtcd(t, etcdtest.Options{TLS: own})
	plain := strings.Replace(server.Endpoint(), "https://", "http://", 1)
	bare := strings.TrimPrefix(server.Endpoint(), "https://")
	for name, test := range map[string]struct {
		args []string
		want string // of the error; empty when it works
	}{
		"an unknown server":         {nil, "certificate signed by unknown authority: does --cacert name the right file?"},
		"a known one":               {[]string{"--cacert", own.CertFile}, ""},
		"an address without scheme": {[]string{"--cacert", own.CertFile, "--endpoints", bare}, ""},
		"no TLS":                    {[]string{"--endpoints", plain, "--dial-timeout=500ms"}, "Does it ask for TLS"},
		"TLS and none":              {[]string{"--endpoints", plain, "--cacert", own.CertFile}, "make all endpoints https://, or none"},
		"a missing file":            {[]string{"--cacert", own.CertFile + "x"}, "--cacert: open "},
		"a file without any":        {[]string{"--cacert", own.KeyFile}, "holds no certificate in PEM"},
		"a key for a certificate":   {[]string{"--cert", own.KeyFile, "--key", own.KeyFile}, "--cert and --key: "},
	} {
		t.Run(name, func(t *testing.T) {
			got := u.run(t, append([]string{"history"}, test.args...)...)
			if test.want == "" {
				assert.Equal(t, command.ExitDone, got.code, got.err)
				return
			}
			assert.Equal(t, command.ExitFailed, got.code)
			assert.Contains(t, got.err, test.want)
		})
	}
}

func TestClientCertificatesAreUsed(t *testing.T) {
	own, err := transport.SelfCert(zap.NewNop(), t.TempDir(), []string{"127.0.0.1:0"}, 1, x509.ExtKeyUsageClientAuth)
	require.NoError(t, err)
	own.TrustedCAFile, own.ClientCertAuth = own.CertFile, true
	_, u := startEtcd(t, etcdtest.Options{TLS: own})
	got := u.run(t, "history", "--cacert", own.CertFile, "--dial-timeout=500ms")
	assert.Equal(t, command.ExitFailed, got.code)
	assert.Contains(t, got.err, "Does it ask for a certificate (--cert and --key)")
	got = u.run(t, "history", "--cacert", own.CertFile, "--cert", own.CertFile, "--key", own.KeyFile)
	assert.Equal(t, command.ExitDone, got.code, got.err)
}

// secure makes a server demand passwords. The user "reader" may read all of it,
// "root" do everything.
func secure(t *testing.T, client *clientv3.Client) {
	t.Helper()
	ctx := t.Context()
	for name, password := range map[string]string{"root": "r00t-secret", "reader": "r3ader-secret"} {
		_, err := client.UserAdd(ctx, name, password)
		require.NoError(t, err)
		_, err = client.RoleAdd(ctx, name)
		require.NoError(t, err)
		_, err = client.UserGrantRole(ctx, name, name)
		require.NoError(t, err)
	}
	_, err := client.RoleGrantPermission(ctx, "reader", "/penstock/", clientv3.GetPrefixRangeEnd("/penstock/"),
		clientv3.PermissionType(clientv3.PermRead))
	require.NoError(t, err)
	_, err = client.AuthEnable(ctx)
	require.NoError(t, err)
}

func TestPasswords(t *testing.T) {
	server, u := startEtcd(t, etcdtest.Options{Configure: func(c *embed.Config) { c.BcryptCost = 4 }})
	require.Equal(t, command.ExitDone, u.run(t, "push", one(t, 1), "--yes").code)
	secure(t, server.Client())
	file := filepath.Join(t.TempDir(), "password")
	require.NoError(t, os.WriteFile(file, []byte("r00t-secret\n"), 0o600))
	config := filepath.Join(t.TempDir(), "config.yaml")
	require.NoError(t, os.WriteFile(config, []byte("user: root\npassword: r00t-secret\n"), 0o600))
	require.NoError(t, os.Chmod(config, 0o644))

	limit := 1
	for name, test := range map[string]struct {
		args []string
		env  map[string]string
		code int
		want string
	}{
		"nobody":             {nil, nil, command.ExitFailed, "etcd asks for a user: set --user or PENSTOCK_USER"},
		"a wrong password":   {[]string{"--user=root:wr0ng-secret"}, nil, command.ExitFailed, `etcd does not know the user "root" (--user) with that password (--user)`},
		"no such user":       {[]string{"--user=eve"}, map[string]string{"PENSTOCK_PASSWORD": "wr0ng-secret"}, command.ExitFailed, `the user "eve" (--user) with that password (PENSTOCK_PASSWORD)`},
		"no right to write":  {[]string{"--user=reader:r3ader-secret"}, nil, command.ExitFailed, `etcd does not allow the user "reader" to do this: it needs the right to read`},
		"a password file":    {[]string{"--user=root", "--password-file", file}, nil, command.ExitDone, ""},
		"an open file":       {[]string{"--config", config}, nil, command.ExitDone, "warning: " + config + " holds a password and may be read by others: run chmod 600 " + config},
		"in the environment": {nil, map[string]string{"PENSTOCK_USER": "root", "PENSTOCK_PASSWORD": "r00t-secret"}, command.ExitDone, ""},
	} {
		t.Run(name, func(t *testing.T) {
			v := user{env: map[string]string{"PENSTOCK_ENDPOINTS": server.Endpoint(), "PENSTOCK_APP": "shop"}}
			maps.Copy(v.env, test.env)
			limit++ // so that there is something to write
			got := v.run(t, append([]string{"push", one(t, limit), "--yes"}, test.args...)...)
			assert.Equal(t, test.code, got.code, got.err)
			assert.Contains(t, got.err, test.want)
			assert.NotContains(t, got.out+got.err, "-secret")
		})
	}
	got := u.run(t, "history", "--user=reader:r3ader-secret")
	assert.Equal(t, command.ExitDone, got.code, "to read it may")
}
