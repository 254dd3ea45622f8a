//go:build unix

package redistest

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
	"time"
)

// certify makes an authority and a certificate of the server, or takes those of the first of
// others that has some.
func (s *Server) certify(others ...*Server) {
	s.t.Helper()
	for _, other := range others {
		if other != nil && other.tls != nil {
			s.tls, s.certificates = other.tls, other.certificates
			return
		}
	}
	s.certificates = s.dir
	authority := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "redistest"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	server := &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: "127.0.0.1"},
		NotBefore: authority.NotBefore, NotAfter: authority.NotAfter, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	authorityKey, serverKey := s.newKey(), s.newKey()
	root := s.sign(authority, authority, authorityKey, authorityKey)
	leaf := s.sign(server, authority, serverKey, authorityKey)
	private, err := x509.MarshalECPrivateKey(serverKey)
	if err != nil {
		s.t.Fatal(err)
	}
	s.write("ca.pem", "CERTIFICATE", root)
	s.write("cert.pem", "CERTIFICATE", leaf)
	s.write("key.pem", "EC PRIVATE KEY", private)
	trusted, err := x509.ParseCertificate(root)
	if err != nil {
		s.t.Fatal(err)
	}
	s.tls = &tls.Config{RootCAs: x509.NewCertPool(), MinVersion: tls.VersionTLS12}
	s.tls.RootCAs.AddCert(trusted)
}

func (s *Server) newKey() *ecdsa.PrivateKey {
	s.t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		s.t.Fatal(err)
	}
	return key
}

func (s *Server) sign(subject, issuer *x509.Certificate, key, issuerKey *ecdsa.PrivateKey) []byte {
	s.t.Helper()
	signed, err := x509.CreateCertificate(rand.Reader, subject, issuer, &key.PublicKey, issuerKey)
	if err != nil {
		s.t.Fatal(err)
	}
	return signed
}

func (s *Server) write(name, kind string, data []byte) {
	s.t.Helper()
	if err := os.WriteFile(s.path(name), pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: data}), 0o600); err != nil {
		s.t.Fatal(err)
	}
}
