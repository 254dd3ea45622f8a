package redissource

import (
	"context"
	"crypto/rand"
	"errors"

	"github.com/redis/rueidis"

	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/datasource/snapshot"
)

// Source delivers the rule documents in a hash of Redis. It keeps no state between runs:
// an engine may follow it again, and several engines may follow it at once.
type Source struct {
	key    string
	opts   Options
	client rueidis.Client       // of the caller; nil if each run makes its own
	config rueidis.ClientOption // for the clients that runs make
}

var _ core.Source = (*Source)(nil)

// New returns a source of the documents at the key that uses the caller's client. The
// caller closes the client after the engine. The client must not read from replicas.
// With DisableCache in its options, changes are seen after [Options.PollInterval];
// otherwise after about 100 ms.
func New(client rueidis.Client, key string, opts Options) (*Source, error) {
	var clientErr error
	if client == nil {
		clientErr = errors.New("redis: the client is nil: make it with rueidis.NewClient, or use Open")
	}
	return newSource(Source{client: client}, clientErr, key, opts)
}

// Open returns a source of the documents at the key that uses a client of its own. A run
// makes the client when it begins, closes it when it ends, and makes another one after
// each failure: names are resolved, sentinels asked and AuthCredentialsFn is called
// again.
//
// Open sets these fields of the configuration if they are left out: Dialer.Timeout and
// ConnWriteTimeout to [Options.RequestTimeout], ClientName to "penstock",
// Sentinel.TopologyRefreshInterval to 2 s, ClusterOption.ShardsRefreshInterval to 10 s,
// and one connection to each server with small buffers.
func Open(config rueidis.ClientOption, key string, opts Options) (*Source, error) {
	return newSource(Source{config: config}, checkConfig(config), key, opts)
}

func newSource(s Source, configErr error, key string, opts Options) (*Source, error) {
	opts, err := opts.complete()
	if err := errors.Join(configErr, checkKey(key), err); err != nil {
		return nil, err
	}
	s.key, s.opts = key, opts
	return &s, nil
}

// Name returns "redis:" and the key.
func (s *Source) Name() string { return "redis:" + s.key }

// Run implements [core.Source]. It returns ctx.Err() when ctx has ended. It tries again
// after every error, including a missing permission or a wrong password, which operators
// can correct meanwhile.
func (s *Source) Run(ctx context.Context, sink core.Sink) error {
	r := &reader{Source: s, probe: "probe " + rand.Text(), changed: make(chan struct{}, 1)}
	defer r.disconnect()
	return snapshot.Run(ctx, sink, s.opts.common(), r.next)
}
