package nacossource

import (
	"cmp"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"regexp"
	"time"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/datasource/snapshot"
)

// Options configure a source. The zero value is ready to use where Nacos needs no
// password.
type Options struct {
	// Namespace is the ID of the namespace, not its name. Defaults to the public one.
	Namespace string

	// Credentials, when set, returns the name and the password of a user that may read the
	// namespace. It is called for each login: when the source begins, before a token
	// expires and when it is refused. If it fails, the source counts as disconnected.
	Credentials func() (user, password string, err error)

	// MaxDocuments is how many documents the group may hold. If there are more, the source
	// applies none of them and counts as disconnected until there are fewer. Defaults to
	// 10,000.
	MaxDocuments int

	// RequestTimeout is the longest that one request may take, in real time, beside the
	// time that it waits for a change. Defaults to 5 s.
	RequestTimeout time.Duration

	// PollInterval is how often the group is listed: the longest that a new document or a
	// removal takes. Changes of documents that are there arrive at once. Defaults to 10 s.
	PollInterval time.Duration

	// MinBackoff and MaxBackoff bound the pause before another attempt, as in
	// [snapshot.Options]. Default to 100 ms and 5 s.
	MinBackoff time.Duration
	MaxBackoff time.Duration

	// TLS configures connections over https, such as authorities and certificates of the
	// client. Defaults to the authorities of the system.
	TLS *tls.Config

	// Transport, when set, sends the requests. The source does not close its connections.
	// It excludes TLS. Defaults to a transport of each run, which uses the proxies in the
	// environment.
	Transport http.RoundTripper

	// Logger receives a warning when a group is too large for all of its documents to be
	// listened to. The engine logs whether the source is connected. Documents, passwords
	// and tokens are never logged. Defaults to [slog.Default].
	Logger *slog.Logger

	// Clock times the pauses and the tokens. Defaults to [clock.System].
	Clock clock.Clock
}

// common returns the options that sources have in common.
func (o *Options) common() snapshot.Options {
	return snapshot.Options{MaxDocuments: o.MaxDocuments, MinBackoff: o.MinBackoff, MaxBackoff: o.MaxBackoff, Clock: o.Clock}
}

// complete returns the options with the defaults filled in, or all their mistakes.
func (o Options) complete() (Options, error) {
	shared, err := o.common().Complete("nacos")
	faults := []error{
		err,
		snapshot.NotNegative("nacos", "RequestTimeout", o.RequestTimeout),
		snapshot.NotNegative("nacos", "PollInterval", o.PollInterval),
	}
	if o.Namespace != "" && !validName.MatchString(o.Namespace) {
		faults = append(faults, fmt.Errorf("nacos: Options.Namespace is %q: give the ID of the namespace", o.Namespace))
	}
	if o.Transport != nil && o.TLS != nil {
		faults = append(faults, errors.New("nacos: Options.TLS has no effect beside Transport: leave one of them out"))
	}
	o.MaxDocuments, o.MinBackoff, o.MaxBackoff, o.Clock = shared.MaxDocuments, shared.MinBackoff, shared.MaxBackoff, shared.Clock
	o.RequestTimeout = cmp.Or(o.RequestTimeout, 5*time.Second)
	o.PollInterval = cmp.Or(o.PollInterval, 10*time.Second)
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	return o, errors.Join(faults...)
}

// validName is what a group and a namespace may be called.
var validName = regexp.MustCompile(`^[A-Za-z0-9.:_-]{1,128}$`)

// Group returns the conventional group of an application's documents, "penstock-<app>".
func Group(app string) string { return "penstock-" + app }

func checkGroup(group string) error {
	switch {
	case group == "" || group == Group(""):
		return errors.New(`nacos: the group is empty: name the application, as in nacossource.Group("shop")`)
	case !validName.MatchString(group):
		return fmt.Errorf("nacos: the group %q is not a name of 1 to 128 letters, digits and . : _ -", group)
	default:
		return nil
	}
}
