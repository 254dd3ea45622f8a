package main

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/gin-gonic/gin"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc"

	"github.com/penstock-go/penstock/console"
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/datasource/etcd"
	"github.com/penstock-go/penstock/datasource/etcd/etcdtest"

	penstockgin "github.com/penstock-go/penstock/adapters/gin"
	penstockgrpc "github.com/penstock-go/penstock/adapters/grpc"
	"github.com/penstock-go/penstock/inspect"
	penstockprom "github.com/penstock-go/penstock/metrics/prometheus"
)

// shop is everything that runs in this process: an etcd server with the rules,
// an engine that follows them, and the two services that it guards.
type shop struct {
	etcd   *etcdtest.Server
	client *clientv3.Client
	engine *core.Engine
	swaps  chan core.Swap
	states stateChanges

	httpAddress string
	http        *http.Server
	grpcAddress string
	grpc        *grpc.Server
	inventory   inventory
	payments    payments
}

// stateChanges are those of the circuit breaker.
type stateChanges struct {
	mu   sync.Mutex
	list []core.StateChange
}

func (c *stateChanges) add(change core.StateChange) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.list = append(c.list, change)
}

// take returns what has been added since it was called last.
func (c *stateChanges) take() []core.StateChange {
	c.mu.Lock()
	defer c.mu.Unlock()
	list := c.list
	c.list = nil
	return list
}

// openShop starts it all and returns when the rules are in force.
func openShop(ctx context.Context) (s *shop, err error) {
	s = &shop{swaps: make(chan core.Swap, 16)}
	defer func() {
		if err != nil {
			s.close()
		}
	}()
	if s.etcd, err = etcdtest.Start(etcdtest.Options{}); err != nil {
		return s, err
	}
	s.client = s.etcd.Client()
	for name, document := range map[string]string{
		"orders.yaml": ordersDocument, "inventory.yaml": inventoryDocument, "payments.yaml": paymentsDocument,
	} {
		if err = s.put(ctx, name, document); err != nil {
			return s, err
		}
	}
	if err = s.followRules(ctx); err != nil {
		return s, err
	}
	if err = s.serveHTTP(ctx); err != nil {
		return s, err
	}
	if err = s.payments.start(ctx); err != nil {
		return s, err
	}
	return s, s.serveGRPC(ctx)
}

// put writes a rule document to etcd.
func (s *shop) put(ctx context.Context, name, document string) error {
	_, err := s.client.Put(ctx, prefix+name, document)
	return err
}

func (s *shop) followRules(ctx context.Context) error {
	s.engine = core.New(core.Config{
		Logger:   quietLogger(),
		Observer: core.Observer{Swapped: s.recordSwap, StateChanged: s.states.add},
	})
	source, err := etcd.New(s.client, prefix, etcd.Options{Logger: quietLogger()})
	if err != nil {
		return err
	}
	if err := s.engine.Follow(ctx, source); err != nil {
		return err
	}
	return s.engine.Ready(ctx)
}

func (s *shop) recordSwap(swap core.Swap) {
	select {
	case s.swaps <- swap:
	default: // nobody is interested any more
	}
}

// serveHTTP starts the gin service.
func (s *shop) serveHTTP(ctx context.Context) error {
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	metrics := prometheus.NewRegistry()
	if err := metrics.Register(penstockprom.NewCollector(s.engine, penstockprom.Options{})); err != nil {
		return err
	}
	gin.SetMode(gin.ReleaseMode)
	router := gin.New()
	router.GET("/metrics", gin.WrapH(promhttp.HandlerFor(metrics, promhttp.HandlerOpts{})))
	router.GET("/inspect/*what", gin.WrapH(inspect.Handler(s.engine, inspect.Options{})))
	router.Any("/console/*what", gin.WrapH(console.Handler(console.Options{App: "quickstart", Engine: s.engine})))

	orders := router.Group("/orders", gin.Recovery(), penstockgin.Middleware(s.engine, penstockgin.Options{}))
	orders.GET("/:id", func(c *gin.Context) { c.JSON(http.StatusOK, gin.H{"order": c.Param("id")}) })
	orders.POST("", func(c *gin.Context) { c.JSON(http.StatusCreated, gin.H{"created": true}) })

	s.httpAddress = listener.Addr().String()
	s.http = &http.Server{Handler: router, ReadHeaderTimeout: 5 * time.Second}
	go func() { _ = s.http.Serve(listener) }()
	return nil
}

// serveGRPC starts the gRPC service.
func (s *shop) serveGRPC(ctx context.Context) error {
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	s.grpcAddress = listener.Addr().String()
	s.grpc = grpc.NewServer(
		grpc.ChainUnaryInterceptor(penstockgrpc.UnaryServerInterceptor(s.engine, penstockgrpc.Options{})),
		grpc.ChainStreamInterceptor(penstockgrpc.StreamServerInterceptor(s.engine, penstockgrpc.Options{})),
	)
	s.grpc.RegisterService(inventoryService(), &s.inventory)
	go func() { _ = s.grpc.Serve(listener) }()
	return nil
}

func (s *shop) metricsURL() string { return fmt.Sprintf("http://%s/metrics", s.httpAddress) }

// close stops what was started, the last first.
func (s *shop) close() {
	if s.grpc != nil {
		s.grpc.Stop()
	}
	for _, server := range []*http.Server{s.http, s.payments.server} {
		if server != nil {
			_ = server.Close()
		}
	}
	if s.engine != nil {
		s.engine.Close()
	}
	if s.etcd != nil {
		s.etcd.Stop()
	}
}
