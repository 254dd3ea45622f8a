package sourcetest

import (
	"io"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Proxy forwards TCP connections between a source and a server, and simulates failures
// of the network. Its methods may be called concurrently.
type Proxy struct {
	listener net.Listener
	traffic  sync.WaitGroup

	mu       sync.Mutex // guards the fields below
	changed  sync.Cond  // signalled when state changes
	state    network
	server   string // address for new connections
	conns    map[net.Conn]struct{}
	carried  int // bytes from the server
	accepted int // connections
}

// network is the state of the simulated network.
type network struct {
	cut     bool          // connections are closed
	stalled bool          // connections stay open but forward nothing, not even a close
	perByte time.Duration // delay for each byte from the server; 0 for none
	resetAt int           // bytes from the server after which connections are reset; 0 for never
}

// NewProxy starts a proxy to the server at an address, host:port, whose network works. It
// runs until the test ends.
func NewProxy(t testing.TB, server string) *Proxy {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	p := &Proxy{listener: listener, conns: make(map[net.Conn]struct{})}
	p.changed.L = &p.mu
	p.ForwardTo(server)
	p.traffic.Go(p.accept)
	t.Cleanup(func() {
		_ = listener.Close()
		p.set(network{cut: true})
		p.traffic.Wait()
	})
	return p
}

// Address returns the host and port at which the proxy listens.
func (p *Proxy) Address() string { return p.listener.Addr().String() }

// Connections returns how many connections were made to the proxy, those that it has cut
// at once included.
func (p *Proxy) Connections() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.accepted
}

// ForwardTo forwards new connections to the server at an address.
func (p *Proxy) ForwardTo(server string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.server = server
}

// Cut closes all connections, present and new.
func (p *Proxy) Cut() { p.set(network{cut: true}) }

// Stall keeps all connections open and forwards nothing.
func (p *Proxy) Stall() { p.set(network{stalled: true}) }

// Slow forwards one byte from the server per interval.
func (p *Proxy) Slow(perByte time.Duration) { p.set(network{perByte: perByte}) }

// ResetAfter forwards that many bytes from the server, and then resets all
// connections once.
func (p *Proxy) ResetAfter(bytes int) {
	p.mu.Lock()
	at := p.carried + bytes
	p.mu.Unlock()
	p.set(network{resetAt: at})
}

// Restore makes the network work again. Stalled data are forwarded first.
func (p *Proxy) Restore() { p.set(network{}) }

func (p *Proxy) set(state network) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.state = state
	if state.cut {
		p.closeAll()
	}
	p.changed.Broadcast()
}

// closeAll closes all connections. The caller holds mu.
func (p *Proxy) closeAll() {
	for conn := range p.conns {
		_ = conn.(*net.TCPConn).SetLinger(0) // a reset, no orderly end
		_ = conn.Close()
	}
}

func (p *Proxy) accept() {
	for {
		near, err := p.listener.Accept()
		if err != nil {
			return
		}
		p.mu.Lock()
		p.accepted++
		p.conns[near] = struct{}{}
		if p.state.cut {
			_ = near.Close()
		}
		p.mu.Unlock()
		p.traffic.Go(func() { p.connect(near) })
	}
}

// connect connects to the server when the first byte arrives, because a server that
// stops waits for connections on which no data was sent.
func (p *Proxy) connect(near net.Conn) {
	defer p.hangUp(near)
	data := make([]byte, 1<<10)
	n, err := near.Read(data)
	if err != nil {
		return
	}
	p.mu.Lock()
	p.awaitFlow()
	server := p.server
	p.mu.Unlock()
	far, err := net.Dial("tcp", server)
	if err != nil {
		return
	}
	if _, err = far.Write(data[:n]); err == nil {
		p.carry(near, far)
	}
	_ = far.Close()
}

// carry forwards data in both directions until either side closes.
func (p *Proxy) carry(near, far net.Conn) {
	p.mu.Lock()
	p.conns[far] = struct{}{}
	if p.state.cut {
		_ = far.Close()
	}
	p.mu.Unlock()
	var both sync.WaitGroup
	defer both.Wait()
	for from, to := range map[net.Conn]io.Writer{near: upstream{p, far}, far: downstream{upstream{p, near}}} {
		both.Go(func() {
			_, _ = io.Copy(to, from)
			p.hangUp(near, far)
		})
	}
}

func (p *Proxy) hangUp(conns ...net.Conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.awaitFlow()
	for _, conn := range conns {
		_ = conn.Close()
		delete(p.conns, conn)
	}
}

// awaitFlow returns when the network is not stalled. The caller holds mu.
func (p *Proxy) awaitFlow() {
	for p.state.stalled {
		p.changed.Wait()
	}
}

// upstream forwards data to the server.
type upstream struct {
	proxy *Proxy
	net.Conn
}

func (u upstream) Write(data []byte) (int, error) {
	u.proxy.mu.Lock()
	u.proxy.awaitFlow()
	u.proxy.mu.Unlock()
	return u.Conn.Write(data)
}

// downstream forwards data from the server.
type downstream struct{ upstream }

func (d downstream) Write(data []byte) (written int, err error) {
	for err == nil && written < len(data) {
		next, last := d.proxy.admit(len(data) - written)
		_, err = d.upstream.Write(data[written : written+next])
		written += next
		if last {
			d.proxy.reset()
		}
	}
	return written, err
}

// admit waits until some of the bytes may be forwarded. It returns how many, and
// whether a reset follows.
func (p *Proxy) admit(bytes int) (admitted int, last bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if perByte := p.state.perByte; perByte > 0 {
		p.mu.Unlock()
		time.Sleep(perByte)
		p.mu.Lock()
		if p.state.perByte > 0 {
			bytes = 1
		}
	}
	if left := p.state.resetAt - p.carried; p.state.resetAt > 0 && bytes >= left {
		bytes, last = left, true
		p.state.resetAt = 0
	}
	p.carried += bytes
	return bytes, last
}

func (p *Proxy) reset() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closeAll()
}
