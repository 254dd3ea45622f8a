package etcdtest

import (
	"net/url"
	"path/filepath"

	"go.etcd.io/etcd/client/pkg/v3/transport"
	"go.etcd.io/etcd/server/v3/embed"
	"go.uber.org/zap"
)

// Options of a server. The zero value is a server without security whose data
// vanish with it.
type Options struct {
	// Dir is the directory of the data. They outlive the server in it. Defaults
	// to a temporary directory that Stop removes.
	Dir string

	// Fsync makes the server force what it writes to the disk, as one in
	// production does. Off by default: slower, and of use only to those who pull
	// the plug.
	Fsync bool

	// TLS makes the server speak TLS with its clients and, with ClientCertAuth,
	// know them by their certificates. Off by default.
	TLS transport.TLSInfo

	// Configure changes the configuration right before each start, for what the
	// other fields do not offer: the lifetime of tokens, the size of requests.
	Configure func(*embed.Config)
}

func (o Options) tls() bool { return !o.TLS.Empty() }

// config returns the server's configuration: one member, quick to elect
// itself, and silent.
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
