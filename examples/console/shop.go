package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/datasource/etcd"
	"github.com/penstock-go/penstock/datasource/etcd/etcdtest"
	"github.com/penstock-go/penstock/datasource/etcd/store"
	"github.com/penstock-go/penstock/fleet"
	etcdfleet "github.com/penstock-go/penstock/fleet/etcd"
	"github.com/penstock-go/penstock/inspect"
)

const (
	prefix    = "/penstock/shop/"
	instances = 3
)

// documents are the rules that the shop begins with.
func documents() []store.Document {
	return []store.Document{
		{Name: "orders.yaml", Data: []byte(`# What a customer waits for.
flow:
  - name: create-limit
    resource: POST:/orders
    limit: 40
  - name: stricter
    resource: POST:/orders
    limit: 25
    shadow: true
hotParam:
  - {name: per-user, resource: "POST:/orders", param: user, limit: 10, burst: 20}
isolation:
  - {name: order-pool, resource: "POST:/orders", limit: 30}
`)},
		{Name: "payments.yaml", Data: []byte(`breaker:
  - {name: pay-errors, resource: "pay:charge", threshold: 0.5, window: 2s, openFor: 4s, probes: 3}
`)},
		{Name: "partners.yaml", Data: []byte(`# What the shop pays others for.
flow:
  - {name: charges-of-the-month, resource: "pay:charge", limit: 5000000, window: 1mo}
  - {name: credit, resource: "pay:charge", algorithm: prepaid, limit: 100000}
`)},
		{Name: "search.yaml", Data: []byte(`# Searches queue rather than fail.
flow:
  - {name: search-queue, resource: "GET:/search", limit: 30, algorithm: throttle, maxWait: 300ms, fairBy: ip}
  - {name: catalogue, resource: "GET:/catalogue", limit: 300, scope: fleet, fleet: {mode: share}}
access:
  - {name: no-scrapers, match: "GET:*", list: scrapers}
`)},
	}
}

// scrapers is a list that a rule names.
const scrapers = "192.0.2.0/24\n198.51.100.7\n2001:db8::/32\n"

// shop is everything that runs in this process.
type shop struct {
	etcd      *etcdtest.Server
	store     *store.Store
	instances []*instance
}

// instance is one instance of the service.
type instance struct {
	engine  *core.Engine
	backend backend
	server  *http.Server
	ends    func()
}

// backend is what the instances share limits by.
type backend interface {
	fleet.Backend
	io.Closer
}

// openShop starts it all and returns when the rules are in force.
func openShop(ctx context.Context) (s *shop, err error) {
	s = new(shop)
	defer func() {
		if err != nil {
			s.close()
		}
	}()
	if s.etcd, err = etcdtest.Start(etcdtest.Options{}); err != nil {
		return s, err
	}
	if s.store, err = store.New(s.etcd.Client(), prefix); err != nil {
		return s, err
	}
	if _, err = s.store.PushList(ctx, store.ListPush{Name: "scrapers", Text: strings.NewReader(scrapers), Entries: 3, Author: "example"}); err != nil {
		return s, err
	}
	now, err := s.store.Pull(ctx)
	if err != nil {
		return s, err
	}
	if _, err = s.store.Push(ctx, store.Push{Documents: documents(), Expect: now.Revision, Author: "example", Message: "what the shop begins with"}); err != nil {
		return s, err
	}
	for n := range instances {
		i, err := s.openInstance(ctx, fmt.Sprintf("shop-%d", n+1))
		if err != nil {
			return s, err
		}
		s.instances = append(s.instances, i)
	}
	return s, nil
}

// openInstance starts an instance that shares limits by etcd.
func (s *shop) openInstance(ctx context.Context, name string) (*instance, error) {
	backend, err := etcdfleet.New(s.etcd.Client(), prefix)
	if err != nil {
		return nil, err
	}
	return s.openInstanceWith(ctx, name, backend)
}

// openInstanceWith starts an instance, which reports to etcd where its inspect handler is.
func (s *shop) openInstanceWith(ctx context.Context, name string, backend backend) (*instance, error) {
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, errors.Join(err, backend.Close())
	}
	i := &instance{backend: backend}
	i.engine = core.New(core.Config{Logger: quietLogger(), Fleet: fleet.Config{Backend: backend, Instance: name}, MaxRemoval: 0.5, Recorder: &core.Recorder{Memory: 1 << 20}})
	mux := http.NewServeMux()
	mux.Handle("/", inspect.Handler(i.engine, inspect.Options{Recordings: true, Name: name}))
	mux.Handle("/control", inspect.ControlHandler(i.engine, inspect.Options{})) // for operators of the console
	i.server = &http.Server{Handler: mux, ReadHeaderTimeout: 5 * time.Second}
	go func() { _ = i.server.Serve(listener) }()
	source, err := etcd.New(s.etcd.Client(), prefix, etcd.Options{Instance: name, Inspect: listener.Addr().String(), Logger: quietLogger()})
	if err != nil {
		return i, err
	}
	lists, err := source.WatchLists(ctx, i.engine.Lists())
	if err != nil {
		return i, err
	}
	i.ends = lists.Close
	if err := i.engine.Follow(ctx, source); err != nil {
		return i, err
	}
	return i, errors.Join(lists.Ready(ctx), i.engine.Ready(ctx))
}

func (s *shop) close() {
	for _, i := range s.instances {
		i.close()
	}
	if s.etcd != nil {
		s.etcd.Stop()
	}
}

// close ends the instance at once, as a crash would.
func (i *instance) close() {
	_ = i.server.Close()
	if i.ends != nil {
		i.ends()
	}
	i.engine.Close()
	_ = i.backend.Close()
}
