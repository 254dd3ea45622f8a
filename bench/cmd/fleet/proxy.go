package main

import (
	"context"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// proxy stands between instances and a server, and has answers come later, as a network that
// is long does: as many bytes as before are under way at once.
type proxy struct {
	server   string
	listener net.Listener
	delay    atomic.Int64
	ctx      context.Context //nolint:containedctx // ends with the proxy
	end      context.CancelFunc
	running  sync.WaitGroup
}

func newProxy(ctx context.Context, server string) (*proxy, error) {
	var config net.ListenConfig
	listener, err := config.Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	p := &proxy{server: server, listener: listener}
	p.ctx, p.end = context.WithCancel(ctx)
	context.AfterFunc(p.ctx, func() { _ = listener.Close() })
	p.running.Go(p.accept)
	return p, nil
}

func (p *proxy) address() string { return p.listener.Addr().String() }

func (p *proxy) setDelay(d time.Duration) { p.delay.Store(int64(d)) }

func (p *proxy) stop() {
	if p != nil {
		p.end()
		p.running.Wait()
	}
}

func (p *proxy) accept() {
	var dialer net.Dialer
	for {
		client, err := p.listener.Accept()
		if err != nil {
			return
		}
		server, err := dialer.DialContext(p.ctx, "tcp", p.server)
		if err != nil {
			_ = client.Close()
			continue
		}
		closeBoth := func() { _, _ = client.Close(), server.Close() }
		context.AfterFunc(p.ctx, closeBoth)
		p.running.Go(func() { defer closeBoth(); _, _ = io.Copy(server, client) })
		p.running.Go(func() {
			defer closeBoth()
			deliverLater(client, server, func() time.Duration { return time.Duration(p.delay.Load()) })
		})
	}
}

// deliverLater copies each piece of what comes to where it goes after a delay. It returns when
// either side ends.
func deliverLater(to io.Writer, from io.Reader, delay func() time.Duration) {
	type piece struct {
		data []byte
		due  time.Time
	}
	pieces, broken := make(chan piece, 10_000), make(chan struct{})
	go func() {
		defer close(pieces)
		for {
			buffer := make([]byte, 1<<14)
			n, err := from.Read(buffer)
			if n > 0 {
				select {
				case pieces <- piece{buffer[:n], time.Now().Add(delay())}:
				case <-broken:
					return
				}
			}
			if err != nil {
				return
			}
		}
	}()
	defer close(broken)
	for p := range pieces {
		time.Sleep(time.Until(p.due))
		if _, err := to.Write(p.data); err != nil {
			return
		}
	}
}
