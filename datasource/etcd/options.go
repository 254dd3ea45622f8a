package etcd

import (
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/rules"
)

// MaxDocumentSize is the longest document, in bytes, that the source delivers. A
// longer one is delivered as a document with an error.
const MaxDocumentSize = rules.MaxDocumentSize

const maxInstance = 256 // bytes in the name of an instance

// Options configure a source. The zero value is ready to use.
type Options struct {
	// PageSize is how many documents are read in one request. Defaults to 500.
	PageSize int

	// MaxDocuments is how many documents the prefix may hold. If there are more,
	// the source applies none of them and counts as disconnected until there are
	// fewer. Defaults to 10,000.
	MaxDocuments int

	// RequestTimeout is the longest that one request may take, in real time.
	// Defaults to 5 s.
	RequestTimeout time.Duration

	// WatchTimeout is the longest that a watch may be silent before the source
	// counts as disconnected. The source probes a silent server after each third
	// of it. Defaults to 30 s.
	WatchTimeout time.Duration

	// CompareInterval is about how often the revisions of all documents are
	// compared with those in etcd, for changes that a watch has missed: after a
	// random pause of 3/4 to 5/4 of it. Only keys are read. Defaults to a minute.
	CompareInterval time.Duration

	// MinBackoff and MaxBackoff bound the pause before another attempt, as in
	// [retry.Backoff]. The limit of the pauses starts at MinBackoff again after a
	// connection that has lasted for MaxBackoff. Default to 100 ms and 5 s.
	MinBackoff time.Duration
	MaxBackoff time.Duration

	// Instance, when set, makes each run report under this name which documents
	// are in force in this process: see [Report]. It must be unique among the
	// processes that follow the prefix, such as host:port or the name of a pod. At
	// most 256 bytes, without slashes and control characters. Defaults to no
	// reports.
	Instance string

	// Inspect, when set, is reported as the address at which operators reach the handler of the package
	// inspect in this process, as host:port: "10.0.0.7:6060". It must not be one that listens on all
	// addresses, such as ":6060", which says nothing to others. Needs Instance. Defaults to none.
	Inspect string

	// TLS, when set, replaces the TLS in the configuration given to [Open]. It is
	// called before each connection that the source makes. Where certificates are
	// renewed on disk, use the method ClientConfig of a TLSInfo of
	// go.etcd.io/etcd/client/pkg/v3/transport, which reads them again. Open
	// connections are kept. Not for [New]. Defaults to the configuration's.
	TLS func() (*tls.Config, error)

	// Token, when set, returns the token that a source made by [Open] logs in with,
	// instead of the one in the configuration, which can never be renewed. It is
	// called for each request, by several goroutines at once: [TokenFile] reads it
	// from a file that another program renews. If it fails, or the token has
	// expired, the source counts as disconnected from its next request for the
	// documents on, and tries again. It excludes a user name, whose tokens the
	// client renews itself. Defaults to the configuration's.
	Token func() (string, error)

	// Logger receives a warning when the cluster was restored from a backup or
	// replaced by another, and when reports cannot be made. The engine logs whether
	// the source is connected. Documents and credentials are never logged. Defaults
	// to [slog.Default].
	Logger *slog.Logger

	// Clock times the pauses, the watch timeout, the comparisons and the reports.
	// Defaults to [clock.System].
	Clock clock.Clock
}

// complete returns the options with the defaults filled in, or all their mistakes.
func (o Options) complete() (Options, error) {
	var faults []error
	for _, field := range []struct {
		name string
		bad  bool
	}{
		{"PageSize", o.PageSize < 0},
		{"MaxDocuments", o.MaxDocuments < 0},
		{"RequestTimeout", o.RequestTimeout < 0},
		{"WatchTimeout", o.WatchTimeout < 0},
		{"CompareInterval", o.CompareInterval < 0},
		{"MinBackoff", o.MinBackoff < 0},
		{"MaxBackoff", o.MaxBackoff < 0},
	} {
		if field.bad {
			faults = append(faults, fmt.Errorf("etcd: Options.%s is negative: leave it out for the default", field.name))
		}
	}
	faults = append(faults, checkInstance(o.Instance))
	if o.Inspect != "" {
		if err := CheckInspect(o.Inspect); err != nil {
			faults = append(faults, fmt.Errorf("etcd: Options.Inspect %w", err))
		} else if o.Instance == "" {
			faults = append(faults, errors.New("etcd: Options.Inspect is reported only with Options.Instance: set that, too"))
		}
	}
	setDefault(&o.PageSize, 500)
	setDefault(&o.MaxDocuments, 10_000)
	setDefault(&o.RequestTimeout, 5*time.Second)
	setDefault(&o.WatchTimeout, 30*time.Second)
	setDefault(&o.CompareInterval, time.Minute)
	setDefault(&o.MaxBackoff, max(o.MinBackoff, 5*time.Second))
	setDefault(&o.MinBackoff, min(o.MaxBackoff, 100*time.Millisecond))
	if o.MinBackoff > o.MaxBackoff {
		faults = append(faults, fmt.Errorf("etcd: Options.MinBackoff %v is longer than MaxBackoff %v", o.MinBackoff, o.MaxBackoff))
	}
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	if o.Clock == nil {
		o.Clock = clock.System()
	}
	return o, errors.Join(faults...)
}

// checkInstance returns an error if a name cannot be that of an instance.
func checkInstance(name string) error {
	switch {
	case len(name) > maxInstance:
		return fmt.Errorf("etcd: Options.Instance has %d bytes: shorten it to %d", len(name), maxInstance)
	case !utf8.ValidString(name) || strings.ContainsFunc(name, unicode.IsControl) || strings.Contains(name, "/"):
		return fmt.Errorf("etcd: Options.Instance %q has slashes, control characters or is not UTF-8: leave them out", name)
	default:
		return nil
	}
}

func setDefault[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}
