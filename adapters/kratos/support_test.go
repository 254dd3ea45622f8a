package penstockkratos_test

import (
	"context"
	"errors"
	"net"
	"net/http"
	"testing"
	"time"

	"github.com/go-kratos/kratos/v2/middleware"
	"github.com/go-kratos/kratos/v2/middleware/recovery"
	"github.com/go-kratos/kratos/v2/transport"
	kgrpc "github.com/go-kratos/kratos/v2/transport/grpc"
	khttp "github.com/go-kratos/kratos/v2/transport/http"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"

	"github.com/penstock-go/penstock/adapters/adaptertest"
	penstockkratos "github.com/penstock-go/penstock/adapters/kratos"
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/rules"
)

// stopTimeout is how long a test waits for a server to stop.
const stopTimeout = 2 * time.Minute

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

// serve starts a server that recovers from panics and returns its address.
func serve(t testing.TB, kind transport.Kind, s service, with ...middleware.Middleware) string {
	t.Helper()
	return serveWith(t, kind, s, append([]middleware.Middleware{recovery.Recovery()}, with...)...)
}

// serveWith starts a server and returns its address. No call has a deadline of the server's.
func serveWith(t testing.TB, kind transport.Kind, s service, with ...middleware.Middleware) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
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
		ctx, cancel := context.WithTimeout(context.Background(), stopTimeout)
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
		connections := &http.Transport{MaxIdleConnsPerHost: 64}
		client, err := khttp.NewClient(context.Background(), khttp.WithEndpoint(address), khttp.WithTimeout(0),
			khttp.WithTransport(connections), khttp.WithMiddleware(with...))
		require.NoError(t, err)
		t.Cleanup(func() {
			require.NoError(t, client.Close())
			connections.CloseIdleConnections() // a server that stops waits for those without a request
		})
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

// dialRetrying returns a function that calls the service over gRPC, with a retry policy.
func dialRetrying(t testing.TB, _ transport.Kind, address string, _ ...middleware.Middleware) caller {
	t.Helper()
	//lint:ignore SA1019 the oldest version has nothing else
	conn, err := grpc.Dial(address, grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithDefaultServiceConfig( //nolint:staticcheck // of the oldest version
		`{"methodConfig":[{"name":[{}],"retryPolicy":{"maxAttempts":5,"initialBackoff":"0.001s","maxBackoff":"0.001s",`+
			`"backoffMultiplier":1,"retryableStatusCodes":["RESOURCE_EXHAUSTED","UNAVAILABLE"]}}]}`))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, conn.Close()) })
	client := healthpb.NewHealthClient(conn)
	return func(ctx context.Context) error {
		_, err := client.Check(ctx, &healthpb.HealthCheckRequest{})
		return err
	}
}

// everywhere runs a test for each side and each transport.
func everywhere(t *testing.T, test func(t *testing.T, at adaptertest.Side, kind transport.Kind)) {
	for _, at := range []adaptertest.Side{adaptertest.AtServer, adaptertest.AtClient} {
		for _, kind := range []transport.Kind{transport.KindHTTP, transport.KindGRPC} {
			t.Run(string(at)+", "+kind.String(), func(t *testing.T) { test(t, at, kind) })
		}
	}
}

// guard returns what calls the service, guarded at one side. The other middlewares are those
// of the client, further out.
func guard(t testing.TB, at adaptertest.Side, kind transport.Kind, engine *core.Engine, options penstockkratos.Options,
	finish func(context.Context) error, outer ...middleware.Middleware,
) caller {
	t.Helper()
	if at == adaptertest.AtServer {
		return dial(t, kind, serve(t, kind, service{finish: finish}, penstockkratos.Server(engine, options)), outer...)
	}
	return dial(t, kind, serve(t, kind, service{finish: finish}), append(outer, penstockkratos.Client(engine, options))...)
}

func newEngine(t testing.TB, limits ...flow.Rule) *core.Engine {
	t.Helper()
	engine, _ := adaptertest.NewEngine(t, rules.Set{Flow: limits})
	return engine
}
