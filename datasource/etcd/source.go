package etcd

import (
	"context"
	"errors"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"github.com/penstock-go/penstock/core"
)

// ErrClientClosed is what Run returns when the client that was given to [New]
// has been closed.
var ErrClientClosed = errors.New("etcd: the client has been closed")

// Source is an etcd prefix as a source of rule documents. It keeps nothing
// between runs: an engine may follow it again, and several engines may follow
// it at once.
type Source struct {
	keys   Keys
	opts   Options
	client *clientv3.Client // of the caller; nil when each run dials
	config clientv3.Config  // to dial with
}

var _ core.Source = (*Source)(nil)

// New returns the source of the documents below the prefix, read with the
// caller's client, which stays the caller's to close. A slash is added to a
// prefix that does not end in one, so that "/penstock/shop" has no part in
// "/penstock/shopping/".
//
// The source uses the client's connection and credentials directly: wrappers
// put around the client's KV or Watcher, as package namespace does, have no
// effect on it. The prefix is the whole one.
func New(client *clientv3.Client, prefix string, opts Options) (*Source, error) {
	if client == nil || client.ActiveConnection() == nil {
		return nil, errors.New("etcd: the client has no connection: make it with clientv3.New")
	}
	if opts.TLS != nil {
		return nil, errors.New("etcd: Options.TLS is of no use to a client that is there already: leave it out, or use Open")
	}
	if opts.Token != nil {
		return nil, errors.New("etcd: Options.Token is of no use to a client that is there already: leave it out, or use Open")
	}
	return newSource(Source{client: client}, prefix, opts)
}

// Open returns the source of the documents below the prefix, read with a client
// of its own. The client is made when a run begins and closed when it ends; a
// cluster that is not there yet or refuses the password is tried again.
//
// Of the configuration, these are set where they are left out: DialTimeout to
// 5 s, DialKeepAliveTime to 10 s, DialKeepAliveTimeout to 3 s, Logger to one
// that is silent, because the source reports what fails. Its Context is that of
// the run.
func Open(config clientv3.Config, prefix string, opts Options) (*Source, error) {
	if len(config.Endpoints) == 0 {
		return nil, errors.New("etcd: Config.Endpoints is empty: name the members of the cluster")
	}
	if opts.Token != nil {
		if config.Username != "" || config.Password != "" || config.Token != "" {
			return nil, errors.New("etcd: Options.Token is set beside a user or a token in the Config: leave one of them out")
		}
		config = withToken(config, opts.Token)
	}
	setDefault(&config.DialTimeout, 5*time.Second)
	setDefault(&config.DialKeepAliveTime, 10*time.Second)
	setDefault(&config.DialKeepAliveTimeout, 3*time.Second)
	if config.LogConfig == nil {
		setDefault(&config.Logger, zap.NewNop())
	}
	return newSource(Source{config: config}, prefix, opts)
}

func newSource(s Source, prefix string, opts Options) (*Source, error) {
	keys, keysErr := KeysOf(prefix)
	opts, optsErr := opts.complete()
	if err := errors.Join(keysErr, optsErr); err != nil {
		return nil, err
	}
	s.keys, s.opts = keys, opts
	return &s, nil
}

// Name returns "etcd:" and the prefix.
func (s *Source) Name() string { return "etcd:" + s.keys.Documents }

// Run implements [core.Source]. It returns when ctx has ended, with ctx.Err(),
// and when the caller's client has been closed, with [ErrClientClosed]. It
// tries again after every other error, be it a missing right or a wrong
// password: operators set these right.
func (s *Source) Run(ctx context.Context, sink core.Sink) error {
	r := &run{
		Source: s, sink: sink, pause: backoff{min: s.opts.MinBackoff, max: s.opts.MaxBackoff},
		reporter: newReporter(s, sink),
	}
	defer r.hangUp()
	ctx, cancel := context.WithCancel(ctx)
	defer r.reporter.wait()
	defer cancel()
	for {
		err := r.session(ctx)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		sink.Disconnected(r.reason(err))
		if errors.Is(err, ErrClientClosed) {
			return err
		}
		if !r.wait(ctx, r.lost()) {
			return ctx.Err()
		}
	}
}
