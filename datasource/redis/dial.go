package redissource

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"log/slog"
	"net"
	"time"

	"github.com/redis/rueidis"
)

// connect sets the client: that of the caller, or one of its own.
func (r *reader) connect(ctx context.Context) error {
	r.current = false
	if r.Source.client != nil {
		r.client = r.Source.client
		return nil
	}
	connection, cancel := context.WithCancel(ctx)
	client, err := rueidis.NewClient(r.clientOption(connection))
	if errors.Is(err, rueidis.ErrNoCache) && !r.noCache {
		r.noCache = true
		r.opts.Logger.Warn("penstock: Redis does not tell of changes, so they are seen after an interval",
			slog.String("source", r.Name()), slog.Duration("interval", r.opts.PollInterval), slog.String("error", explain(err).Error()))
		client, err = rueidis.NewClient(r.clientOption(connection))
	}
	if err != nil {
		cancel()
		return err
	}
	r.client, r.cancel = client, cancel
	return nil
}

// disconnect closes the client if the run has made it.
func (r *reader) disconnect() {
	if r.cancel != nil {
		r.cancel() // closes the connections, so that Close does not wait for answers
		r.client.Close()
	}
	r.client, r.cancel, r.current = nil, nil, false
}

// clientOption returns the configuration of a client whose connections end with ctx.
func (r *reader) clientOption(ctx context.Context) rueidis.ClientOption {
	o := r.config
	o.Dialer.Timeout = cmp.Or(o.Dialer.Timeout, r.opts.RequestTimeout)
	o.Dialer.KeepAlive = cmp.Or(o.Dialer.KeepAlive, time.Second)
	o.ConnWriteTimeout = cmp.Or(o.ConnWriteTimeout, r.opts.RequestTimeout)
	o.ClientName = cmp.Or(o.ClientName, "penstock")
	o.Sentinel.Dialer.Timeout = cmp.Or(o.Sentinel.Dialer.Timeout, r.opts.RequestTimeout)
	o.Sentinel.TopologyRefreshInterval = cmp.Or(o.Sentinel.TopologyRefreshInterval, 2*time.Second)
	o.ClusterOption.ShardsRefreshInterval = cmp.Or(o.ClusterOption.ShardsRefreshInterval, 10*time.Second)
	o.PipelineMultiplex = cmp.Or(o.PipelineMultiplex, -1)
	o.ReadBufferEachConn = cmp.Or(o.ReadBufferEachConn, 1<<15)
	o.WriteBufferEachConn = cmp.Or(o.WriteBufferEachConn, 1<<15)
	o.CacheSizeEachConn = cmp.Or(o.CacheSizeEachConn, 1<<20)
	if o.ClientSetInfo == nil {
		o.ClientSetInfo = rueidis.DisableClientSetInfo
	}
	o.DisableRetry = true // the source tries again by itself
	o.DisableCache = o.DisableCache || r.noCache

	of := o.OnInvalidations
	o.OnInvalidations = func(keys []rueidis.RedisMessage) {
		select {
		case r.changed <- struct{}{}:
		default:
		}
		if of != nil {
			of(keys)
		}
	}
	o.DialFn, o.DialCtxFn = nil, dialWithin(ctx, o)
	return o
}

// dialFunc makes a connection.
type dialFunc = func(context.Context, string, *net.Dialer, *tls.Config) (net.Conn, error)

// dialWithin returns a function that dials as the configuration says. The connections
// are closed when ctx ends.
func dialWithin(ctx context.Context, o rueidis.ClientOption) dialFunc {
	dial := o.DialCtxFn
	if dial == nil && o.DialFn != nil {
		dial = func(_ context.Context, address string, d *net.Dialer, secure *tls.Config) (net.Conn, error) {
			return o.DialFn(address, d, secure)
		}
	}
	if dial == nil {
		dial = dialTCP
	}
	return func(request context.Context, address string, d *net.Dialer, secure *tls.Config) (net.Conn, error) {
		request, cancel := context.WithCancel(request)
		defer cancel()
		defer context.AfterFunc(ctx, cancel)()
		conn, err := dial(request, address, d, secure)
		if err != nil {
			return nil, err
		}
		return &bounded{conn, context.AfterFunc(ctx, func() { _ = conn.Close() })}, nil
	}
}

func dialTCP(ctx context.Context, address string, d *net.Dialer, secure *tls.Config) (net.Conn, error) {
	if secure == nil {
		return d.DialContext(ctx, "tcp", address)
	}
	return (&tls.Dialer{NetDialer: d, Config: secure}).DialContext(ctx, "tcp", address)
}

// bounded is a connection that is closed when a context ends.
type bounded struct {
	net.Conn
	forget func() bool // the context
}

func (b *bounded) Close() error {
	b.forget()
	return b.Conn.Close()
}
