package redissource

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/redis/rueidis"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/datasource/snapshot"
	"github.com/penstock-go/penstock/rules"
)

// MaxDocumentSize is the longest document, in bytes, that the source delivers. A longer
// one is delivered as a document with an error.
const MaxDocumentSize = rules.MaxDocumentSize

// Options configure a source. The zero value is ready to use.
type Options struct {
	// MaxDocuments is how many documents the hash may hold. If there are more, the
	// source applies none of them and counts as disconnected until there are fewer.
	// Defaults to 10,000.
	MaxDocuments int

	// RequestTimeout is the longest that one request may take, in real time. Defaults to
	// 5 s.
	RequestTimeout time.Duration

	// PollInterval is how often all documents are read even though the server has told
	// of no change. It is how long a change takes at most where the server or the client
	// does not support client-side caching. Defaults to 10 s.
	PollInterval time.Duration

	// AcceptOlderAfter is how long a server must have fewer revisions than were read
	// before until its documents are applied all the same. See the package documentation
	// on failovers. Defaults to 30 s.
	AcceptOlderAfter time.Duration

	// MinBackoff and MaxBackoff bound the pause before another attempt, as in
	// [snapshot.Options]. Default to 100 ms and 5 s.
	MinBackoff time.Duration
	MaxBackoff time.Duration

	// Logger receives a warning when the documents went back to an older revision or
	// were replaced, and when the server cannot tell of changes. The engine logs whether
	// the source is connected. Documents and credentials are never logged. Defaults to
	// [slog.Default].
	Logger *slog.Logger

	// Clock times the pauses and polls. Defaults to [clock.System].
	Clock clock.Clock
}

// common returns the options that sources have in common.
func (o *Options) common() snapshot.Options {
	return snapshot.Options{MaxDocuments: o.MaxDocuments, MinBackoff: o.MinBackoff, MaxBackoff: o.MaxBackoff, Clock: o.Clock}
}

// complete returns the options with the defaults filled in, or all their mistakes.
func (o Options) complete() (Options, error) {
	shared, err := o.common().Complete("redis")
	err = errors.Join(
		err,
		snapshot.NotNegative("redis", "RequestTimeout", o.RequestTimeout),
		snapshot.NotNegative("redis", "PollInterval", o.PollInterval),
		snapshot.NotNegative("redis", "AcceptOlderAfter", o.AcceptOlderAfter),
	)
	o.MaxDocuments, o.MinBackoff, o.MaxBackoff, o.Clock = shared.MaxDocuments, shared.MinBackoff, shared.MaxBackoff, shared.Clock
	o.RequestTimeout = cmp.Or(o.RequestTimeout, 5*time.Second)
	o.PollInterval = cmp.Or(o.PollInterval, 10*time.Second)
	o.AcceptOlderAfter = cmp.Or(o.AcceptOlderAfter, 30*time.Second)
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	return o, err
}

// Key returns the conventional key of an application's documents,
// "penstock:<app>:rules".
func Key(app string) string { return "penstock:" + app + ":rules" }

// checkKey returns an error if a key cannot be that of documents.
func checkKey(key string) error {
	switch {
	case key == "" || key == Key(""):
		return errors.New(`redis: the key is empty: name the application, as in redissource.Key("shop")`)
	case !utf8.ValidString(key) || strings.ContainsFunc(key, unicode.IsControl):
		return fmt.Errorf("redis: the key %q has control characters or is not UTF-8: leave them out", key)
	default:
		return nil
	}
}

// checkConfig returns all mistakes in the configuration of a client.
func checkConfig(config rueidis.ClientOption) error {
	var faults []error
	if len(config.InitAddress) == 0 {
		faults = append(faults, errors.New(
			"redis: InitAddress is empty: give the host:port of the server, of some nodes of a cluster, or of the sentinels"))
	}
	for _, address := range config.InitAddress {
		if host, port, err := net.SplitHostPort(address); err != nil || host == "" || port == "" || strings.Contains(address, "@") {
			faults = append(faults, fmt.Errorf(
				"redis: address %q is not of the form host:port, such as localhost:6379; TLS, users and databases have fields of their own",
				withoutUser(address)))
		}
	}
	if config.ReplicaOnly || config.SendToReplicas != nil {
		faults = append(faults, errors.New("redis: ReplicaOnly and SendToReplicas are not possible: replicas may have old rules"))
	}
	if config.Username != "" && config.Password == "" && config.AuthCredentialsFn == nil {
		faults = append(faults, fmt.Errorf("redis: Username is %q but Password is empty: a user needs a password", config.Username))
	}
	return errors.Join(faults...)
}

// withoutUser returns an address without what is before the last @, which may be a
// password.
func withoutUser(address string) string {
	if i := strings.LastIndexByte(address, '@'); i >= 0 {
		return "***" + address[i:]
	}
	return address
}
