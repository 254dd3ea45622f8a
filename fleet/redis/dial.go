package redis

import (
	"context"
	"crypto/tls"
	"net"
	"time"

	"github.com/redis/rueidis"
)

// dial connects to the servers. It tries what kind they are: a cluster, or a single one.
func (s *Store) dial(ctx context.Context) (rueidis.Client, error) {
	o := &s.options
	dialer := net.Dialer{Timeout: o.DialTimeout, KeepAlive: time.Second}
	return rueidis.NewClient(rueidis.ClientOption{
		InitAddress: o.Addresses,
		Username:    o.User,
		Password:    o.Password,
		SelectDB:    o.Database,
		ClientName:  "penstock:" + o.App,
		TLSConfig:   o.TLS,
		Dialer:      dialer,
		Sentinel: rueidis.SentinelOption{
			MasterSet: o.SentinelMaster, Username: o.SentinelUser, Password: o.SentinelPassword,
			TLSConfig: o.TLS, Dialer: dialer, TopologyRefreshInterval: 2 * time.Second,
		},
		ClusterOption: rueidis.ClusterOption{ShardsRefreshInterval: 10 * time.Second, MaxMovedRedirections: 3},

		DisableRetry:     true, // a request whose answer was lost may have been made
		DisableCache:     true,
		AlwaysPipelining: true, // a timeout does not cost the connection
		ConnWriteTimeout: silence,
		ClientSetInfo:    rueidis.DisableClientSetInfo,

		// One connection to each server carries more requests than a server can serve.
		PipelineMultiplex:   -1,
		BlockingPipeline:    -1,
		ReadBufferEachConn:  1 << 15,
		WriteBufferEachConn: 1 << 15,

		DialCtxFn: func(request context.Context, address string, d *net.Dialer, config *tls.Config) (net.Conn, error) {
			request, cancel := context.WithCancel(request)
			defer cancel()
			defer context.AfterFunc(ctx, cancel)()
			if config == nil {
				return d.DialContext(request, "tcp", address)
			}
			return (&tls.Dialer{NetDialer: d, Config: config}).DialContext(request, "tcp", address)
		},
	})
}
