package connection

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"strings"

	"github.com/penstock-go/penstock/cmd/penstock/internal/files"
)

// tls returns the TLS configuration, nil if neither an endpoint nor a certificate
// requires TLS.
func (s Settings) tls(ctx context.Context) (*tls.Config, error) {
	config := &tls.Config{MinVersion: tls.VersionTLS12}
	wanted := ""
	if v := s.values["cacert"]; v.text != "" {
		wanted = v.from
		pem, err := files.Read(ctx, v.text)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", v.from, err)
		}
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("%s: %s holds no certificate in PEM", v.from, v.text)
		}
	}
	if cert, key := s.values["cert"], s.values["key"]; cert.text != "" {
		wanted = cert.from
		pair, err := keyPair(ctx, cert.text, key.text)
		if err != nil {
			return nil, fmt.Errorf("%s and %s: %w", cert.from, key.from, err)
		}
		config.Certificates = []tls.Certificate{pair}
	}
	return s.checkConsistent(config, wanted)
}

// keyPair reads a certificate and its key.
func keyPair(ctx context.Context, cert, key string) (tls.Certificate, error) {
	certPEM, err := files.Read(ctx, cert)
	if err != nil {
		return tls.Certificate{}, err
	}
	keyPEM, err := files.Read(ctx, key)
	if err != nil {
		return tls.Certificate{}, err
	}
	return tls.X509KeyPair(certPEM, keyPEM)
}

// checkConsistent returns an error if some endpoints use TLS and others do not: passwords would
// be sent in plain text to those with a plain URL.
func (s Settings) checkConsistent(config *tls.Config, wanted string) (*tls.Config, error) {
	var plain string
	for _, endpoint := range s.Endpoints {
		switch {
		case strings.HasPrefix(endpoint, "https://"):
			wanted = endpoint
		case strings.HasPrefix(endpoint, "http://"):
			plain = endpoint
		}
	}
	switch {
	case wanted == "":
		return nil, nil //nolint:nilnil // without a configuration the client uses plain text
	case plain != "":
		return nil, fmt.Errorf("%s asks for TLS and %s for none: make all endpoints https://, or none", wanted, plain)
	default:
		return config, nil
	}
}
