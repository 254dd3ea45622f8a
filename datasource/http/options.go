package httpsource

import (
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"time"

	"github.com/penstock-go/penstock/clock"
)

// Options configure a source. The zero value is ready to use.
type Options struct {
	// Name identifies the source in status, logs and metrics. Defaults to the URL without
	// user, password, query and fragment. Sources that differ in those only need names.
	Name string

	// Interval is about how often the source asks for changes: each pause is random, from
	// 3/4 to 5/4 of it, so that the instances of a service do not ask all at once.
	// Defaults to 10 s.
	Interval time.Duration

	// CompareInterval is about how often a document or an index is read without a
	// condition, whatever the server says of its tag and time: each time is random, from
	// 3/4 to 5/4 of it. Tags and times may stay the same although a document has changed,
	// and a cache may go on saying that nothing has. Defaults to a minute.
	CompareInterval time.Duration

	// RequestTimeout is the longest that one request may take, in real time, redirects
	// and body included. Defaults to 10 s.
	RequestTimeout time.Duration

	// MinBackoff and MaxBackoff bound the pause after a failed poll, as in
	// [retry.Backoff]. The limit of the pauses starts at MinBackoff again after a poll
	// that succeeds. Default to 200 ms and 10 s.
	MinBackoff time.Duration
	MaxBackoff time.Duration

	// MaxDocuments is how many documents an index may have. If there are more, the
	// source applies none of them and counts as disconnected until there are fewer.
	// Defaults to 10,000.
	MaxDocuments int

	// Token, when set, returns the bearer token of each request. Several goroutines may
	// call it at once. If it fails, the source counts as disconnected. It excludes a user
	// in the URL.
	Token func() (string, error)

	// Header, when set, returns fields to add to each request, such as the key of an API.
	// Several goroutines may call it at once. If it fails, the source counts as
	// disconnected. Token, a user in the URL and these fields are sent to the host of the
	// URL only, not to others that it redirects to.
	Header func() (http.Header, error)

	// TLS configures connections over https, such as authorities and certificates of the
	// client. Defaults to the authorities of the system.
	TLS *tls.Config

	// Transport, when set, sends the requests. The source does not close its connections.
	// It excludes TLS. Defaults to a transport of each run, which uses the proxies in the
	// environment.
	Transport http.RoundTripper

	// Logger receives from [WatchLists] which lists come into force, which do not and
	// why. Entries of lists are not logged. Defaults to [slog.Default].
	Logger *slog.Logger

	// Clock times the pauses. Defaults to [clock.System].
	Clock clock.Clock
}

// complete returns the options with the defaults filled in, or all their mistakes.
func (o Options) complete() (Options, error) {
	var faults []error
	for _, field := range []struct {
		name string
		bad  bool
	}{
		{"Interval", o.Interval < 0},
		{"CompareInterval", o.CompareInterval < 0},
		{"RequestTimeout", o.RequestTimeout < 0},
		{"MinBackoff", o.MinBackoff < 0},
		{"MaxBackoff", o.MaxBackoff < 0},
		{"MaxDocuments", o.MaxDocuments < 0},
	} {
		if field.bad {
			faults = append(faults, fmt.Errorf("httpsource: Options.%s is negative: leave it out for the default", field.name))
		}
	}
	if o.Transport != nil && o.TLS != nil {
		faults = append(faults, errors.New("httpsource: Options.TLS has no effect beside Transport: leave one of them out"))
	}
	setDefault(&o.Interval, 10*time.Second)
	setDefault(&o.CompareInterval, time.Minute)
	setDefault(&o.RequestTimeout, 10*time.Second)
	setDefault(&o.MaxBackoff, max(o.MinBackoff, 10*time.Second))
	setDefault(&o.MinBackoff, min(o.MaxBackoff, 200*time.Millisecond))
	setDefault(&o.MaxDocuments, 10_000)
	if o.MinBackoff > o.MaxBackoff {
		faults = append(faults, fmt.Errorf("httpsource: Options.MinBackoff %v is longer than MaxBackoff %v", o.MinBackoff, o.MaxBackoff))
	}
	if o.Clock == nil {
		o.Clock = clock.System()
	}
	return o, errors.Join(faults...)
}

func setDefault[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}
