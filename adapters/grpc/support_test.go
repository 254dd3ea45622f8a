package penstockgrpc_test

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	testpb "google.golang.org/grpc/interop/grpc_testing"

	penstockgrpc "github.com/penstock-go/penstock/adapters/grpc"
	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/rules"
)

// eventTimeout is how long a test waits for an expected event.
const (
	eventTimeout = 2 * time.Minute
	interval     = time.Millisecond // between looks
)

// side is where the guard stands.
type side string

const (
	atServer side = "server"
	atClient side = "client"
)

// everywhere runs a test for each side and each shape of method.
func everywhere(t *testing.T, test func(t *testing.T, at side, s shape)) {
	for _, at := range []side{atServer, atClient} {
		for _, s := range shapes() {
			t.Run(string(at)+", "+s.name, func(t *testing.T) { test(t, at, s) })
		}
	}
}

// newEngine returns an engine on a clock that does not advance by itself, an hour behind real
// time: no deadline of a context is too near for a call to wait.
func newEngine(t testing.TB, limits ...flow.Rule) *core.Engine {
	t.Helper()
	return newEngineOf(t, core.Config{}, limits...)
}

func newEngineOf(t testing.TB, config core.Config, limits ...flow.Rule) *core.Engine {
	t.Helper()
	config.Clock = clock.NewVirtual(time.Now().Add(-time.Hour))
	config.Logger = slog.New(slog.DiscardHandler)
	engine := core.New(config)
	t.Cleanup(engine.Close)
	require.NoError(t, engine.Load(rules.Set{Flow: limits}))
	return engine
}

// serve starts a server and returns its address and what stops it.
func serve(t testing.TB, s testpb.TestServiceServer, opts ...grpc.ServerOption) (address string, stop func()) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	server := grpc.NewServer(opts...)
	testpb.RegisterTestServiceServer(server, s)
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	t.Cleanup(func() {
		server.Stop()
		if err := <-served; !errors.Is(err, grpc.ErrServerStopped) { // before it began
			require.NoError(t, err)
		}
	})
	return listener.Addr().String(), server.Stop
}

// dial returns a connection to a server.
func dial(t testing.TB, address string, opts ...grpc.DialOption) *grpc.ClientConn {
	t.Helper()
	conn, err := grpc.NewClient(address, append(opts, grpc.WithTransportCredentials(insecure.NewCredentials()))...)
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close() }) // some tests have closed it
	return conn
}

// guard returns a client of the service, guarded at one side. What both sides
// have further out than the guard may follow.
func guard(t testing.TB, at side, engine *core.Engine, options penstockgrpc.Options, s service, outer ...any) testpb.TestServiceClient {
	t.Helper()
	var opts []grpc.ServerOption
	var dialOpts []grpc.DialOption
	for _, o := range outer {
		switch o := o.(type) {
		case grpc.ServerOption:
			opts = append(opts, o)
		case grpc.DialOption:
			dialOpts = append(dialOpts, o)
		}
	}
	if at == atServer {
		opts = append(opts, guardServer(engine, options)...)
	} else {
		dialOpts = append(dialOpts, guardClient(engine, options)...)
	}
	address, _ := serve(t, s, opts...)
	return testpb.NewTestServiceClient(dial(t, address, dialOpts...))
}

func guardServer(engine *core.Engine, options penstockgrpc.Options) []grpc.ServerOption {
	return []grpc.ServerOption{
		grpc.ChainUnaryInterceptor(penstockgrpc.UnaryServerInterceptor(engine, options)),
		grpc.ChainStreamInterceptor(penstockgrpc.StreamServerInterceptor(engine, options)),
	}
}

func guardClient(engine *core.Engine, options penstockgrpc.Options) []grpc.DialOption {
	return []grpc.DialOption{
		grpc.WithChainUnaryInterceptor(penstockgrpc.UnaryClientInterceptor(engine, options)),
		grpc.WithChainStreamInterceptor(penstockgrpc.StreamClientInterceptor(engine, options)),
	}
}

// outcomes are server options that note how calls end, as seen by an
// outer interceptor than those that come after.
func outcomes(note func(error)) []any {
	return []any{
		grpc.ChainUnaryInterceptor(func(ctx context.Context, request any, _ *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
			reply, err := handler(ctx, request)
			note(err)
			return reply, err
		}),
		grpc.ChainStreamInterceptor(func(service any, stream grpc.ServerStream, _ *grpc.StreamServerInfo, handler grpc.StreamHandler) error {
			err := handler(service, stream)
			note(err)
			return err
		}),
	}
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

// requireEnded waits until nothing is under way on a resource any more and
// returns what was counted.
func requireEnded(t *testing.T, engine *core.Engine, resource string) core.ResourceSnapshot {
	t.Helper()
	require.Eventually(t, func() bool {
		s := totals(engine, resource)
		return s.InFlight == 0 && s.Completed == s.Passed
	}, eventTimeout, interval)
	return totals(engine, resource)
}
