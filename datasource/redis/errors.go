package redissource

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"

	"github.com/redis/rueidis"
)

// failure is why a server cannot be read, with what to do about it. It never has a
// password.
type failure struct {
	text  string
	cause error // nil if it might have a password
}

func (f *failure) Error() string { return "redis: " + f.text }
func (f *failure) Unwrap() error { return f.cause }

// scrub removes from the text of an error the arguments of a command that a server did not
// know, which may be a password.
func scrub(err error) (text string, clean bool) {
	text = err.Error()
	before, _, found := strings.Cut(text, "with args beginning with")
	return strings.TrimRight(before, " ,"), !found
}

// advice tells what an error of a server means, by its first word.
func advice(text string) string {
	switch code, _, _ := strings.Cut(text, " "); code {
	case "NOAUTH":
		return "the server wants a password"
	case "WRONGPASS":
		return "the server does not accept the user and the password"
	case "NOPERM":
		return "the user lacks a permission that the documentation of this package lists"
	case "WRONGTYPE":
		return "the key is not a hash: somebody else uses it"
	case "LOADING":
		return "the server has just started and loads its data"
	case "MASTERDOWN":
		return "the server is a replica that has lost its primary"
	case "CLUSTERDOWN", "TRYAGAIN", "MOVED", "ASK":
		return "the cluster changes, or has lost nodes"
	default:
		return "the server refuses the request"
	}
}

// isNotPermitted reports whether a server does not let the user run a command, or does not
// know it.
func isNotPermitted(err *rueidis.RedisError) bool {
	return strings.HasPrefix(err.Error(), "NOPERM") || strings.HasPrefix(err.Error(), "ERR unknown command")
}

// explain returns an error that says what to do, and has no password.
func explain(err error) error {
	if err == nil {
		return nil
	}
	text, clean := scrub(err)
	f := &failure{text: text}
	if clean {
		f.cause = err
	}
	if refused := (*rueidis.RedisError)(nil); errors.As(err, &refused) {
		f.text = fmt.Sprintf("%s (%s)", advice(refused.Error()), text)
		return f
	}
	var network net.Error
	var verification *tls.CertificateVerificationError
	var record tls.RecordHeaderError
	var authority x509.UnknownAuthorityError
	switch {
	case errors.As(err, &verification), errors.As(err, &authority):
		f.text = "the certificate of the server is not trusted: check TLSConfig (" + text + ")"
	case errors.As(err, &record):
		f.text = "the server does not speak TLS: check its port and TLSConfig (" + text + ")"
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, os.ErrDeadlineExceeded), errors.As(err, &network) && network.Timeout():
		f.text = "no answer in time (" + text + ")"
	case errors.Is(err, rueidis.ErrClosing):
		f.text = "the client is closed (" + text + ")"
	case errors.Is(err, io.EOF):
		f.text = "the server closed the connection; if it wants TLS, set TLSConfig (" + text + ")"
	}
	return f
}
