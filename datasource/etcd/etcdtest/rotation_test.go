package etcdtest_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.etcd.io/etcd/client/pkg/v3/transport"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"github.com/penstock-go/penstock/datasource/etcd"
	"github.com/penstock-go/penstock/datasource/etcd/etcdtest"
)

// keyFiles are the files of a TLS certificate and its key.
type keyFiles struct{ dir string }

func (s keyFiles) info() transport.TLSInfo {
	return transport.TLSInfo{
		CertFile: filepath.Join(s.dir, "certificate"), KeyFile: filepath.Join(s.dir, "key"),
		TrustedCAFile: filepath.Join(s.dir, "authority"), ClientCertAuth: true,
	}
}

// renew replaces the files by new ones of the authority.
func (s keyFiles) renew(t *testing.T, by *authority, name string) {
	t.Helper()
	certificate, key := by.issue(t, name)
	for to, from := range map[string]string{"certificate": certificate, "key": key, "authority": by.file} {
		data, err := os.ReadFile(from)
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(filepath.Join(s.dir, to), data, 0o600))
	}
}

func TestRenewedCertificatesAreUsed(t *testing.T) {
	t.Parallel()
	ours, theirs := keyFiles{t.TempDir()}, keyFiles{t.TempDir()}
	first, second := newAuthority(t), newAuthority(t)
	ours.renew(t, first, "client")
	theirs.renew(t, first, "server")
	server := start(t, etcdtest.Options{Dir: t.TempDir(), TLS: theirs.info()})
	opts := shortBackoff()
	opts.TLS = ours.info().ClientConfig
	s := follow(t, open(t, opts, server.Endpoint()))
	s.AwaitDocuments(t, map[string]string{})
	write := func(value string) {
		config, err := ours.info().ClientConfig()
		require.NoError(t, err)
		client, err := clientv3.New(clientv3.Config{Endpoints: []string{server.Endpoint()}, TLS: config, Logger: zap.NewNop()})
		require.NoError(t, err)
		defer func() { _ = client.Close() }()
		_, err = client.Put(t.Context(), prefix+"a", value)
		require.NoError(t, err)
	}
	write("1")
	s.AwaitDocuments(t, map[string]string{"a": "1"})

	theirs.renew(t, first, "server, renewed")
	ours.renew(t, first, "client, renewed")
	require.NoError(t, server.Restart())
	write("2")
	s.AwaitDocuments(t, map[string]string{"a": "2"})

	theirs.renew(t, second, "server of another authority")
	require.NoError(t, server.Restart())
	s.AwaitError(t, says("certificate signed by unknown authority"))
	assert.Equal(t, map[string]string{"a": "2"}, s.Documents())
	ours.renew(t, second, "client of another authority")
	write("3")
	s.AwaitDocuments(t, map[string]string{"a": "3"})
	assert.Equal(t, []string{"1", "2", "3"}, s.History("a"))
}

func TestUnreadableCertificatesAreRetried(t *testing.T) {
	ours, theirs := keyFiles{t.TempDir()}, keyFiles{t.TempDir()}
	authority := newAuthority(t)
	theirs.renew(t, authority, "server")
	server := start(t, etcdtest.Options{TLS: theirs.info()})
	opts := shortBackoff()
	opts.TLS = ours.info().ClientConfig
	s := follow(t, open(t, opts, server.Endpoint()))
	s.AwaitError(t, says("etcd: connecting: "))
	ours.renew(t, authority, "client")
	s.AwaitDocuments(t, map[string]string{})
}

func TestTLSOptionIsAnErrorForACallersClient(t *testing.T) {
	server := start(t, etcdtest.Options{})
	opts := shortBackoff()
	opts.TLS = transport.TLSInfo{}.ClientConfig
	_, err := etcd.New(dial(t, server.Endpoint()), prefix, opts)
	require.ErrorContains(t, err, "Options.TLS")
	opts.TLS, opts.Token = nil, etcd.TokenFile("token")
	_, err = etcd.New(dial(t, server.Endpoint()), prefix, opts)
	require.ErrorContains(t, err, "Options.Token")
}
