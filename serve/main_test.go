package serve_test

import (
	"context"
	"log/slog"
	"net"
	"testing"
	"time"

	ratelimit "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	rls "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/rules"
	"github.com/penstock-go/penstock/serve"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// newEngine returns an engine with the rules of a document, and its clock.
func newEngine(tb testing.TB, document string) (*core.Engine, *clock.Virtual) {
	tb.Helper()
	virtual := clock.NewVirtual(time.Unix(1_000_000, 0))
	engine := core.New(core.Config{Clock: virtual, Logger: slog.New(slog.DiscardHandler)})
	tb.Cleanup(engine.Close)
	load(tb, engine, document)
	return engine, virtual
}

// dial starts a server with what register adds, and connects to it.
func dial(tb testing.TB, register func(*grpc.Server)) *grpc.ClientConn {
	tb.Helper()
	listener, err := (&net.ListenConfig{}).Listen(tb.Context(), "tcp", "127.0.0.1:0")
	require.NoError(tb, err)
	server := grpc.NewServer()
	register(server)
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	conn, err := grpc.NewClient(listener.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	require.NoError(tb, err)
	tb.Cleanup(func() {
		require.NoError(tb, conn.Close())
		server.Stop()
		require.NoError(tb, <-served)
	})
	return conn
}

// dialRLS returns a client of a rate limit service over loopback.
func dialRLS(tb testing.TB, engine *core.Engine, options serve.RLSOptions) rls.RateLimitServiceClient {
	return rls.NewRateLimitServiceClient(dial(tb, func(s *grpc.Server) {
		rls.RegisterRateLimitServiceServer(s, serve.NewRLS(engine, options))
	}))
}

// entries returns a descriptor of keys and values in turn.
func entries(keysAndValues ...string) *ratelimit.RateLimitDescriptor {
	d := &ratelimit.RateLimitDescriptor{}
	for i := 0; i < len(keysAndValues); i += 2 {
		d.Entries = append(d.Entries, &ratelimit.RateLimitDescriptor_Entry{Key: keysAndValues[i], Value: keysAndValues[i+1]})
	}
	return d
}

// hits sets the tokens of a descriptor.
func hits(n uint64, d *ratelimit.RateLimitDescriptor) *ratelimit.RateLimitDescriptor {
	d.HitsAddend = wrapperspb.UInt64(n)
	return d
}

// ask asks about descriptors of the domain "shop".
func ask(tb testing.TB, client rls.RateLimitServiceClient, addend uint32, descriptors ...*ratelimit.RateLimitDescriptor) *rls.RateLimitResponse {
	tb.Helper()
	ctx, cancel := context.WithTimeout(tb.Context(), 2*time.Minute)
	defer cancel()
	response, err := client.ShouldRateLimit(ctx, &rls.RateLimitRequest{Domain: "shop", Descriptors: descriptors, HitsAddend: addend})
	require.NoError(tb, err)
	require.Len(tb, response.GetStatuses(), len(descriptors))
	return response
}

// codes returns the codes of the statuses, and the overall code at the end, as letters.
func codesOf(r *rls.RateLimitResponse) (text string) {
	letters := map[rls.RateLimitResponse_Code]string{rls.RateLimitResponse_OK: "o", rls.RateLimitResponse_OVER_LIMIT: "x"}
	for _, of := range r.GetStatuses() {
		text += letters[of.GetCode()]
	}
	return text + ":" + letters[r.GetOverallCode()]
}

func descriptors(list ...*ratelimit.RateLimitDescriptor) []*ratelimit.RateLimitDescriptor {
	return list
}

// load puts the rules of a document in force.
func load(tb testing.TB, engine *core.Engine, document string) {
	tb.Helper()
	set, err := rules.Parse("rules.yaml", []byte(document))
	require.NoError(tb, err)
	require.NoError(tb, engine.Load(set))
}
