package orcaload_test

import (
	"context"
	"log/slog"
	"net"
	"testing"
	"time"

	reportpb "github.com/cncf/xds/go/xds/data/orca/v3"
	servicepb "github.com/cncf/xds/go/xds/service/orca/v3"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	testpb "google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/orca"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	penstockgrpc "github.com/penstock-go/penstock/adapters/grpc"
	"github.com/penstock-go/penstock/adapters/grpc/orcaload"
	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/isolation"
	"github.com/penstock-go/penstock/rule"
	"github.com/penstock-go/penstock/rules"
)

// service tells the levels that its handlers read.
type service struct {
	testpb.UnimplementedTestServiceServer
	levels chan rule.LoadLevel
}

func (s service) UnaryCall(ctx context.Context, _ *testpb.SimpleRequest) (*testpb.SimpleResponse, error) {
	s.levels <- core.LoadFrom(ctx)
	return &testpb.SimpleResponse{}, nil
}

// serve serves a pool of two places, and returns a connection to it.
func serve(t *testing.T, engine *core.Engine, s service) *grpc.ClientConn {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	options := penstockgrpc.Options{ReportLoad: true}
	server := grpc.NewServer(append(
		orcaload.ServerOptions(engine), grpc.ChainUnaryInterceptor(penstockgrpc.UnaryServerInterceptor(engine, options)),
	)...)
	testpb.RegisterTestServiceServer(server, s)
	require.NoError(t, orca.Register(server, orca.ServiceOptions{ServerMetricsProvider: orcaload.Metrics(engine)}))
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(server.Stop)
	conn, err := grpc.NewClient(listener.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

func TestBalancersReadHowLoadedTheServerIs(t *testing.T) {
	const method = testpb.TestService_UnaryCall_FullMethodName
	virtual := clock.NewVirtual(time.Now().Add(-time.Hour))
	engine := core.New(core.Config{Clock: virtual, Logger: slog.New(slog.DiscardHandler)})
	t.Cleanup(engine.Close)
	require.NoError(t, engine.Load(rules.Set{Isolation: []isolation.Rule{{Resource: method, Limit: 2}}}))
	s := service{levels: make(chan rule.LoadLevel, 1)}
	conn := serve(t, engine, s)
	client := testpb.NewTestServiceClient(conn)
	ctx := t.Context()

	call := func() (rule.LoadLevel, *reportpb.OrcaLoadReport) {
		var trailer metadata.MD
		_, err := client.UnaryCall(ctx, &testpb.SimpleRequest{}, grpc.Trailer(&trailer))
		require.NoError(t, err)
		reports := trailer.Get("endpoint-load-metrics-bin")
		require.Len(t, reports, 1)
		var report reportpb.OrcaLoadReport
		require.NoError(t, proto.Unmarshal([]byte(reports[0]), &report))
		return <-s.levels, &report
	}
	level, report := call()
	assert.Equal(t, rule.LoadNone, level)
	assert.Zero(t, report.GetApplicationUtilization())

	// One place is taken, and each call takes the other one, once a second.
	held, err := engine.Entry(ctx, method)
	require.NoError(t, err)
	defer held.Exit()
	for range 20 {
		virtual.Advance(time.Second)
		level, report = call()
	}
	utilization := report.GetApplicationUtilization()
	assert.Equal(t, rule.LoadModerate, level)
	assert.Greater(t, utilization, 0.95)
	assert.LessOrEqual(t, utilization, 1.)
	assert.InDelta(t, 1, report.GetRpsFractional(), 0.1, "balancers do not weigh a server without it")

	// A refused call tells it, too.
	other, err := engine.Entry(ctx, method)
	require.NoError(t, err)
	defer other.Exit()
	var trailer metadata.MD
	_, err = client.UnaryCall(ctx, &testpb.SimpleRequest{}, grpc.Trailer(&trailer))
	require.Equal(t, codes.Unavailable, status.Code(err))
	require.Len(t, trailer.Get("endpoint-load-metrics-bin"), 1)

	stream, err := servicepb.NewOpenRcaServiceClient(conn).StreamCoreMetrics(ctx, &servicepb.OrcaLoadReportRequest{})
	require.NoError(t, err)
	report, err = stream.Recv()
	require.NoError(t, err)
	assert.InDelta(t, utilization, report.GetApplicationUtilization(), 0.1)
	assert.Zero(t, report.GetCpuUtilization())
}
