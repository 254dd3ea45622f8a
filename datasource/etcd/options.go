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

// MaxDocumentSize is the longest document in bytes that the source hands on. A
// longer one is reported as a faulty document.
const MaxDocumentSize = rules.MaxDocumentSize

const maxInstance = 256 // bytes in the name of an instance

// Options of a source. The zero value serves.
type Options struct {
	// PageSize is how many documents are read in one request. Defaults to 500.
	PageSize int

	// MaxDocuments is how many documents the prefix may hold. With more of them
	// none is applied, and the source counts as disconnected until there are
	// fewer. Defaults to 10,000.
	MaxDocuments int

	// RequestTimeout is the longest that one request may take, in real time.
	// Defaults to 5 s.
	RequestTimeout time.Duration

	// WatchTimeout is the longest that a watch may be silent before the source
	// counts as disconnected. The server is asked for a sign of life after each
	// third of it. Defaults to 30 s.
	WatchTimeout time.Duration

	// CompareInterval is about how often the revisions of all documents are
	// compared with those in etcd, for changes that a watch has missed: after a
	// random pause of 3/4 to 5/4 of it. Only keys are read. Defaults to a minute.
	CompareInterval time.Duration

	// MinBackoff and MaxBackoff bound the pause before another attempt. A pause
	// is drawn at random from zero to a limit, so that the instances of a
	// service do not return all at once; the limit starts at MinBackoff and
	// doubles with each failure up to MaxBackoff. It starts anew after a
	// connection that has lasted for MaxBackoff. Default to 100 ms and 5 s.
	MinBackoff time.Duration
	MaxBackoff time.Duration

	// Instance, when set, makes each run report under this name which documents
	// are in force in this process: see [Report]. It must be unique among the
	// processes that follow the prefix, as the name of a host with a port or of a
	// pod is. At most 256 bytes, without slashes and control characters. Defaults
	// to no reports.
	Instance string

	// TLS, when set, takes the place of the TLS in the configuration given to
	// [Open], and is called before each connection that the source makes: where
	// certificates are renewed on the disk, the method ClientConfig of a TLSInfo
	// of go.etcd.io/etcd/client/pkg/v3/transport reads them again. A connection
	// that stands is kept. Not for [New]. Defaults to the configuration's.
	TLS func() (*tls.Config, error)

	// Token, when set, returns the token that a source made by [Open] logs in with,
	// instead of the one in the configuration, which can never be renewed. It is
	// called for each request, by several goroutines at once: [TokenFile] reads it
	// from a file that is renewed from outside. While it fails, or the token has
	// expired, the source counts as disconnected as soon as it makes a request for
	// the documents, and tries again. Not beside a user name, which renews its
	// tokens itself. Defaults to the configuration's.
	Token func() (string, error)

	// Logger is warned when the cluster was restored from a backup or replaced
	// by another, and when reports cannot be made. That the source is connected or not is the engine's to log.
	// Documents and credentials are never logged. Defaults to [slog.Default].
	Logger *slog.Logger

	// Clock times the pauses, the silence of a watch, the comparisons and the
	// reports. Defaults to [clock.System].
	Clock clock.Clock
}

// complete returns the options with every field that was left out filled in, or
// what is wrong with them.
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

// checkInstance returns why a name cannot be that of an instance.
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
