package connection

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"time"

	"github.com/penstock-go/penstock/cmd/penstock/internal/files"
)

// ServerFiles are the files of which a server has its TLS configuration: a certificate with its
// key, and the CA certificates of clients, "" if clients need none.
type ServerFiles struct {
	Cert, Key, ClientCA string
}

// ServerTLS returns the TLS configuration of a server, nil if there is no certificate. When
// the files change, connections that are made afterwards have what they say then. Files that
// make no sense, as while they are being replaced, are logged, and what was read before goes on.
func ServerTLS(ctx context.Context, from ServerFiles, now func() time.Time, logger *slog.Logger) (*tls.Config, error) {
	if from.Cert == "" {
		return nil, nil //nolint:nilnil // there is no TLS
	}
	r := &reloadedTLS{files: from, now: now, logger: logger, checked: now()}
	r.seen = r.stamps()
	config, err := from.read(ctx)
	if err != nil {
		return nil, err
	}
	r.present = config
	config = config.Clone()
	config.GetConfigForClient = r.configFor
	return config, nil
}

// read returns the configuration that the files say now.
func (f ServerFiles) read(ctx context.Context) (*tls.Config, error) {
	pair, err := keyPair(ctx, f.Cert, f.Key)
	if err != nil {
		return nil, fmt.Errorf("--tls-cert and --tls-key: %w", err)
	}
	config := &tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{pair}, NextProtos: []string{"h2", "http/1.1"}}
	if f.ClientCA == "" {
		return config, nil
	}
	pem, err := files.Read(ctx, f.ClientCA)
	if err != nil {
		return nil, fmt.Errorf("--tls-client-ca: %w", err)
	}
	config.ClientAuth, config.ClientCAs = tls.RequireAndVerifyClientCert, x509.NewCertPool()
	config.SessionTicketsDisabled = true // one of a client whose CA is not trusted any more
	if !config.ClientCAs.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("--tls-client-ca: %s holds no certificate in PEM", f.ClientCA)
	}
	return config, nil
}

// checkInterval is how often the files are looked at, at most, when clients connect.
const checkInterval = time.Second

// reloadedTLS is the configuration that files said last.
type reloadedTLS struct {
	files  ServerFiles
	now    func() time.Time
	logger *slog.Logger

	mu      sync.Mutex // guards what follows
	present *tls.Config
	seen    [3]stamp // of the files when they were last read without a mistake
	checked time.Time
	mistake string // that was logged last
}

// stamp is what tells that a file has changed without reading it.
type stamp struct {
	modified time.Time
	size     int64
}

// stamps returns those of all files. A name that is a symbolic link stands for its target.
func (r *reloadedTLS) stamps() (stamps [3]stamp) {
	for i, name := range []string{r.files.Cert, r.files.Key, r.files.ClientCA} {
		if info, err := os.Stat(name); err == nil {
			stamps[i] = stamp{info.ModTime(), info.Size()}
		}
	}
	return stamps
}

// configFor returns the configuration for a client that connects.
func (r *reloadedTLS) configFor(hello *tls.ClientHelloInfo) (*tls.Config, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := r.now()
	if now.Sub(r.checked) < checkInterval {
		return r.present, nil
	}
	r.checked = now
	stamps := r.stamps()
	if stamps == r.seen {
		return r.present, nil
	}
	config, err := r.files.read(hello.Context())
	if err != nil {
		if text := err.Error(); text != r.mistake {
			r.mistake = text
			r.logger.Error("penstock: the certificates have changed and cannot be used: those before go on", slog.Any("error", err))
		}
		return r.present, nil
	}
	r.present, r.seen, r.mistake = config, stamps, ""
	r.logger.Info("penstock: the certificates have changed, and are used from now on")
	return r.present, nil
}
