package etcdtest_test

import (
	"io"
	"net"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/datasource/etcd/etcdtest"
)

// proxy is a network between a source and a server that can fail.
type proxy struct {
	listener net.Listener
	server   string
	traffic  sync.WaitGroup

	mu      sync.Mutex // guards what follows
	flowing sync.Cond  // signalled when stalled ends
	cut     bool       // connections are closed
	stalled bool       // connections stay and nothing comes through
	conns   map[net.Conn]struct{}
}

// newProxy returns a network to the server that works.
func newProxy(t *testing.T, server *etcdtest.Server) *proxy {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	p := &proxy{
		listener: listener,
		server:   strings.TrimPrefix(server.Endpoint(), "http://"),
		conns:    make(map[net.Conn]struct{}),
	}
	p.flowing.L = &p.mu
	p.traffic.Go(p.accept)
	t.Cleanup(func() {
		_ = listener.Close()
		p.set(true, false)
		p.traffic.Wait()
	})
	return p
}

func (p *proxy) endpoint() string { return "http://" + p.listener.Addr().String() }

// cutOff closes all connections and those to come.
func (p *proxy) cutOff() { p.set(true, false) }

// stall keeps all connections and lets nothing through.
func (p *proxy) stall() { p.set(false, true) }

// restore lets everything through, what was stalled first.
func (p *proxy) restore() { p.set(false, false) }

func (p *proxy) set(cut, stalled bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.cut, p.stalled = cut, stalled
	if cut {
		for conn := range p.conns {
			_ = conn.Close()
		}
	}
	p.flowing.Broadcast()
}

func (p *proxy) accept() {
	for {
		near, err := p.listener.Accept()
		if err != nil {
			return
		}
		far, err := net.Dial("tcp", p.server)
		if err != nil {
			_ = near.Close()
			continue
		}
		p.carry(near, far)
	}
}

// carry starts to pass on what comes from either side.
func (p *proxy) carry(near, far net.Conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for from, to := range map[net.Conn]net.Conn{near: far, far: near} {
		if p.cut {
			_ = from.Close()
			continue
		}
		p.conns[from] = struct{}{}
		p.traffic.Go(func() {
			_, _ = io.Copy(gated{p, to}, from)
			p.hangUp(from, to)
		})
	}
}

func (p *proxy) hangUp(conns ...net.Conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, conn := range conns {
		_ = conn.Close()
		delete(p.conns, conn)
	}
}

// gated is a connection that waits while the network is stalled.
type gated struct {
	proxy *proxy
	net.Conn
}

func (g gated) Write(data []byte) (int, error) {
	g.proxy.mu.Lock()
	for g.proxy.stalled {
		g.proxy.flowing.Wait()
	}
	g.proxy.mu.Unlock()
	return g.Conn.Write(data)
}
