package redis

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"regexp"
	"slices"
	"strings"

	"github.com/redis/rueidis"

	"github.com/penstock-go/penstock/fleet"
)

// ErrClosed says that a store was closed.
var ErrClosed = errors.New("redis: the store is closed")

var errProtocol = errors.New("redis: the server is not one that runs the scripts of this package")

// failure is why a request was not answered. It never has a password.
type failure struct {
	text string
	// cause is what callers may look for with errors.Is and errors.As; nil if it might have a
	// password.
	cause error
	// unavailable: the server cannot serve anybody at present.
	unavailable bool
}

func (f *failure) Error() string        { return "redis: " + f.text }
func (f *failure) Unwrap() error        { return f.cause }
func (f *failure) Is(target error) bool { return f.unavailable && target == fleet.ErrUnavailable }

// advice tells, by the first word of an error of a server, what it means and what to do.
func advice(code string) (text string, unavailable bool) {
	switch code {
	case "OOM":
		return "the server's memory is full: give it more, or let it evict other keys", true
	case "READONLY":
		return "the server is a replica, or was made one: connect to the primary, or use sentinels", true
	case "NOAUTH":
		return "the server wants a password: set Options.Password, and User if it is not the default one", true
	case "WRONGPASS":
		return "the server does not accept Options.User and Password", true
	case "NOPERM":
		return "the user may not run the scripts: it needs the permissions in the documentation of this package", true
	case "LOADING":
		return "the server has just started and loads its data", true
	case "BUSY":
		return "the server is busy with a script that does not end", true
	case "MISCONF":
		return "the server does not write because it cannot save to its disk", true
	case "MASTERDOWN", "NOREPLICAS":
		return "the server has lost its primary or its replicas", true
	case "CLUSTERDOWN", "TRYAGAIN", "MOVED", "ASK":
		return "the cluster changes, or has lost nodes", true
	case "NOSCRIPT":
		return "the server lost a script between two requests", true
	case "WRONGTYPE":
		return "somebody else uses the key of the limit: give the service an App of its own", false
	default:
		return "the server refused the request", false
	}
}

// refusal returns the error that a server answered with, or nil.
func refusal(err error) *rueidis.RedisError {
	var refused *rueidis.RedisError
	if errors.As(err, &refused) && !refused.IsNil() {
		return refused
	}
	return nil
}

func isNoScript(err error) bool {
	refused := refusal(err)
	return refused != nil && refused.IsNoScript()
}

func isReadOnly(err error) bool {
	refused := refusal(err)
	return refused != nil && code(refused.Error()) == "READONLY"
}

// inScript finds what a command in a script was refused with, which Redis 6 puts into a longer
// text.
var inScript = regexp.MustCompile(`^(?:ERR )?Error running script.*: -?([A-Z]{3,}) `)

// code returns the word that says what kind of error a server answered with.
func code(text string) string {
	if found := inScript.FindStringSubmatch(text); found != nil {
		return found[1]
	}
	first, _, _ := strings.Cut(text, " ")
	return first
}

// oneLine returns the text of joined errors, which has a line for each, in one line, and what
// two of them say once.
func oneLine(text string) string {
	lines := strings.Split(text, "\n")
	slices.Sort(lines)
	return strings.Join(slices.Compact(lines), "; ")
}

// explain makes of what a client returns an error that says what to do.
func (s *Store) explain(err error) error {
	text := s.options.scrub(err.Error())
	f := &failure{unavailable: true}
	if text == err.Error() {
		f.cause = err
	}
	text = oneLine(text)
	f.text = text
	if refusal(err) != nil {
		var said string
		said, f.unavailable = advice(code(text))
		f.text = fmt.Sprintf("%s (%s)", said, text)
		return f
	}
	var network net.Error
	var verification *tls.CertificateVerificationError
	var record tls.RecordHeaderError
	var authority x509.UnknownAuthorityError
	switch {
	case errors.Is(err, ErrClosed), errors.Is(err, errProtocol):
		f.text, f.unavailable = strings.TrimPrefix(text, "redis: "), false
	case errors.Is(err, rueidis.ErrClosing):
		f.text = "the connection was lost, or is being replaced"
	case errors.As(err, &verification), errors.As(err, &authority):
		f.text = "the certificate of the server is not trusted: check Options.TLS (" + text + ")"
	case errors.As(err, &record):
		f.text = "the server does not speak TLS: check its port and Options.TLS (" + text + ")"
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, os.ErrDeadlineExceeded), errors.As(err, &network) && network.Timeout():
		f.text = "no answer in time (" + text + ")"
	case errors.Is(err, io.EOF):
		f.text = "the server closed the connection; if it wants TLS, set Options.TLS (" + text + ")"
	}
	return f
}
