package serve

import (
	"log/slog"
	"time"
)

// The defaults of [RLQSOptions].
const (
	DefaultReportInterval   = 5 * time.Second
	DefaultTTL              = 30 * time.Second
	DefaultMaxStreams       = 50_000
	DefaultMaxBuckets       = 100_000
	DefaultMaxStreamBuckets = 20_000
	DefaultMaxShares        = 1_000_000
	DefaultMaxBucketSize    = 1 << 10
)

// RLQSOptions configure a [RLQS]. The zero value is ready to use.
type RLQSOptions struct {
	// OriginKey, MaxEntries and IPv6Prefix are those of [RLSOptions].
	OriginKey  string
	MaxEntries int
	IPv6Prefix int

	// ReportInterval is how often data planes report. Envoy's filter does every 5 s, whatever its
	// configuration says. Defaults to [DefaultReportInterval].
	ReportInterval time.Duration

	// TTL is how long an assignment lasts, in whole seconds, and at most for how long data planes go on by it
	// without a server. Longer than two report intervals. Defaults to [DefaultTTL].
	TTL time.Duration

	// MaxStreams bounds the streams. More end with RESOURCE_EXHAUSTED. Defaults to
	// [DefaultMaxStreams].
	MaxStreams int

	// MaxBuckets bounds the buckets, MaxStreamBuckets those that one stream reports, and
	// MaxShares the buckets of all streams together. MaxBucketSize is how many bytes the entries of
	// a bucket may have. A bucket beyond a bound gets no assignment: its data plane does as its
	// no_assignment_behavior says. Default to [DefaultMaxBuckets],
	// [DefaultMaxStreamBuckets], [DefaultMaxShares] and [DefaultMaxBucketSize].
	MaxBuckets, MaxStreamBuckets, MaxShares, MaxBucketSize int

	// Logger is told of buckets beyond a bound, once a minute. Defaults to none.
	Logger *slog.Logger
}

func (o *RLQSOptions) setDefaults() {
	positive := func(n *int, otherwise int) {
		if *n <= 0 {
			*n = otherwise
		}
	}
	positive(&o.MaxEntries, DefaultMaxEntries)
	positive(&o.MaxStreams, DefaultMaxStreams)
	positive(&o.MaxBuckets, DefaultMaxBuckets)
	positive(&o.MaxStreamBuckets, DefaultMaxStreamBuckets)
	positive(&o.MaxShares, DefaultMaxShares)
	positive(&o.MaxBucketSize, DefaultMaxBucketSize)
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.ReportInterval <= 0 {
		o.ReportInterval = DefaultReportInterval
	}
	if o.TTL <= 0 {
		o.TTL = DefaultTTL
	}
	// Envoy cuts off fractions, and an assignment has to outlive the report after which it is renewed.
	o.TTL = max(o.TTL, 2*o.ReportInterval+time.Second).Round(time.Second)
}
