package etcdtest

import (
	"net/url"
	"path/filepath"

	"go.etcd.io/etcd/client/pkg/v3/transport"
	"go.etcd.io/etcd/server/v3/embed"
	"go.uber.org/zap"
)

// Options configure a server. With the zero value it has no security and its data
// are removed when it stops.
type Options struct {
	// Dir is the directory of the data, which are kept when the server stops.
	// Defaults to a temporary directory that Stop removes.
	Dir string

	// Fsync makes the server sync its writes to disk, as in production. It is
	// slower and matters only if the machine crashes. Off by default.
	Fsync bool

	// TLS makes the server use TLS and, with ClientCertAuth, authenticate clients
	// by their certificates. Off by default.
	TLS transport.TLSInfo

	// Configure changes the configuration right before each start, for settings
	// that have no field here, such as the lifetime of tokens or the size of
	// requests.
	Configure func(*embed.Config)
}

func (o Options) tls() bool { return !o.TLS.Empty() }

// config returns the server's configuration: one member, a short election timeout,
// no log.
func (s *Server) config() (*embed.Config, error) {
	client, err := url.Parse(s.Endpoint())
	if err != nil {
		return nil, err
	}
	peer := url.URL{Scheme: "http", Host: s.addresses.peer}

	c := embed.NewConfig()
	c.Dir = filepath.Join(s.dir, "member")
	c.ListenClientUrls, c.AdvertiseClientUrls = []url.URL{*client}, []url.URL{*client}
	c.ListenPeerUrls, c.AdvertisePeerUrls = []url.URL{peer}, []url.URL{peer}
	c.InitialCluster = c.InitialClusterFromName(c.Name)
	c.TickMs, c.ElectionMs = 10, 100
	c.UnsafeNoFsync = !s.opts.Fsync
	c.EnableGRPCGateway = false
	c.ClientTLSInfo = s.opts.TLS
	c.ZapLoggerBuilder = embed.NewZapLoggerBuilder(zap.NewNop())
	if s.opts.Configure != nil {
		s.opts.Configure(c)
	}
	return c, nil
}
