package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/penstock-go/penstock/adapters/nethttp"
	"github.com/penstock-go/penstock/core"
)

// payments is a service that others call, and that breaks: it answers 503 then.
type payments struct {
	address string
	server  *http.Server
	broken  atomic.Bool
}

func (p *payments) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	if p.broken.Load() {
		w.WriteHeader(http.StatusServiceUnavailable)
	}
}

func (p *payments) start(ctx context.Context) error {
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	p.address = listener.Addr().String()
	p.server = &http.Server{Handler: p, ReadHeaderTimeout: 5 * time.Second}
	go func() { _ = p.server.Serve(listener) }()
	return nil
}

// breakAndHeal breaks the payment service, or heals it, in the seconds of the show that
// are for it.
func (r *record) breakAndHeal(out io.Writer, s *shop, second int) {
	switch second {
	case breakAt:
		s.payments.broken.Store(true)
		r.broke = s.engine.Clock().Now()
		fmt.Fprintln(out, "     the payment service breaks: it answers 503 from now on")
	case healAt:
		r.healed = s.engine.Clock().Now()
		s.payments.broken.Store(false)
		fmt.Fprintln(out, "     the payment service has healed")
	}
}

// newPayClient returns a client of the payment service that the engine guards.
func newPayClient(engine *core.Engine) *http.Client {
	return &http.Client{Transport: &nethttp.Transport{
		Base:     &http.Transport{MaxIdleConnsPerHost: 64},
		Engine:   engine,
		Resource: func(*http.Request) string { return pay },
	}}
}
