package consulsource

import (
	"cmp"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/datasource/snapshot"
)

// Options configure a source. The zero value is ready to use where Consul needs no token.
type Options struct {
	// Token, when set, returns the ACL token of each request. It needs key_prefix "read"
	// on the prefix, and "list" where the servers have enable_key_list_policy. If it
	// fails, the source counts as disconnected.
	Token func() (string, error)

	// Datacenter, Namespace and Partition say where the documents are, as in the
	// parameters dc, ns and partition of the API. Default to those of the agent and of the
	// token.
	Datacenter string
	Namespace  string
	Partition  string

	// MaxStale, when set, lets any server answer, and not only the leader, if it has heard
	// from the leader within this time. Rules may then be older by that time. Defaults to
	// consistent reads, which are never stale.
	MaxStale time.Duration

	// MaxDocuments is how many documents the prefix may hold. If there are more, the
	// source applies none of them and counts as disconnected until there are fewer.
	// Defaults to 10,000.
	MaxDocuments int

	// RequestTimeout is the longest that one request may take, in real time, beside the
	// time that it waits for a change. Defaults to 5 s.
	RequestTimeout time.Duration

	// WatchTimeout is how long a request waits for a change, before all documents are read
	// anyway. A server that is silent is noticed within WatchTimeout, a sixteenth of it,
	// and RequestTimeout. From 1 ms to 10 minutes. Defaults to 30 s.
	WatchTimeout time.Duration

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

	// Logger receives a warning when Consul was restored from a backup or replaced. The
	// engine logs whether the source is connected. Documents and tokens are never logged.
	// Defaults to [slog.Default].
	Logger *slog.Logger

	// Clock times the pauses. Defaults to [clock.System].
	Clock clock.Clock
}

// maxWait is the longest that Consul lets a request wait.
const maxWait = 10 * time.Minute

// common returns the options that sources have in common.
func (o *Options) common() snapshot.Options {
	return snapshot.Options{MaxDocuments: o.MaxDocuments, MinBackoff: o.MinBackoff, MaxBackoff: o.MaxBackoff, Clock: o.Clock}
}

// complete returns the options with the defaults filled in, or all their mistakes.
func (o Options) complete() (Options, error) {
	shared, err := o.common().Complete("consul")
	faults := []error{
		err,
		snapshot.NotNegative("consul", "MaxStale", o.MaxStale),
		snapshot.NotNegative("consul", "RequestTimeout", o.RequestTimeout),
		snapshot.NotNegative("consul", "WatchTimeout", o.WatchTimeout),
	}
	if o.WatchTimeout > maxWait || o.WatchTimeout > 0 && o.WatchTimeout < time.Millisecond {
		faults = append(faults, fmt.Errorf("consul: Options.WatchTimeout is %v: Consul waits from 1 ms to 10 minutes", o.WatchTimeout))
	}
	if o.Transport != nil && o.TLS != nil {
		faults = append(faults, errors.New("consul: Options.TLS has no effect beside Transport: leave one of them out"))
	}
	o.MaxDocuments, o.MinBackoff, o.MaxBackoff, o.Clock = shared.MaxDocuments, shared.MinBackoff, shared.MaxBackoff, shared.Clock
	o.RequestTimeout = cmp.Or(o.RequestTimeout, 5*time.Second)
	o.WatchTimeout = cmp.Or(o.WatchTimeout, 30*time.Second)
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	return o, errors.Join(faults...)
}

// Prefix returns the conventional prefix of an application's documents,
// "penstock/<app>/".
func Prefix(app string) string { return "penstock/" + app + "/" }

// completePrefix returns a prefix with a slash at its end.
func completePrefix(prefix string) (string, error) {
	complete := strings.TrimSuffix(prefix, "/") + "/"
	switch {
	case strings.Trim(prefix, "/") == "":
		return "", errors.New(`consul: the prefix is empty: name the application, as in consulsource.Prefix("shop")`)
	case strings.HasPrefix(prefix, "/"):
		return "", fmt.Errorf("consul: the prefix %q begins with a slash: keys in Consul do not", prefix)
	case strings.Contains(complete, "//"):
		return "", fmt.Errorf("consul: the prefix %q has an empty part: is the application's name missing?", prefix)
	case !utf8.ValidString(prefix) || strings.ContainsFunc(prefix, unicode.IsControl):
		return "", fmt.Errorf("consul: the prefix %q has control characters or is not UTF-8: leave them out", prefix)
	}
	return complete, nil
}
