package etcdtest_test

import (
	"strings"
	"testing"

	"github.com/penstock-go/penstock/datasource/etcd/etcdtest"
	"github.com/penstock-go/penstock/datasource/sourcetest"
)

// proxy is a network between a source and a server, which can fail.
type proxy struct{ *sourcetest.Proxy }

// newProxy starts a proxy to the server whose network works.
func newProxy(t *testing.T, server *etcdtest.Server) *proxy {
	t.Helper()
	return &proxy{sourcetest.NewProxy(t, addressOf(server))}
}

func (p *proxy) endpoint() string { return "http://" + p.Address() }

// leadTo forwards new connections to the server.
func (p *proxy) leadTo(server *etcdtest.Server) { p.ForwardTo(addressOf(server)) }

func addressOf(server *etcdtest.Server) string {
	_, address, _ := strings.Cut(server.Endpoint(), "://")
	return address
}
