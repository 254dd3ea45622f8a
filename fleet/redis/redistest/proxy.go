package redistest

import (
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// Proxy stands between clients and a server, as a network does: it makes answers late, and
// loses them.
type Proxy struct {
	t        testing.TB
	server   string
	listener net.Listener
	delay    atomic.Int64 // of answers
	lose     atomic.Bool  // answers
	mu       sync.Mutex
	conns    []net.Conn
	done     sync.WaitGroup
}

// NewProxy returns a proxy of the server at an address, which ends with the test.
func NewProxy(t testing.TB, server string) *Proxy {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &Proxy{t: t, server: server, listener: listener}
	p.done.Go(p.accept)
	t.Cleanup(func() {
		_ = listener.Close()
		p.mu.Lock()
		for _, conn := range p.conns {
			_ = conn.Close()
		}
		p.mu.Unlock()
		p.done.Wait()
	})
	return p
}

// Addr returns the address of the proxy.
func (p *Proxy) Addr() string { return p.listener.Addr().String() }

// SetDelay has each piece of an answer come later by d.
func (p *Proxy) SetDelay(d time.Duration) { p.delay.Store(int64(d)) }

// LoseAnswers has requests reach the server, and answers get lost, or no longer. A connection
// that has lost an answer loses all that follow.
func (p *Proxy) LoseAnswers(lose bool) { p.lose.Store(lose) }

func (p *Proxy) accept() {
	for {
		client, err := p.listener.Accept()
		if err != nil {
			return
		}
		server, err := net.Dial("tcp", p.server)
		if err != nil {
			_ = client.Close()
			continue
		}
		p.mu.Lock()
		p.conns = append(p.conns, client, server)
		p.mu.Unlock()
		p.done.Go(func() { p.forward(client, server, false) })
		p.done.Go(func() { p.forward(server, client, true) })
	}
}

// forward copies what one side says to the other until one of them ends.
func (p *Proxy) forward(from, to net.Conn, answers bool) {
	defer func() { _, _ = from.Close(), to.Close() }()
	buffer, lost := make([]byte, 1<<16), false
	for {
		n, err := from.Read(buffer)
		if n > 0 && answers {
			time.Sleep(time.Duration(p.delay.Load()))
		}
		lost = lost || n > 0 && answers && p.lose.Load()
		if n > 0 && !lost {
			if _, err := to.Write(buffer[:n]); err != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}
