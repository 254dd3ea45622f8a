package connection

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
)

// reach finds out whether any endpoint answers, faster and in plainer words than
// a client does.
func (s Settings) reach(ctx context.Context, config *tls.Config) error {
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	answers := make(chan error, len(s.Endpoints))
	for _, endpoint := range s.Endpoints {
		go func() { answers <- knock(ctx, endpoint, config) }()
	}
	var faults []string
	for range s.Endpoints {
		err := <-answers
		if err == nil {
			return nil
		}
		faults = append(faults, err.Error())
	}
	if errors.Is(ctx.Err(), context.Canceled) {
		return ctx.Err()
	}
	return s.unreachable(faults)
}

// knock opens a connection to an endpoint and closes it.
func knock(ctx context.Context, endpoint string, config *tls.Config) error {
	hostPort, err := address(endpoint)
	if err != nil {
		return err
	}
	var dialer interface {
		DialContext(ctx context.Context, network, address string) (net.Conn, error)
	} = &net.Dialer{}
	if config != nil {
		dialer = &tls.Dialer{Config: config}
	}
	conn, err := dialer.DialContext(ctx, "tcp", hostPort)
	if err != nil {
		return fmt.Errorf("%s: %w", endpoint, plain(err))
	}
	return conn.Close()
}

// plain cuts from an error what the endpoint tells already.
func plain(err error) error {
	var record tls.RecordHeaderError
	var untrusted *tls.CertificateVerificationError
	var op *net.OpError
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return errors.New("no answer")
	case errors.As(err, &record), errors.Is(err, io.EOF):
		return errors.New("it does not speak TLS")
	case errors.As(err, &untrusted):
		return fmt.Errorf("%w: does --cacert name the right file?", untrusted)
	case errors.As(err, &op):
		return op.Err
	default:
		return err
	}
}

// unreachable says that etcd cannot be reached, why, and what to try.
func (s Settings) unreachable(faults []string) error {
	return fmt.Errorf("etcd cannot be reached:\n  %s\nIs it running there? %s", strings.Join(faults, "\n  "), s.whence())
}

// silent says that something is there that does not answer as etcd does.
func (s Settings) silent(tls bool) error {
	advice := "Does it ask for TLS (https:// endpoints, --cacert), or has the cluster no leader?"
	if tls {
		advice = "Does it ask for a certificate (--cert and --key), or has the cluster no leader?"
	}
	return fmt.Errorf("%s takes connections but gave no answer in %v.\n%s %s",
		strings.Join(s.Endpoints, ", "), s.timeout, advice, s.whence())
}

// whence says where the endpoints come from, and how to set others.
func (s Settings) whence() string {
	v := s.values["endpoints"]
	if v.level == byDefault {
		return "This is the default; --endpoints, PENSTOCK_ENDPOINTS or a file of settings name others."
	}
	return fmt.Sprintf("The endpoints are those of %s.", v.from)
}
