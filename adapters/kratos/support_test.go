package penstockkratos_test

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"testing"
	"time"

	"github.com/go-kratos/kratos/v2/log"
	"github.com/go-kratos/kratos/v2/middleware"
	"github.com/go-kratos/kratos/v2/middleware/recovery"
	"github.com/go-kratos/kratos/v2/transport"
	kgrpc "github.com/go-kratos/kratos/v2/transport/grpc"
	khttp "github.com/go-kratos/kratos/v2/transport/http"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"

	penstockkratos "github.com/penstock-go/penstock/adapters/kratos"
	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/rules"
)

// eventTimeout is how long a test waits for an expected event.
const (
	eventTimeout = 20 * time.Second
	interval     = time.Millisecond // between looks
)

// check is the operation of the service, over both transports.
const check = "/grpc.health.v1.Health/Check"

// service ends its calls as finish says.
type service struct {
	healthpb.UnimplementedHealthServer
	finish func(context.Context) error
}

func succeed(context.Context) error { return nil }

func (s service) Check(ctx context.Context, _ *healthpb.HealthCheckRequest) (*healthpb.HealthCheckResponse, error) {
	if err := s.finish(ctx); err != nil {
		return nil, err
	}
	return &healthpb.HealthCheckResponse{Status: healthpb.HealthCheckResponse_SERVING}, nil
}

// handle is what the generator of kratos makes of a method for HTTP.
func (s service) handle(c khttp.Context) error {
	var in healthpb.HealthCheckRequest
	if err := c.Bind(&in); err != nil {
		return err
	}
	khttp.SetOperation(c, check)
	out, err := c.Middleware(func(ctx context.Context, request any) (any, error) {
		return s.Check(ctx, request.(*healthpb.HealthCheckRequest))
	})(c, &in)
	if err != nil {
		return err
	}
	return c.Result(200, out)
}

// quiet is a logger that logs nothing.
func quiet() log.Logger { return log.NewFilter(log.DefaultLogger, log.FilterLevel(log.LevelFatal+1)) }

// serve starts a server and returns its address. No call has a deadline of the server's.
func serve(t testing.TB, kind transport.Kind, s service, with ...middleware.Middleware) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	log.SetLogger(quiet())
	with = append([]middleware.Middleware{recovery.Recovery()}, with...)
	var server transport.Server
	if kind == transport.KindHTTP {
		h := khttp.NewServer(khttp.Listener(listener), khttp.Timeout(0), khttp.Middleware(with...))
		h.Route("/").POST("/health", s.handle)
		server = h
	} else {
		g := kgrpc.NewServer(kgrpc.Listener(listener), kgrpc.CustomHealth(), kgrpc.Timeout(0), kgrpc.Middleware(with...))
		healthpb.RegisterHealthServer(g, s)
		server = g
	}
	started := make(chan error, 1)
	go func() { started <- server.Start(context.Background()) }()
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), eventTimeout)
		defer cancel()
		require.NoError(t, server.Stop(ctx))
		if err := <-started; !errors.Is(err, grpc.ErrServerStopped) { // before it began
			require.NoError(t, err)
		}
	})
	return listener.Addr().String()
}

// caller makes a call.
type caller func(ctx context.Context) error

// dial returns a function that calls the service.
func dial(t testing.TB, kind transport.Kind, address string, with ...middleware.Middleware) caller {
	t.Helper()
	if kind == transport.KindHTTP {
		client, err := khttp.NewClient(context.Background(), khttp.WithEndpoint(address), khttp.WithTimeout(0),
			khttp.WithMiddleware(with...))
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, client.Close()) })
		return func(ctx context.Context) error {
			var out healthpb.HealthCheckResponse
			return client.Invoke(ctx, "POST", "/health", &healthpb.HealthCheckRequest{}, &out, khttp.Operation(check))
		}
	}
	conn, err := kgrpc.DialInsecure(context.Background(), kgrpc.WithEndpoint(address), kgrpc.WithTimeout(0),
		kgrpc.WithMiddleware(with...))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, conn.Close()) })
	client := healthpb.NewHealthClient(conn)
	return func(ctx context.Context) error {
		_, err := client.Check(ctx, &healthpb.HealthCheckRequest{})
		return err
	}
}

// side is where the guard stands.
type side string

const (
	atServer side = "server"
	atClient side = "client"
)

// everywhere runs a test for each side and each transport.
func everywhere(t *testing.T, test func(t *testing.T, at side, kind transport.Kind)) {
	for _, at := range []side{atServer, atClient} {
		for _, kind := range []transport.Kind{transport.KindHTTP, transport.KindGRPC} {
			t.Run(string(at)+", "+kind.String(), func(t *testing.T) { test(t, at, kind) })
		}
	}
}

// guard returns what calls the service, guarded at one side. The other middlewares are those
// of the client, further out.
func guard(t testing.TB, at side, kind transport.Kind, engine *core.Engine, options penstockkratos.Options,
	finish func(context.Context) error, outer ...middleware.Middleware,
) caller {
	t.Helper()
	if at == atServer {
		return dial(t, kind, serve(t, kind, service{finish: finish}, penstockkratos.Server(engine, options)), outer...)
	}
	return dial(t, kind, serve(t, kind, service{finish: finish}), append(outer, penstockkratos.Client(engine, options))...)
}

// newEngine returns an engine on a clock that does not advance by itself, at a full hour before
// real time: no deadline of a context is too near for a call to wait.
func newEngine(t testing.TB, limits ...flow.Rule) *core.Engine {
	t.Helper()
	engine := core.New(core.Config{Clock: clock.NewVirtual(time.Now().Add(-time.Hour).Truncate(time.Hour)), Logger: slog.New(slog.DiscardHandler)})
	t.Cleanup(engine.Close)
	require.NoError(t, engine.Load(rules.Set{Flow: limits}))
	return engine
}

// requireEnded waits until nothing is under way on a resource any more and returns what was
// counted.
func requireEnded(t *testing.T, engine *core.Engine, resource string) core.ResourceSnapshot {
	t.Helper()
	require.Eventually(t, func() bool {
		s := totals(engine, resource)
		return s.InFlight == 0 && s.Completed == s.Passed
	}, eventTimeout, interval)
	return totals(engine, resource)
}

// totals returns what the engine has counted of a resource.
func totals(engine *core.Engine, resource string) core.ResourceSnapshot {
	for _, r := range engine.Snapshot().Resources {
		if r.Name == resource {
			return r
		}
	}
	return core.ResourceSnapshot{}
}
