package etcd

import (
	"context"
	"errors"
	"reflect"
	"sync/atomic"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/datasource/retry"
	"github.com/penstock-go/penstock/list"
)

// ErrClientClosed is what Run returns when the client that was given to [New]
// has been closed.
var ErrClientClosed = errors.New("etcd: the client has been closed")

// Source delivers the rule documents below an etcd prefix. It keeps no state
// between runs: an engine may follow it again, and several engines may follow it
// at once.
type Source struct {
	keys   Keys
	opts   Options
	client *clientv3.Client // of the caller; nil if each run makes its own
	config clientv3.Config  // for the clients that runs make

	connection *connection // of a source of lists; nil of one of rules

	lists *atomic.Pointer[list.Registry] // that the source keeps lists in; of nil if it has not been told to
}

var _ core.Source = (*Source)(nil)

// New returns a source of the documents below the prefix that uses the caller's
// client. The caller closes the client. New adds a slash to a prefix that does not
// end in one, so that "/penstock/shop" does not match "/penstock/shopping/".
//
// The source uses the client's connection and credentials directly: wrappers
// around the client's KV or Watcher, as in package namespace, have no effect. Give
// the complete prefix.
func New(client *clientv3.Client, prefix string, opts Options) (*Source, error) {
	if client == nil || client.ActiveConnection() == nil {
		return nil, errors.New("etcd: the client has no connection: make it with clientv3.New")
	}
	if opts.TLS != nil {
		return nil, errors.New("etcd: Options.TLS has no effect on an existing client: leave it out, or use Open")
	}
	if opts.Token != nil {
		return nil, errors.New("etcd: Options.Token has no effect on an existing client: leave it out, or use Open")
	}
	return newSource(Source{client: client}, prefix, opts)
}

// Open returns a source of the documents below the prefix that uses a client of
// its own. A run makes the client when it begins and closes it when it ends. It
// tries again while the cluster cannot be reached or refuses the password.
//
// Open sets these fields of the configuration if they are left out: DialTimeout to
// 5 s, DialKeepAliveTime to 10 s, DialKeepAliveTimeout to 3 s, and Logger to one
// that discards, because the source reports errors itself. Context is that of the
// run.
func Open(config clientv3.Config, prefix string, opts Options) (*Source, error) {
	if len(config.Endpoints) == 0 {
		return nil, errors.New("etcd: Config.Endpoints is empty: name the members of the cluster")
	}
	if opts.Token != nil {
		if config.Username != "" || config.Password != "" || hasToken(config) {
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

// hasToken says whether a configuration has a token. Before version 3.7 the client has
// no such field.
func hasToken(config clientv3.Config) bool {
	token := reflect.ValueOf(config).FieldByName("Token")
	return token.IsValid() && !token.IsZero()
}

func newSource(s Source, prefix string, opts Options) (*Source, error) {
	keys, keysErr := KeysOf(prefix)
	opts, optsErr := opts.complete()
	if err := errors.Join(keysErr, optsErr); err != nil {
		return nil, err
	}
	s.keys, s.opts, s.lists = keys, opts, new(atomic.Pointer[list.Registry])
	return &s, nil
}

// Name returns "etcd:" and the prefix.
func (s *Source) Name() string { return "etcd:" + s.keys.Documents }

// Run implements [core.Source]. It returns ctx.Err() when ctx has ended and
// [ErrClientClosed] when the caller's client has been closed. It tries again after
// every other error, including a missing permission or a wrong password, which
// operators can correct meanwhile.
func (s *Source) Run(ctx context.Context, sink core.Sink) error {
	r := &run{
		Source: s, sink: sink, backoff: retry.Backoff{Min: s.opts.MinBackoff, Max: s.opts.MaxBackoff},
		reporter: newReporter(s, sink),
	}
	defer r.closeOwnClient()
	ctx, cancel := context.WithCancel(ctx)
	defer r.reporter.wait()
	defer cancel()
	for {
		err := r.connectAndFollow(ctx)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		sink.Disconnected(r.stableError(err))
		if errors.Is(err, ErrClientClosed) {
			return err
		}
		if !retry.Sleep(ctx, s.opts.Clock, r.connectionLost()) {
			return ctx.Err()
		}
	}
}
