package etcdtest_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.etcd.io/etcd/client/pkg/v3/transport"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/penstock-go/penstock/datasource/etcd"
	"github.com/penstock-go/penstock/datasource/etcd/etcdtest"
	"github.com/penstock-go/penstock/datasource/sourcetest"
)

func TestTLSWithClientCertificates(t *testing.T) {
	ca := newAuthority(t)
	serverCert, serverKey := ca.issue(t, "server")
	clientCert, clientKey := ca.issue(t, "client")
	server := start(t, etcdtest.Options{TLS: transport.TLSInfo{
		CertFile: serverCert, KeyFile: serverKey, TrustedCAFile: ca.file, ClientCertAuth: true,
	}})
	certificate, err := tls.LoadX509KeyPair(clientCert, clientKey)
	require.NoError(t, err)
	known := &tls.Config{RootCAs: ca.pool, Certificates: []tls.Certificate{certificate}, MinVersion: tls.VersionTLS12}

	open := func(config *tls.Config) *sourcetest.Recorder {
		source, err := etcd.Open(clientv3.Config{Endpoints: []string{server.Endpoint()}, TLS: config}, prefix, shortBackoff())
		require.NoError(t, err)
		return follow(t, source)
	}

	t.Run("known client", func(t *testing.T) {
		client, err := clientv3.New(clientv3.Config{Endpoints: []string{server.Endpoint()}, TLS: known})
		require.NoError(t, err)
		defer func() { _ = client.Close() }()
		s := open(known)
		s.AwaitDocuments(t, map[string]string{})
		_, err = client.Put(t.Context(), prefix+"a", "1")
		require.NoError(t, err)
		s.AwaitDocuments(t, map[string]string{"a": "1"})
	})

	t.Run("unknown client", func(t *testing.T) {
		s := open(&tls.Config{RootCAs: ca.pool, MinVersion: tls.VersionTLS12})
		s.AwaitError(t, anyError)
		assert.Empty(t, s.Changes())
	})

	t.Run("unknown server", func(t *testing.T) {
		s := open(&tls.Config{Certificates: known.Certificates, MinVersion: tls.VersionTLS12})
		s.AwaitError(t, says("certificate signed by unknown authority"))
		assert.Empty(t, s.Changes())
	})
}

// authority issues certificates for 127.0.0.1.
type authority struct {
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
	pool        *x509.CertPool
	file        string
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	a := &authority{key: key, pool: x509.NewCertPool()}
	a.certificate = template("authority")
	a.certificate.IsCA, a.certificate.BasicConstraintsValid = true, true
	a.certificate.KeyUsage = x509.KeyUsageCertSign
	der, err := x509.CreateCertificate(rand.Reader, a.certificate, a.certificate, key.Public(), key)
	require.NoError(t, err)
	a.file = writePEM(t, "CERTIFICATE", der)
	certificate, err := x509.ParseCertificate(der)
	require.NoError(t, err)
	a.pool.AddCert(certificate)
	return a
}

// issue returns the files of a certificate and its key.
func (a *authority) issue(t *testing.T, name string) (certificate, key string) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	request := template(name)
	request.IPAddresses = []net.IP{net.IPv4(127, 0, 0, 1)}
	request.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}
	der, err := x509.CreateCertificate(rand.Reader, request, a.certificate, private.Public(), a.key)
	require.NoError(t, err)
	keyDER, err := x509.MarshalECPrivateKey(private)
	require.NoError(t, err)
	return writePEM(t, "CERTIFICATE", der), writePEM(t, "EC PRIVATE KEY", keyDER)
}

func template(name string) *x509.Certificate {
	return &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()),
		Subject:      pkix.Name{CommonName: name},
		NotBefore:    time.Now().Add(-time.Hour),
		NotAfter:     time.Now().Add(time.Hour),
	}
}

func writePEM(t *testing.T, kind string, der []byte) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "file.pem")
	require.NoError(t, os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600))
	return file
}
