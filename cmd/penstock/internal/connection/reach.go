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

// checkReachable checks whether any endpoint accepts connections. It is faster than a client
// and returns clearer errors.
func (s Settings) checkReachable(ctx context.Context, config *tls.Config) error {
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	answers := make(chan error, len(s.Endpoints))
	for _, endpoint := range s.Endpoints {
		go func() { answers <- tryConnect(ctx, endpoint, config) }()
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
	return s.unreachableError(faults)
}

// tryConnect opens a connection to an endpoint and closes it.
func tryConnect(ctx context.Context, endpoint string, config *tls.Config) error {
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
		return fmt.Errorf("%s: %w", endpoint, shortError(err))
	}
	return conn.Close()
}

// shortError shortens an error of a connection.
func shortError(err error) error {
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

// unreachableError returns the error if no endpoint accepts connections.
func (s Settings) unreachableError(faults []string) error {
	return fmt.Errorf("etcd cannot be reached:\n  %s\nIs it running there? %s", strings.Join(faults, "\n  "), s.endpointsHint())
}

// noAnswerError returns the error if an endpoint accepts connections but does not answer.
func (s Settings) noAnswerError(tls bool) error {
	advice := "Does it ask for TLS (https:// endpoints, --cacert), or has the cluster no leader?"
	if tls {
		advice = "Does it ask for a certificate (--cert and --key), or has the cluster no leader?"
	}
	return fmt.Errorf("%s takes connections but gave no answer in %v.\n%s %s",
		strings.Join(s.Endpoints, ", "), s.timeout, advice, s.endpointsHint())
}

// endpointsHint says how the endpoints were set.
func (s Settings) endpointsHint() string {
	v := s.values["endpoints"]
	if v.level == byDefault {
		return "This is the default; set others with --endpoints, PENSTOCK_ENDPOINTS or a settings file."
	}
	return fmt.Sprintf("The endpoints are those of %s.", v.from)
}
